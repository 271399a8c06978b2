# SPDX-License-Identifier: Apache-2.0
"""An operator with a counted output, and pipelines of it, for the CPU and a GPU."""

from __future__ import annotations

import math
from pathlib import Path
from typing import Any

import numpy as np

from stoker import Operator, RowContext, fn, pipeline_def, register
from stoker.contract.argument import arg
from stoker.contract.lowering import Lowering
from stoker.contract.step import Launches, LaunchPass, Value

ROWS = 24


class Masked(Operator, name="test_masked"):
    """The elements where a mask is true, and their count. The upper bound and the form for GPUs may be wrong."""

    inputs = (2, 2)
    outputs = 2
    most = arg("int", None, doc="Upper bound of the number; by default all elements.", per_row=True)
    form = arg("str", "BooleanMask", doc="Class of the kernel for GPUs.")

    def lower(self, c: Lowering, x: Value, mask: Value) -> tuple[Value, ...]:
        blocks = (math.prod(x.shape) + 2047) // 2048
        own = Launches(c.const("form"), {"place": LaunchPass(1, 1024), "copy": blocks}, 4 * x.shape[0])
        most = c.scalar("most") if c.given("most") else x.shape[0]
        outputs = [(x.dtype, (None, *x.shape[1:]), x.layout)]
        return c.native("boolean_mask", [x, mask], outputs, max_output=most, own=own)

    def reference(self, row: RowContext, x: Any, mask: Any) -> Any:
        return x[mask], np.asarray(np.count_nonzero(mask), np.int32)


register(Masked)


def sample(index: int) -> tuple[np.ndarray, np.ndarray]:
    """Return data of none to many elements, and a mask: of some rows all, of some none are kept."""
    rng = np.random.default_rng(index)
    data = rng.normal(0, 40, (int(rng.integers(0, 12)), 3)).astype(np.float32)
    return data, rng.random(len(data)) < (1.0, 0.5, 0.0)[index % 3]


def kept(index: int) -> np.ndarray:
    data, mask = sample(index)
    return data[mask]


def expected(index: int) -> list[np.ndarray]:
    """Return the outputs of :func:`keeping` for a sample."""
    own = kept(index)
    return [own, np.asarray(len(own), np.int32), own * np.float32(2) + np.float32(1), own]


@pipeline_def(batch_size=4, num_threads=2, seed=3)
def keeping(on_gpu: bool = False, **arguments: Any) -> Any:
    """The kept elements, their number, a function of each, and the first output once more."""
    data, mask = masked_samples()
    selected, count = fn.test_masked(data.gpu() if on_gpu else data, mask, **arguments)
    return selected, count, selected * 2 + 1, selected


def masked_samples() -> tuple[Any, Any]:
    """Return the data and the masks of :func:`sample`, in an endless epoch."""
    samples: Any = fn.external_source(
        source=lambda info: sample(info.idx_in_epoch),
        num_outputs=2,
        batch=False,
        dtype=["float32", "bool"],
        ndim=[2, 1],
    )
    return tuple(samples)  # type: ignore[return-value]


def write_files(folder: Path) -> list[str]:
    """Write files, of which number n has n % 7 bytes above 127 among others."""
    rng = np.random.default_rng(5)
    names = []
    for number in range(ROWS):
        data = np.concatenate([rng.integers(128, 256, number % 7), rng.integers(0, 128, 9)]).astype(np.uint8)
        names.append(str(folder / f"{number:02}"))
        Path(names[-1]).write_bytes(rng.permutation(data).tobytes())
    return names


@pipeline_def(batch_size=4, num_threads=2, seed=3, error_limit=1.0)
def files_kept(files: list[str], on_gpu: bool = False, **arguments: Any) -> Any:
    """The bytes of files above 127, their number, and the file's."""
    data, label = fn.readers.file(files=files)
    selected, count = fn.test_masked(data.gpu() if on_gpu else data, data > 127, **arguments)
    return selected, count, label


def rows_of(outputs: Any) -> list[list[np.ndarray]]:
    """Return the rows of a batch, each with an array per output, in host memory."""
    columns = [[np.array(x) for x in output.as_cpu()] for output in outputs]
    return [list(row) for row in zip(*columns, strict=True)]


def assert_rows(got: Any, want: Any) -> None:
    """Compare rows: types, shapes and bytes."""
    assert len(got) == len(want)
    for number, (row, other) in enumerate(zip(got, want, strict=True)):
        for a, b in zip(row, other, strict=True):
            assert a.dtype == b.dtype and a.shape == b.shape, (number, a.shape, b.shape)
            assert a.tobytes() == b.tobytes(), number
