# SPDX-License-Identifier: Apache-2.0
"""Lists of arrays that eager calls read once, and lists of numbers, against single calls and hostile inputs."""

from __future__ import annotations

import pickle
import threading
from typing import Any

import numpy as np
import pytest

import stoker
from stoker import eager
from stoker.contract.types import DType
from stoker.native import _native

DTYPES = {t.numpy: int(t) for t in DType if t != DType.BFLOAT16}


def read(data: Any) -> Any:
    return _native.array_rows(data, np.ndarray, DTYPES)


def image(seed: int, shape: tuple[int, ...] = (6, 8, 3), dtype: str = "uint8") -> np.ndarray:
    return np.random.default_rng(seed).integers(0, 256, shape).astype(dtype)


class Subclass(np.ndarray):
    """Array whose interface would give other memory than its elements."""

    @property
    def __array_struct__(self) -> Any:
        raise AssertionError("the native code reads arrays of NumPy's own class alone")


class Exporter:
    """Object that has DLPack's protocol and nothing else."""

    def __init__(self, array: np.ndarray) -> None:
        self.array = array

    def __dlpack__(self, **arguments: Any) -> Any:
        return self.array.__dlpack__(**arguments)

    def __dlpack_device__(self) -> tuple[int, int]:
        return self.array.__dlpack_device__()


def read_only(x: np.ndarray) -> np.ndarray:
    x.flags.writeable = False
    return x


def unaligned(x: np.ndarray) -> np.ndarray:
    memory = np.empty(x.nbytes + 1, np.uint8)[1:]
    found = memory.view(x.dtype).reshape(x.shape)
    found[...] = x
    return found


VIEWS: dict[str, Any] = {
    "contiguous": lambda x: x,
    "reversed rows": lambda x: x[::-1],
    "reversed columns": lambda x: x[:, ::-1],
    "every second": lambda x: x[::2, 1::2],
    "transposed": lambda x: x.transpose(1, 0, 2),
    "channels reversed": lambda x: x[..., ::-1],
    "broadcast": lambda x: np.broadcast_to(x[:1], x.shape),
    "read-only": read_only,
    "Fortran order": np.asfortranarray,
    "unpickled": lambda x: pickle.loads(pickle.dumps(x)),
    "one column": lambda x: x[:, 3:4],
    "no rows of a larger array": lambda x: x[2:3, 2:3],
}
OTHERS: dict[str, Any] = {
    "byte-swapped": lambda x: x.astype(x.dtype.newbyteorder()),
    "unaligned": unaligned,
    "subclass": lambda x: x.view(Subclass),
    "masked": np.ma.array,
    "DLPack": Exporter,
}


@pytest.mark.parametrize("dtype", ["uint8", "int16", "float32", "float64"])
@pytest.mark.parametrize("name", VIEWS)
def test_lists_of_views_give_the_results_of_single_calls(name: str, dtype: str) -> None:
    rows = [VIEWS[name](image(k, dtype=dtype)) for k in range(3)]
    found = read(rows)
    assert found is not None and len(found) == 3
    assert all(a is b for a, b in zip(found.arrays(), rows, strict=True))
    assert found.facts(-1) == (DTYPES[np.dtype(dtype)], 3, rows[0].shape[2])
    for one, row in zip(eager.flip(rows), rows, strict=True):
        assert np.array_equal(one, row[:, ::-1])
        assert one.dtype == row.dtype


@pytest.mark.parametrize("name", OTHERS)
def test_arrays_of_other_kinds_are_converted_first(name: str) -> None:
    plain = [image(k, dtype="uint16") for k in range(3)]
    rows = [plain[0], OTHERS[name](plain[1]), plain[2]]
    assert read(rows) is None
    for one, row in zip(eager.flip(rows), plain, strict=True):
        assert np.array_equal(one, row[:, ::-1])


def test_data_that_are_no_rows_of_arrays() -> None:
    x = image(0)
    for data in ([], (x, x), None, 3, "text", b"bytes", {0: x}, [x, None], [x, [1, 2]], [[x]], np.array(3), x[:0]):
        assert read(data) is None
    assert read([x, x.astype(np.int8)]) is None
    assert read([x, x[0]]) is None
    for dtype in ("complex64", "S3", "U2", "datetime64[s]", "O", "longdouble", "u1,u1"):
        assert read([np.zeros((2, 2, 3), dtype)]) is None
    assert read([np.zeros((1,) * 9, np.uint8)]) is None
    assert len(read([np.zeros((1,) * 8, np.uint8)])) == 1
    assert read([np.array(3.0)]).facts(-1) == (int(DType.FLOAT64), 0, -1)


def test_samples_of_unlike_types_are_refused_with_their_number() -> None:
    for other in (image(1, dtype="int16"), image(1, (6, 8)), b"bytes"):
        with pytest.raises(stoker.ArgumentError, match="one type and rank, got 2 kinds"):
            eager.flip([image(0), other])
    with pytest.raises(stoker.ArgumentError, match="expected an array"):
        eager.flip([image(0), None])


def test_extents_that_rows_share() -> None:
    rows = read([image(0, (4, 5, 3)), image(1, (4, 6, 3))])
    assert [rows.facts(axis)[2] for axis in (0, 1, 2, -1, -3, 3, -4)] == [4, -1, 3, 3, 4, -1, -1]
    assert rows.facts(2**62)[2] == rows.facts(-(2**62))[2] == -1
    gray, colour = image(0, (4, 5, 1)), image(1, (4, 6, 3))
    for one, row in zip(eager.flip([gray, colour]), (gray, colour), strict=True):
        assert np.array_equal(one, row[:, ::-1])


def test_parts_of_rows() -> None:
    arrays = [image(k) for k in range(5)]
    for rows in (read(arrays), read(np.stack(arrays))):
        part = rows.part(1, 4)
        assert len(part) == 3
        assert all(np.array_equal(a, b) for a, b in zip(part.arrays(), arrays[1:4], strict=True))
        for first, end in ((-1, 2), (2, 2), (3, 1), (0, 6), (5, 6)):
            with pytest.raises(ValueError, match="range of rows"):
                rows.part(first, end)


def test_a_table_of_types_is_checked() -> None:
    x = image(0)
    for number in (-1, 13, 1 << 20):
        with pytest.raises(ValueError, match="numbers of a DType"):
            _native.array_rows([x], np.ndarray, {x.dtype: number})
    with pytest.raises((TypeError, RuntimeError)):
        _native.array_rows([x], np.ndarray, {x.dtype: "uint8"})
    assert _native.array_rows([x], np.ndarray, {x.dtype: int(DType.INT32)}) is None  # other sizes of elements
    assert _native.array_rows([x], int, DTYPES) is None


@pytest.mark.parametrize("layout", ["", "HWC", "CHW"])
def test_batches_give_the_results_of_lists(layout: str) -> None:
    arrays = [image(k, (3, 5, 4) if layout == "CHW" else (5, 4, 3)) for k in range(4)]
    axis = 2 if layout == "CHW" else 1
    dense = stoker.Batch(np.stack(arrays), stoker.types.UINT8, layout)
    ragged = stoker.Batch(
        [x[..., :2] if k == 2 and layout == "CHW" else x for k, x in enumerate(arrays)], stoker.types.UINT8, layout
    )
    for batch in (dense, ragged):
        for one, row in zip(eager.flip(batch), batch, strict=True):
            assert np.array_equal(one, np.flip(row, axis))
    strided = stoker.Batch(np.stack(arrays)[::-1], stoker.types.UINT8, layout)
    for one, row in zip(eager.flip(strided), strided, strict=True):
        assert np.array_equal(one, np.flip(row, axis))
    assert len(read(dense.whole)) == 4
    assert read(dense.whole).arrays()[1].shape == arrays[1].shape


def test_results_do_not_depend_on_a_list_that_changes_meanwhile() -> None:
    """The arrays of a call are those that the list has when it is read, and they live until its end."""
    rows = [image(k) for k in range(8)]
    kept = list(rows)
    found = read(rows)
    rows.clear()
    assert all(a is b for a, b in zip(found.arrays(), kept, strict=True))
    shared = [np.full((16, 16, 3), 7, np.uint8) for _ in range(8)]
    stop = threading.Event()

    def change() -> None:
        while not stop.is_set():
            shared[3] = np.full((16, 16, 3), 7, np.uint8)

    thread = threading.Thread(target=change)
    thread.start()
    try:
        for _ in range(50):
            assert all((one == 7).all() for one in eager.flip(shared))
    finally:
        stop.set()
        thread.join()


def test_lists_of_numbers_are_floats_if_they_are_exact() -> None:
    assert _native.numbers_of([1, 2.5, -3]) == (1.0, 2.5, -3.0)
    assert _native.numbers_of(()) == ()
    assert _native.numbers_of((2**53, -(2**53))) == (float(2**53), -float(2**53))
    assert np.signbit(_native.numbers_of([-0.0])[0])
    assert all(type(x) is float for x in _native.numbers_of([1, 2, 3]))
    for other in (
        [True],
        [np.float64(1)],
        [2**53 + 1],
        [2**70],
        ["1"],
        [[1]],
        [None],
        1.0,
        np.ones(2),
        {1: 2},
        "12",
        None,
    ):
        assert _native.numbers_of(other) is None


@pytest.mark.parametrize("value", [[2, 3], (2, 3), [2.0, 3.0], np.array([2, 3]), [np.int64(2), 3], [2, True + 2]])
def test_forms_of_numbers_give_one_result(value: Any) -> None:
    rows = [image(k) for k in range(3)]
    expected = [x[2:4, 3:6] for x in rows]
    for one, right in zip(eager.slice(rows, start=value, shape=[2, 3], axes=[0, 1]), expected, strict=True):
        assert np.array_equal(one, right)
    assert np.array_equal(eager.slice(rows[0], start=value, shape=(2, 3), axes=[0, 1]), expected[0])


def test_numbers_reach_the_general_path() -> None:
    """A row that fails is computed again by it, which then raises the row's error."""
    rows = [image(0), image(1)[:2]]
    with pytest.raises(stoker.DataError):
        eager.slice(rows, start=[2, 3], shape=[2, 3], axes=[0, 1])
    with pytest.raises(stoker.DataError):
        eager.slice(rows[1], start=[2, 3], shape=[2, 3], axes=[0, 1])
