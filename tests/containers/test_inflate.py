# SPDX-License-Identifier: Apache-2.0
"""`decoders.inflate`: blocks of LZ4 by the kernel, the reference and a decoder in Python."""

from __future__ import annotations

import re
from typing import Any

import numpy as np
import pytest

from containers import lz4_block, lz4_sequences
from stoker import Pipeline, eager, fn, types
from stoker.contract.errors import ArgumentError, DataError
from stoker.contract.types import DType
from stoker.native import _native
from stoker.ops.generic.decode_inflate import DecodeInflate
from stoker.testing.tolerances import assert_exact

DAMAGED = "expected an LZ4 block of this size"


def stored(contents: bytes) -> np.ndarray[Any, Any]:
    """Return a block of literal bytes."""
    return np.frombuffer(lz4_block([(contents, 0, 0)])[0], np.uint8)


BLOCKS = [stored(bytes(range(6 * i, 6 * i + 6))) for i in range(5)]
VALUES = np.arange(30, dtype=np.uint8).reshape(5, 2, 3)


@pytest.mark.parametrize("seed", range(60))
def test_blocks_of_any_sequences(seed: int) -> None:
    block, contents = lz4_block(lz4_sequences(seed, 1 + seed * 3))
    data = np.frombuffer(block, np.uint8)
    found = _native.decompress_lz4(data, len(contents))
    assert found.tobytes() == contents
    for size in {0, len(contents) - 1, len(contents) + 1, len(contents) + 100, len(contents) // 2}:
        with pytest.raises(ValueError, match=DAMAGED):
            _native.decompress_lz4(data, size)
    with pytest.raises(ValueError, match=DAMAGED):
        _native.decompress_lz4(data[: len(data) // 2], len(contents))


@pytest.mark.parametrize("distance", [*range(1, 40), 63, 64, 65])
def test_all_distances(distance: int) -> None:
    """Matches of all lengths, far from the end of the contents and near it."""
    start = bytes(range(7, 7 + max(distance, 20)))
    for match in (*range(4, 70), 255, 1000):
        for rest in (b"", b"x", b"abcdefgh" * 4, b"y" * 90):
            block, contents = lz4_block([(start, distance, match), (b"", distance, 4), (rest, 0, 0)])
            assert _native.decompress_lz4(np.frombuffer(block, np.uint8), len(contents)).tobytes() == contents


@pytest.mark.parametrize("back", [0, 1, 2, 300])
def test_distances_before_the_contents(back: int) -> None:
    """A distance of 0, and some that begin before the first byte, in blocks that are short and long."""
    for count in (3, 100):
        literals = bytes(count)
        distance = 0 if back == 0 else count + back
        block = bytearray(lz4_block([(literals, 1, 9), (b"z" * 99, 0, 0)])[0])
        at = len(block) - 99 - 2 - 2
        assert bytes(block[at : at + 2]) == b"\1\0"
        block[at : at + 2] = distance.to_bytes(2, "little")
        with pytest.raises(ValueError, match=DAMAGED):
            _native.decompress_lz4(np.frombuffer(bytes(block), np.uint8), count + 9 + 99)


def run(rows: list[Any], **arguments: Any) -> list[Any]:
    """Return the rows of a pipeline. Arguments that are lists of arrays differ from row to row."""
    pipe = Pipeline(batch_size=len(rows), num_threads=2, device_id=None, exec_async=False)
    with pipe:
        given = {k: fn.external_source([v]) if isinstance(v, list) and isinstance(v[0], np.ndarray) else v
                 for k, v in arguments.items()}  # fmt: skip
        pipe.set_outputs(fn.decoders.inflate(fn.external_source([rows]), **given))
    with pipe:
        return [np.array(row) for row in pipe.run()[0]]


def reference(data: Any, **arguments: Any) -> Any:
    row: Any = {"dtype": DType.UINT8, "chunk_offsets": None, "chunk_sizes": None, **arguments}
    return DecodeInflate().reference(row, data)


def test_rows_with_other_blocks_and_extents() -> None:
    counts = [np.array([0, 2, 4]), np.array([], np.int32), np.array(3), np.array([[1], [0]], np.uint16)]
    counts = [c.astype(np.int64) for c in counts]
    joined = [np.concatenate([BLOCKS[k] for k in c.reshape(-1)] or [np.zeros(0, np.uint8)]) for c in counts]
    sizes = [np.full(c.size, 7, np.int32) for c in counts]
    offsets = [np.arange(c.size, dtype=np.int64) * 7 for c in counts]
    extents = [np.array(e) for e in ([2, 3], [3, 2], [1, 6], [6, 1])]
    for given in ({"chunk_sizes": sizes}, {"chunk_offsets": offsets}, {"chunk_sizes": sizes, "chunk_offsets": offsets}):
        found = run(joined, shape=extents, **given)
        for i, (c, e) in enumerate(zip(counts, extents, strict=True)):
            assert_exact(found[i], VALUES[c.reshape(-1)].reshape(-1, *e))
            assert_exact(found[i], reference(joined[i], shape=e, **{k: v[i] for k, v in given.items()}))


def test_blocks_overlap_and_repeat() -> None:
    data = np.concatenate(BLOCKS)
    offsets, sizes = [28, 0, 0, 7], [7, 7, 7, 7]
    found = eager.decoders.inflate(data, shape=6, chunk_offsets=offsets, chunk_sizes=sizes, layout="X")
    assert_exact(found, VALUES[[4, 0, 0, 1]].reshape(4, 6))
    assert_exact(eager.decoders.inflate(data[:7], shape=6, chunk_sizes=7), VALUES[:1].reshape(1, 6))


@pytest.mark.parametrize("dtype", [types.INT16, types.FLOAT, types.INT64])
def test_types_and_strides(dtype: Any) -> None:
    values = np.arange(-3, 3).astype(DType.of(dtype).numpy)
    block = stored(values.tobytes())
    assert_exact(eager.decoders.inflate(block, shape=[3, 2], dtype=dtype), values.reshape(3, 2))
    reversed_block = np.repeat(block[::-1], 2)
    pipe = Pipeline(batch_size=1, num_threads=1, device_id=None, exec_async=False)
    with pipe:
        data = fn.external_source([[reversed_block]])
        data = fn.flip(fn.reshape(data, shape=[-1, 2], layout="HW")[:, 0:1], vertical=1, horizontal=0)
        pipe.set_outputs(fn.decoders.inflate(fn.squeeze(data, axes=1), shape=6, dtype=dtype))
    with pipe:
        assert_exact(np.array(pipe.run()[0][0]), values)


def test_contents_without_elements() -> None:
    data = stored(b"")
    assert np.asarray(eager.decoders.inflate(data, shape=[0, 3])).shape == (0, 3)
    assert np.asarray(eager.decoders.inflate(data, shape=[2, 3], chunk_sizes=[])).shape == (0, 2, 3)
    assert np.asarray(eager.decoders.inflate(data[:0], shape=[2, 3], chunk_sizes=[])).shape == (0, 2, 3)


@pytest.mark.parametrize("per_row", [False, True])
@pytest.mark.parametrize(
    ("arguments", "text"),
    [
        ({"shape": [5]}, DAMAGED),
        ({"shape": [7]}, DAMAGED),
        ({"shape": [1 << 20]}, DAMAGED),
        ({"shape": [6], "chunk_sizes": [7, 6]}, DAMAGED),
        ({"shape": [6], "chunk_sizes": [7, 8]}, "expected blocks in the 14 bytes of the input, got [(0, 7), (7, 15)]"),
        ({"shape": [6], "chunk_sizes": [9, -2]}, "expected blocks in the 14 bytes of the input, got [(0, 9), (9, 7)]"),
        ({"shape": [6], "chunk_offsets": [-1]}, "expected blocks in the 14 bytes of the input, got [(-1, 14)]"),
        (
            {"shape": [6], "chunk_offsets": [7, 0]},
            "expected blocks in the 14 bytes of the input, got [(7, 0), (0, 14)]",
        ),
        ({"shape": [6], "chunk_offsets": [0], "chunk_sizes": [1 << 40]}, "of the input, got [(0, 1099511627776)]"),
        ({"shape": [6], "chunk_sizes": [0, 7, 0, 0, 99]}, "of the input, got [(0, 0), (0, 7), (7, 7), (7, 7)]"),
        (
            {"shape": [6], "chunk_offsets": [0, 7], "chunk_sizes": [7]},
            "expected as many `chunk_offsets` as `chunk_sizes`, got 2 and 1",
        ),
        ({"shape": [-1, 3]}, "expected extents of at most 2**40 bytes as `shape`, got [-1, 3]"),
        ({"shape": [-2, -3]}, "expected extents of at most 2**40 bytes as `shape`, got [-2, -3]"),
        ({"shape": [1 << 20, 1 << 21]}, "of at most 2**40 bytes as `shape`, got [1048576, 2097152]"),
        ({"shape": [1 << 62, 1 << 62]}, "of at most 2**40 bytes as `shape`, got [461168601842738"),
    ],
)
def test_errors_are_those_of_the_reference(arguments: dict[str, list[int]], text: str, per_row: bool) -> None:
    data = np.concatenate(BLOCKS[:2])
    with pytest.raises(ValueError, match=re.escape(text)):
        reference(data, **arguments)
    given: Any = {k: [np.array(v)] for k, v in arguments.items()} if per_row else arguments
    with pytest.raises((ArgumentError, DataError), match=re.escape(text)):
        run([data], **given)


def test_a_damaged_row_is_replaced() -> None:
    rows = [BLOCKS[0], BLOCKS[1][:-1], BLOCKS[2]]
    found = []
    for row in rows:
        try:
            found.append(np.asarray(eager.decoders.inflate(row, shape=[2, 3])))
        except DataError as error:
            assert DAMAGED in str(error)
    assert_exact(np.stack(found), VALUES[[0, 2]])


@pytest.mark.parametrize(
    ("data", "arguments", "text"),
    [
        (BLOCKS[0].astype(np.int16), {"shape": 6}, "expected bytes, uint8 (N,), got int16"),
        (BLOCKS[0][None], {"shape": 6}, "expected bytes, uint8 (N,)"),
        (BLOCKS[0], {"shape": []}, "expected a `shape` of 1 to 7 extents, got 0"),
        (BLOCKS[0], {"shape": [1] * 8}, "expected a `shape` of 1 to 7 extents, got 8"),
        (BLOCKS[0], {"shape": 6, "layout": "AB"}, "expected a `layout` of 1 axes"),
        (BLOCKS[0], {"shape": 6, "chunk_sizes": 7, "sequence_axis_name": "FF"}, "expected one character"),
    ],
)
def test_arguments_that_do_not_fit(data: Any, arguments: dict[str, Any], text: str) -> None:
    with pytest.raises((ArgumentError, DataError), match=re.escape(text)):
        eager.decoders.inflate(data, **arguments)
