# SPDX-License-Identifier: Apache-2.0
"""CUDA C++ for an operator with a kernel of its own: its class from ``native/cuda``, for the types that occur."""

from __future__ import annotations

from collections.abc import Sequence

from ..contract.step import OwnKernel
from ..contract.types import DType
from .generate import ELEMENTS


def own_sources(
    kernel: OwnKernel, in_types: Sequence[DType], out_types: Sequence[DType]
) -> tuple[tuple[str, str], ...]:
    """(name, source) of each pass. A source has one pass, so that they are compiled beside each other."""
    types = ", ".join(ELEMENTS[t] for t in (*in_types, *out_types))
    arguments = ", ".join([f"Types<{types}>", *map(str, kernel.constants)])
    header = f"own_{kernel.name.lower()}.cuh"

    def source(name: str, function: str) -> str:
        scope = "using namespace stoker::own;\n"
        return f'#include "{header}"\n\n{scope}STOKER_PASS({name}, {kernel.name}<{arguments}>::{function})\n'

    names = {p: f"stoker_{kernel.name.lower()}_{p}" for p in kernel.passes}
    return tuple((names[p], source(names[p], p)) for p in kernel.passes)
