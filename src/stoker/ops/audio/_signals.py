# SPDX-License-Identifier: Apache-2.0
"""Shared code of audio operators: their inputs, weights over bins, and signals for tests."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any, NamedTuple

import numpy as np

from ...contract import expr as ex
from ...contract.errors import UnsupportedError
from ...contract.expr import Scalar
from ...contract.lowering import Lowering
from ...contract.samples import Rows, each
from ...contract.step import ALIASES, MAX_SHARED_BYTES, Joint, Launches, LaunchPass, Tiles, Value, ViewOp
from ...contract.streaming import StreamRule, elementwise
from ...contract.types import DType

_MOST_WEIGHTS = 1 << 24  # of a table that is made while planning (native/kernels/signal_tables.cpp)
SPECTRA = "spectra"  # the joint of a filter, a spectrogram and weighted sums (contract.step.Joint)
_THREADS = 256  # sums of a GPU block (native/device/own_project.cuh)
MAX_NFFT = 1 << 20  # native/shared/fft.hpp
MOST_FRAMES = 16  # of a GPU block that transforms any number of points
_FACTORS = 1024  # of a GPU block that makes a table (native/device/own_factors.cuh)
_SHARED_BYTES = 96 * 1024  # of a block with several frames, so that a multiprocessor has two blocks
_OWN_BYTES = 256  # of shared memory, which kernels declare themselves
_ROOM = 48 * 1024 - _OWN_BYTES  # bytes of dynamic shared memory that every GPU has for a block
_LONGEST = 1 << 40  # native/base/whole.hpp: kFarApart


def expect_floats(c: Lowering, x: Value) -> None:
    """Require float32 data with at least one axis."""
    c.expect(
        x.dtype == DType.FLOAT and x.rank > 0,
        f"expected float32 with at least one axis, got {x.dtype} with {x.rank} axes; `decoders.audio` gives float32, "
        "`cast` converts other numbers",
    )


def mono(c: Lowering, x: Value) -> Value:
    """Return a signal of one channel without the axis of channels."""
    text = "expected one channel, got {0}; `decoders.audio(downmix=True)` gives one, or take one with `slice`"
    c.expect(x.rank in (1, 2), f"expected a signal with one axis (and one for channels), got {x.rank} axes")
    if x.rank == 1:
        return x
    c.require(ex.equal(x.shape[1], 1), text, x.shape[1])
    return c.view(x, [ViewOp("drop", 1)], "")


def without_gaps(c: Lowering, x: Value) -> Value:
    """Return a signal whose samples follow each other in memory, as a table of a pixel program must."""
    return c.view(x, [ViewOp("reshape", list=x.shape)], "", may_copy=True)


def frequency_axis(c: Lowering, x: Value) -> int:
    """Return the axis of the bins: f of the layout, or the last but one."""
    if x.layout:
        c.expect("f" in x.layout, f"expected an axis f in the layout, got {x.layout!r}")
        return x.layout.index("f")
    return max(x.rank - 2, 0)


def along_axis(c: Lowering, x: Value, axis: int, kernel: str, rows: int, constants: tuple[Any, ...]) -> Value:
    """Return the sums over an axis, weighted by the rows that ``kernel`` computes for its extent.

    If the extent is known while planning, the rows are a constant table, as wide as the widest band.
    """
    bins = x.shape[axis]
    if ex.is_static(bins) and 2 <= bins <= _MOST_WEIGHTS // rows:
        weights = c.opaque(DType.FLOAT, 2)
        c.emit(kernel, [], [weights], attrs=(*constants, bins), memory=ALIASES)
    else:
        result = [(DType.FLOAT, (rows, bins + 2), "")]
        (weights,) = c.native(kernel, [], result, attrs=(*constants, 0), params=(bins,))
    return _projected(c, x, axis, rows, weights)


def weighted_by(c: Lowering, x: Value, axis: int, weights: Any) -> Value:
    """Return the sums over an axis, weighted by constant rows, float32 ``(rows, bins)``."""
    return _projected(c, x, axis, len(weights), c.constant(_banded(weights)))


def _banded(weights: Any) -> Any:
    """Return the first bin with a weight, the bin after the last one, and the weights between them, of each row."""
    bins = [np.flatnonzero(row) for row in weights]
    ends = [(int(b[0]), int(b[-1]) + 1) if len(b) else (0, 0) for b in bins]
    found = np.zeros((len(weights), 2 + max(end - begin for begin, end in ends)), np.float32)
    for to, row, (begin, end) in zip(found, weights, ends, strict=True):
        to[:2] = begin, end
        to[2 : 2 + end - begin] = row[begin:end]
    return found


def _projected(c: Lowering, x: Value, axis: int, rows: int, weights: Value) -> Value:
    shape = (*x.shape[:axis], rows, *x.shape[axis + 1 :])
    sums = (math.prod(shape) + _THREADS - 1) // _THREADS
    own = Launches("Project", {"sums": sums})
    tiles = in_tiles("columns", "columns", 1 - axis) if x.rank == 2 else None
    return c.native(
        "project", [x, weights], [(DType.FLOAT, shape, x.layout)], attrs=(axis,), params=(axis,), own=own, tiles=tiles,
        joint=Joint(SPECTRA),
    )[0]  # fmt: skip


def fft_table(c: Lowering, nfft: int) -> Value:
    """Return the factors of a transform."""
    table = c.opaque(DType.FLOAT, 1)
    c.emit("fft_table", [], [table], attrs=(nfft,), memory=ALIASES)
    return table


def complex_points(nfft: int) -> int:
    """Return the complex points of a real transform (native/shared/fft.hpp)."""
    return nfft if nfft % 2 else nfft // 2


def without_factors(n: int) -> int:
    """Return a number without its factors 2, 3 and 5."""
    for factor in (2, 3, 5):
        while n % factor == 0:
            n //= factor
    return n


class FrameBlocks(NamedTuple):
    """GPU blocks that transform frames (native/device/own_transforms.cuh).

    Attributes:
        frames: frames of a block.
        shared_bytes: shared memory of a block; 0: a frame does not fit.
        device_bytes: device memory of a frame, which then has the transform.
    """

    frames: Scalar
    shared_bytes: Scalar
    device_bytes: Scalar

    @property
    def numbers(self) -> tuple[Scalar, Scalar]:
        """Numbers of the kernel: frames of a block, and whether its memory is shared memory."""
        return self.frames, ex.where(self.shared_bytes > 0, 1, 0)

    def launch(self, blocks: Scalar) -> LaunchPass:
        """Return the launch of a pass with this many blocks."""
        shared = self.shared_bytes
        return LaunchPass(blocks, 256, shared, shared if isinstance(shared, int) else _ROOM)


def blocks_of_frames(nfft: int) -> FrameBlocks:
    """Return the blocks for a transform."""
    length = complex_points(nfft)
    if without_factors(length) != 1:  # Bluestein's algorithm (native/shared/fft.hpp)
        length = 1 << (2 * length - 2).bit_length()
    return blocks_of_length(length)


def blocks_of_length(length: Scalar) -> FrameBlocks:
    """Return the blocks for complex transforms of ``length`` points. A frame has two pairs of arrays; every sixteenth
    element is unused. Lengths that differ by row use the shared memory that every GPU has, because it is requested for
    the longest possible one when the kernel is loaded.
    """
    frame_bytes = 4 * 4 * (length + length // 16 + 1)
    known = isinstance(length, int)
    fits = frame_bytes <= (MAX_SHARED_BYTES - _OWN_BYTES if known else _ROOM)
    count = ex.where(fits, ex.clamp((_SHARED_BYTES if known else _ROOM) // frame_bytes, 1, MOST_FRAMES), 1)
    return FrameBlocks(count, ex.where(fits, count * frame_bytes, 0), ex.where(fits, 0, frame_bytes))


def factor_blocks(floats: Scalar) -> Scalar:
    """Return the GPU blocks that make a table of ``floats`` (native/device/own_factors.cuh)."""
    return (floats // 2 + _FACTORS - 1) // _FACTORS


def across_time(axis: int, time: int) -> StreamRule:
    """Return the rule for streams of an operator along an axis, which must not be that of time."""
    if axis == time:
        raise UnsupportedError(f"expected another axis than that of time ({time}), which a stream gives in parts")
    return elementwise(time)


def in_tiles(takes: str, gives: str, axis: int | None = None) -> Tiles:
    """Return the trait of kernels that can join a chain (native/kernels/tiled.cpp)."""
    return Tiles("tiled", takes, gives, axis)


def weighted(x: Any, weights: Any, axis: int) -> Any:
    """Return the sums of :func:`along_axis` in NumPy."""
    return np.moveaxis(np.tensordot(weights, x.astype(np.float64), (1, axis)), 0, axis).astype(np.float32)


def signals(case: Mapping[str, Any]) -> Rows:
    """Return clips of different lengths, with tones and noise."""
    rows = []
    for i, size in enumerate((700, 1201, 333)):
        t, rng = np.arange(size), np.random.default_rng(i)
        rows.append((0.2 * np.sin(t * (0.05 + 0.1 * i)) + rng.normal(0, 0.02, size)).astype(np.float32))
    return each(*rows)


def spectra(case: Mapping[str, Any]) -> Rows:
    """Return power spectra, axes f and t."""
    return each(*(np.random.default_rng(i).uniform(0, 1, (65, 9 + 8 * i)).astype(np.float32) for i in range(3)))


def at_least(c: Lowering, name: str, least: int) -> int:
    """Return a constant integer argument that must not be smaller, nor larger than any signal."""
    value: int = c.const(name)
    c.expect(value >= least, f"expected `{name}` of at least {least}, got {value}")
    c.expect(value <= _LONGEST, f"expected `{name}` of at most {_LONGEST}, got {value}")
    return value


def is_finite(value: float) -> bool:
    """Return whether a constant is a finite number."""
    return math.isfinite(value)
