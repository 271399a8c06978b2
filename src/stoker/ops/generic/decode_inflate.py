# SPDX-License-Identifier: Apache-2.0
"""``decoders.inflate``."""

from __future__ import annotations

import functools
import math
from collections.abc import Mapping
from typing import Any

import numpy as np

from ...contract import expr as ex
from ...contract import samples
from ...contract.argument import arg
from ...contract.lowering import Lowering
from ...contract.operator import Operator, RowContext
from ...contract.step import GpuForm, Launches, LaunchPass, Value
from ...contract.types import DType
from ...native import _native

_MOST_BYTES = 1 << 40
_MOST_RATIO = 255  # a byte of a block adds at most this many bytes
_DAMAGED = "expected an LZ4 block of this size"


def _block(data: bytes) -> bytes:
    """Return an LZ4 block of literal bytes only."""
    size = len(data)
    rest = size - 15
    more = b"" if rest < 0 else b"\xff" * (rest // 255) + bytes([rest % 255])
    return bytes([min(size, 15) << 4]) + more + data


class DecodeInflate(Operator, name="decoders.inflate"):
    """Decompress LZ4 blocks. Input: uint8 (N,). Output: elements of `dtype`, of the given `shape`.

    With `chunk_offsets` or `chunk_sizes` the input has several blocks, and the output has an axis for them in front.
    Without offsets the blocks follow each other; without sizes, each ends where the next one begins. A block that is
    damaged, or does not have the bytes of the shape, is an error of its row.
    """

    shape = arg("int", many=True, per_axis=True, per_row=True, doc="Extents of a decompressed block.")
    dtype = arg("dtype", DType.UINT8, doc="Type of the elements, little-endian as stored.")
    algorithm = arg("str", "LZ4", choices=("LZ4",), doc="Accepted: LZ4, blocks without a frame.")
    chunk_offsets = arg("int", None, many=True, per_row=True, doc="First byte of each block.")
    chunk_sizes = arg("int", None, many=True, per_row=True, doc="Bytes of each block.")
    check_output_size = arg("bool", False, doc="No effect: sizes are always checked.")
    layout = arg("str", "", doc="Names of the axes of a block.")
    sequence_axis_name = arg("str", "F", doc="Name of the axis of blocks, if the blocks' axes have names.")
    cases = ({"shape": [2, 3]}, {"shape": [6], "dtype": DType.UINT8, "chunk_sizes": [7, 7]})

    @classmethod
    def case_inputs(cls, case: Mapping[str, Any]) -> samples.Rows:
        count = len(case.get("chunk_sizes", (0,)))
        blocks = [b"".join(_block(bytes(range(i + k, i + k + 6))) for k in range(count)) for i in range(3)]
        return [(np.frombuffer(block, np.uint8),) for block in blocks]

    def lower(self, c: Lowering, data: Value) -> Value:
        c.expect(data.dtype == DType.UINT8 and data.rank == 1, f"expected bytes, uint8 (N,), got {data.dtype}")
        rank = c.fixed_length("shape")
        c.expect(1 <= rank <= 7, "expected a `shape` of 1 to 7 extents, got {0}", rank)
        layout, dtype = c.const("layout"), c.const("dtype")
        c.expect(len(layout) in (0, rank), f"expected a `layout` of {rank} axes, as the shape has, got {layout!r}")
        extents = [c.scalar("shape", i) for i in range(rank)]
        shape = [n if ex.is_static(n) else ex.trunc(n) for n in extents]
        bytes_of_block = dtype.size * math.prod(shape)
        at_least_0 = functools.reduce(ex.both, [n >= 0 for n in shape])
        fits = ex.both(at_least_0, bytes_of_block <= _MOST_BYTES)
        got = ", ".join(f"{{{i}}}" for i in range(rank))
        c.require(fits, f"expected extents of at most 2**40 bytes as `shape`, got [{got}]", *shape)
        places = {k: _numbers(c, k) for k in ("chunk_offsets", "chunk_sizes") if c.given(k)}
        counts = [math.prod(x.shape) for x in places.values()]
        could_be = bytes_of_block <= _MOST_RATIO * data.shape[0]
        could_be = ex.either(ex.equal(counts[0], 0), could_be) if counts else could_be
        c.require(could_be, _DAMAGED)
        # An output may get its memory before the row is checked.
        shape = [n if ex.is_static(n) else ex.where(ex.both(fits, could_be), n, 0) for n in shape]
        if len(counts) == 2:
            text = "expected as many `chunk_offsets` as `chunk_sizes`, got {0} and {1}"
            c.require(ex.equal(*counts), text, *counts)
        if counts:
            name = c.const("sequence_axis_name")
            c.expect(len(name) == 1, f"expected one character as `sequence_axis_name`, got {name!r}")
            shape = [counts[0], *shape]
            layout = name + layout if layout else ""
        spans: tuple[Value, ...] = ()
        if counts:
            attrs = ("chunk_offsets" in places, "chunk_sizes" in places)
            out = (DType.INT64, (counts[0], 2), "")
            spans = c.native("block_spans", [*places.values()], [out], attrs=attrs, params=(data.shape[0],))
        own = Launches("Inflate", {"decode": LaunchPass(counts[0] if counts else 1, threads=32)}, fault=_DAMAGED)
        return c.native(
            "inflate_lz4", [data, *spans], [(dtype, shape, layout)], attrs=(bool(counts),), params=own.numbers(),
            gpu=GpuForm(own.kernel()),
        )[0]  # fmt: skip

    def reference(self, row: RowContext, data: Any) -> Any:
        shape = [int(n) for n in np.reshape(row["shape"], -1)]
        dtype = DType.of(row["dtype"])
        bytes_of_block = dtype.size * int(np.prod([float(n) for n in shape]))
        if any(n < 0 for n in shape) or bytes_of_block > _MOST_BYTES:
            raise ValueError(f"expected extents of at most 2**40 bytes as `shape`, got {shape}")
        offsets, sizes = row["chunk_offsets"], row["chunk_sizes"]
        given = [np.size(x) for x in (offsets, sizes) if x is not None]
        if bytes_of_block > _MOST_RATIO * len(data) and given[:1] != [0]:
            raise ValueError(_DAMAGED)
        spans = _spans(len(data), offsets, sizes)
        blocks = [_native.decompress_lz4(np.ascontiguousarray(data[a:b]), bytes_of_block) for a, b in spans]
        arrays = [block.view(dtype.numpy).reshape(shape) for block in blocks]
        if offsets is None and sizes is None:
            return arrays[0]
        return np.stack(arrays) if arrays else np.empty((0, *shape), dtype.numpy)


def _numbers(c: Lowering, name: str) -> Value:
    """Return a list of numbers as a tensor."""
    given = c.pass_on(name)
    if isinstance(given, Value):
        return c.with_properties(given, per_frame=False) if given.per_frame else given
    numbers = [int(n) for n in np.reshape(np.asarray(given, object), -1)]
    wide = next((n for n in numbers if not -(1 << 63) <= n < 1 << 63), None)
    c.expect(wide is None, f"expected numbers of int64 in `{name}`, got {wide}")
    return c.constant(np.array(numbers, np.int64))


def _spans(size: int, offsets: Any, sizes: Any) -> list[tuple[int, int]]:
    """Return begin and end of each block in an input of ``size`` bytes."""
    if offsets is None and sizes is None:
        return [(0, size)]
    lengths = None if sizes is None else [int(n) for n in np.reshape(sizes, -1)]
    if offsets is None:
        assert lengths is not None, "one of both is given"
        begins = [int(n) for n in np.cumsum([0, *lengths])[:-1]]
    else:
        begins = [int(n) for n in np.reshape(offsets, -1)]
    if lengths is None:
        lengths = [b - a for a, b in zip(begins, [*begins, size][1:], strict=True)]
    if len(begins) != len(lengths):
        raise ValueError(f"expected as many `chunk_offsets` as `chunk_sizes`, got {len(begins)} and {len(lengths)}")
    spans = [(a, a + n) for a, n in zip(begins, lengths, strict=True)]
    if any(not 0 <= a <= b <= size for a, b in spans):
        raise ValueError(f"expected blocks in the {size} bytes of the input, got {spans[:4]}")
    return spans
