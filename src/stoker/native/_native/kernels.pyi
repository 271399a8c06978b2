# SPDX-License-Identifier: Apache-2.0
"""Constructors of the kernels that plans are made of."""

from collections.abc import Sequence

import numpy as np
import numpy.typing as npt

from stoker.native._native import FileTable, Kernel
from stoker.native._native.gpu import Function

# (kind, axis, start, step, extent, list): numbers of parameters, see `graph/plan.py`
ViewOps = Sequence[tuple[int, int, int, int, int, Sequence[int]]]

def view(ops: ViewOps, may_copy: bool, /) -> Kernel: ...
def stage(
    sampler: int,
    sampler_params: Sequence[int],
    code: list[tuple[int, int, int, int, int, int, int, int, int, int, int]],
    channels: int,
    in_dtypes: Sequence[int],
    out_dtypes: Sequence[int],
    uniforms: Sequence[int],
    inputs: Sequence[ViewOps],
    outputs: Sequence[ViewOps],
    /,
) -> Kernel: ...
def gpu_stage(
    sampler: int,
    sampler_params: Sequence[int],
    code: list[tuple[int, int, int, int, int, int, int, int, int, int, int]],
    channels: int,
    in_dtypes: Sequence[int],
    out_dtypes: Sequence[int],
    uniforms: Sequence[int],
    inputs: Sequence[ViewOps],
    outputs: Sequence[ViewOps],
    functions: Sequence[Function],
    reads: Sequence[tuple[int, int]],
    /,
) -> Kernel: ...
def read(table: FileTable, reader: int, /) -> Kernel: ...
def lookup(table: npt.NDArray[np.int32], reader: int, /) -> Kernel: ...
def index(reader: int, /) -> Kernel: ...
def peek(adjust: bool, format: int, /) -> Kernel: ...
def decode(adjust: bool, format: int, /) -> Kernel: ...
def draw(distribution: int, draw: int, own_seed: bool, seed: int, /) -> Kernel: ...
def choice(draw: int, own_seed: bool, seed: int, weights: bool, /) -> Kernel: ...
def crop_window(draw: int, own_seed: bool, seed: int, attempts: int, /) -> Kernel: ...
def scalars() -> Kernel: ...
def constant(data: bytes, shape: Sequence[int], /) -> Kernel: ...
def select() -> Kernel: ...
def other_row(value: int, /) -> Kernel: ...
def python() -> Kernel: ...
