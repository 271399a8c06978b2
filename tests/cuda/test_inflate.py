# SPDX-License-Identifier: Apache-2.0
"""`decoders.inflate` on a GPU: the CPU's contents, and its errors for damaged blocks."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import pytest
from test_own_kernels import compare_rows, gpu, rows_of  # noqa: F401

from containers import lz4_block, lz4_sequences
from stoker import fn, pipeline_def, types
from stoker.contract.errors import DataError
from stoker.contract.types import DType
from tests.complete import sample


def inflated_rows(counts: Sequence[int]) -> tuple[list[np.ndarray], list[np.ndarray], list[bytes]]:
    """Return rows of as many LZ4 blocks with 600 bytes each, their sizes, and their contents."""
    rows, sizes, contents = [], [], []
    for i, count in enumerate(counts):
        blocks = []
        for k in range(count):
            sequences = lz4_sequences(100 * i + k, 12)
            while (size := len(lz4_block(sequences)[1])) > 600:
                sequences = [*sequences[:-2], sequences[-1]]
            sequences[-1] = (sequences[-1][0] + bytes(600 - size), 0, 0)
            blocks.append(lz4_block(sequences))
        rows.append(np.frombuffer(b"".join(block for block, _ in blocks), np.uint8))
        sizes.append(np.array([len(block) for block, _ in blocks], np.int32))
        contents.append(b"".join(content for _, content in blocks))
    return rows, sizes, contents


@pytest.mark.parametrize("dtype", sample([types.UINT8, types.INT16, types.FLOAT64], 2))
def test_inflate(dtype: Any) -> None:
    """Rows of several blocks and of none; a row that is one block; blocks of a reversed input."""
    size = DType.of(dtype).size
    rows, sizes, contents = inflated_rows([1, 3, 0, 2])

    def several(x: Any, sizes: Any) -> Any:
        return (fn.decoders.inflate(x, shape=[600 // size // 5, 5], dtype=dtype, chunk_sizes=sizes),)

    for got, want in zip(compare_rows([rows, sizes], ["", ""], several)[0], contents, strict=True):
        assert got.tobytes() == want
    single, _, contents = inflated_rows([1] * 5)
    backwards = [np.repeat(x[::-1], 2).reshape(-1, 2) for x in single]

    def one(x: Any) -> Any:
        x = fn.flip(x, horizontal=0, vertical=1)
        return (fn.decoders.inflate(fn.squeeze(x[:, 0:1], axes=1), shape=600 // size, dtype=dtype),)

    for got, want in zip(compare_rows([backwards], ["HW"], one)[0], contents, strict=True):
        assert got.tobytes() == want


@pytest.mark.parametrize("damage", ["distance", "zero", "end", "short", "long"])
def test_a_damaged_block_fails_its_row(damage: str) -> None:
    rows, _, contents = inflated_rows([1] * 4)
    literals = bytes(range(40))
    bad = bytearray(lz4_block([(literals, 7, 30), (b"z" * 530, 0, 0)])[0])
    at = 2 + len(literals)
    assert bytes(bad[at : at + 2]) == b"\7\0"
    if damage in ("distance", "zero"):
        bad[at : at + 2] = (41 if damage == "distance" else 0).to_bytes(2, "little")
    elif damage == "end":
        bad = bad[:-1]
    else:
        bad = bytearray(lz4_block([(literals, 7, 30), (b"z" * (529 if damage == "short" else 531), 0, 0)])[0])
    rows[2] = np.frombuffer(bytes(bad), np.uint8)

    @pipeline_def(batch_size=4, num_threads=2, on_error="skip" if damage == "end" else "raise")
    def pipe(on_gpu: bool) -> Any:
        x = fn.external_source(source=lambda info: rows[info.idx_in_batch], batch=False)
        return fn.decoders.inflate(x.gpu() if on_gpu else x, shape=600)

    for on_gpu in (False, True):
        with pipe(on_gpu, **({"device_id": 0} if on_gpu else {})) as running:
            if damage == "end":
                found = [row.tobytes() for row in rows_of(running.run()[0])]
                assert found == contents[:2] + contents[3:]
            else:
                with pytest.raises(DataError, match=r"expected an LZ4 block of this size.*row 2"):
                    running.run()


def test_blocks_outside_of_the_input() -> None:
    rows, sizes, _ = inflated_rows([2, 2])
    sizes[1] = sizes[1] + 1

    @pipeline_def(batch_size=2, num_threads=2, device_id=0)
    def pipe() -> Any:
        x = fn.external_source(source=lambda info: rows[info.idx_in_batch], batch=False)
        counts = fn.external_source(source=lambda info: sizes[info.idx_in_batch], batch=False)
        return fn.decoders.inflate(x.gpu(), shape=600, chunk_sizes=counts)

    with pipe() as running, pytest.raises(DataError, match=r"expected blocks in the \d+ bytes of the input, got \["):
        running.run()
