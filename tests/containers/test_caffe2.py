# SPDX-License-Identifier: Apache-2.0
"""``readers.caffe2`` and ``decoders.numpy``: values, and faults of their records."""

from __future__ import annotations

import io
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import containers
from containers import tensor, tensors
from stoker import ArgumentError, DataError, fn, types
from tests.containers.data import plain, rows

IMAGE = [b"encoded", b"", b"x" * 5000]


def write(folder: Path, *records: bytes) -> str:
    (folder / "data.mdb").write_bytes(containers.lmdb({f"{i:03}".encode(): r for i, r in enumerate(records)}))
    return str(folder)


def read(path: str, **arguments: Any) -> list[list[Any]]:
    return [plain(row) for row in rows(lambda: fn.readers.caffe2(path=path, **arguments))]


@pytest.mark.parametrize("packed", [True, False])
def test_labels_of_all_kinds(packed: bool, tmp_path: Path) -> None:
    def numbers(values: Any, kind: int, shape: Any = ()) -> bytes:
        return tensor(values, kind, shape, packed=packed)

    path = write(tmp_path, *(tensors(tensor(c, 4), numbers([-7 * i], 2)) for i, c in enumerate(IMAGE)))
    assert read(path) == [[c, ("int32", (1,), [-7 * i])] for i, c in enumerate(IMAGE)]
    path = write(tmp_path, *(tensors(tensor(c, 4), numbers([i, 3], 10, [2])) for i, c in enumerate(IMAGE)))
    wanted = [[int(k in (i, 3)) for k in range(5)] for i in range(3)]
    found = read(path, label_type=1, num_labels=5)
    assert found == [[c, ("int64", (5,), wanted[i])] for i, c in enumerate(IMAGE)]
    assert read(path, label_type=2) == [[c, ("int64", (2,), [i, 3])] for i, c in enumerate(IMAGE)]
    weighted = (tensors(tensor(c, 4), numbers([i, 3], 2), numbers([0.5, i + 1.0], 1)) for i, c in enumerate(IMAGE))
    found = read(write(tmp_path, *weighted), label_type=3, num_labels=4)
    wanted_weights = [[0.5, 0, 0, 1], [0, 0.5, 0, 2], [0, 0, 0.5, 3]]
    assert found == [[c, ("float32", (4,), wanted_weights[i])] for i, c in enumerate(IMAGE)]


def test_pixels_other_tensors_and_boxes(tmp_path: Path) -> None:
    pixels = np.arange(24, dtype=np.uint8).reshape(2, 4, 3)
    record = tensors(
        tensor(pixels.tobytes(), 3, [2, 4, 3]), tensor([1.0, 2.0, 3.0, 4.0], 1, [2, 2]), tensor([9], 10),
        tensor([1, 2, 3, 4], 2, [4]),
    )  # fmt: skip
    (found,) = read(write(tmp_path, record), label_type=4, additional_inputs=2, bbox=True)
    assert found == [
        ("uint8", (2, 4, 3), pixels.tolist()), ("float32", (2, 2), [[1, 2], [3, 4]]), ("int64", (1,), [9]),
        ("int32", (4,), [1, 2, 3, 4]),
    ]  # fmt: skip
    grey = tensors(tensor(pixels[..., 0].tobytes(), 3, [2, 4]), tensor([1], 2))
    assert read(write(tmp_path, grey))[0][0] == ("uint8", (2, 4, 1), pixels[..., :1].tolist())
    label = tensors(tensor([5], 2))
    (found,) = read(write(tmp_path, label), image_available=False)
    assert found == [("int32", (1,), [5])]


def test_damaged_records_are_bad_rows(tmp_path: Path) -> None:
    good = tensors(tensor(b"abc", 4), tensor([1], 2))
    bad = {
        "got damaged bytes": good[:-1],
        "expected one label, got 2": tensors(tensor(b"abc", 4), tensor([1, 2], 2)),
        "at least 2 tensors in a record, got 1": tensors(tensor(b"abc", 4)),
        "a string in a tensor of strings": tensors(containers.varint(2 << 3) + b"\4", tensor([1], 2)),
        "expected uint8 with 1 axes, as in the first": tensors(tensor(b"abc", 3, [1, 1, 3]), tensor([1], 2)),
        "values for the extents": tensors(tensor(b"abc", 3, [1 << 40, 1 << 40]), tensor([1], 2)),
        "the type 77": tensors(containers.varint(2 << 3) + b"\x4d", tensor([1], 2)),
    }
    for text, record in bad.items():
        path = write(tmp_path, good, record, good)
        with pytest.raises(DataError, match=text):
            read(path)
        assert len(read(path, on_error="skip")) == 2
    for end in range(len(good)):  # truncated anywhere: a row error, or a shorter record
        assert len(read(write(tmp_path, good, good[:end]), on_error="skip")) in (1, 2)


def test_arguments_that_do_not_fit(tmp_path: Path) -> None:
    path = write(tmp_path, tensors(tensor(b"abc", 4), tensor([7], 2)))

    def fault(text: str, **arguments: Any) -> None:
        with pytest.raises(ArgumentError, match=text):
            read(path, **arguments)

    fault("label_type. from 0 to 4", label_type=5)
    fault("num_labels. >= 1", num_labels=0)
    fault("at most 16777216", label_type=1, num_labels=2**32)
    fault("got none of them", label_type=4, image_available=False)
    fault(r"indices of 3 labels, got \[7\]", label_type=1, num_labels=3)
    fault("the first record has others.*at least 3 tensors", additional_inputs=1)
    fault("an image of bytes|expected one label", image_available=False)


# ---- decoders.numpy ----


def file_of(array: Any, version: tuple[int, int] | None = None) -> np.ndarray[Any, Any]:
    file = io.BytesIO()
    np.lib.format.write_array(file, array, version)
    return np.frombuffer(file.getvalue(), np.uint8)


def decode(content: Any, **arguments: Any) -> np.ndarray[Any, Any]:
    """Decode one file in a pipeline."""
    feed = {"dtype": types.UINT8, "ndim": 1, "cycle": "raise"}
    ((found,),) = rows(lambda: fn.decoders.numpy(fn.external_source([[content]], **feed), **arguments), batch_size=1)
    return np.asarray(found)


@pytest.mark.parametrize("version", [(1, 0), (2, 0), (3, 0)])
@pytest.mark.parametrize("dtype", ["u1", "<i2", ">i4", "<u8", "<f2", ">f4", "<f8", "?"])
def test_arrays_are_decoded(version: tuple[int, int], dtype: str) -> None:
    for shape in ((), (0, 3), (4,), (2, 3, 4)):
        array = (np.arange(np.prod(shape, dtype=int)).reshape(shape) % 5).astype(dtype)
        for ordered in (array, np.array(array, order="F")):
            found = decode(file_of(ordered, version))
            assert (found.dtype, found.shape) == (array.dtype.newbyteorder("="), shape)
            assert found.tolist() == array.tolist()


def test_numbers_are_converted_and_limited() -> None:
    numbers = file_of(np.asarray([-1.5, 0.5, 1.5, 2.5, 300.7, np.nan], np.float32))
    assert decode(numbers, dtype=types.UINT8).tolist() == [0, 0, 2, 2, 255, 0]


def test_what_is_no_array_is_a_bad_row() -> None:
    good = file_of(np.arange(6, dtype=np.int16))
    for content, text in (
        (np.append(good, np.uint8(0)), "1 bytes after it"), (good[:-1], "expected an .npy file"),
        (good[1:], "it begins with"), (file_of(np.asarray([1j])), "an array of numbers, got complex128"),
        (file_of(np.asarray(["a"])), "an array of numbers, got"), (good[:0], "it begins with b''"),
        (np.frombuffer(b"PK\3\4" + bytes(50), np.uint8), "it begins with"),
    ):  # fmt: skip
        with pytest.raises(DataError, match=text):
            decode(content)
    pickled = io.BytesIO()
    np.save(pickled, np.asarray([{}], object), allow_pickle=True)
    with pytest.raises(DataError, match=r"expected an \.npy file"):
        decode(np.frombuffer(pickled.getvalue(), np.uint8))


def test_files_are_decoded_in_a_pipeline(tmp_path: Path) -> None:
    names = []
    for i in range(5):
        np.save(tmp_path / f"{i}.npy", np.full((i, 2), i, np.float32))
        names.append(str(tmp_path / f"{i}.npy"))
    found = rows(lambda: fn.decoders.numpy(fn.readers.file(files=names)[0]), batch_size=2)
    assert [r[0].tolist() for r in found] == [np.full((i, 2), i).tolist() for i in range(5)]
    np.save(tmp_path / "3.npy", np.zeros(3, np.int16))
    with pytest.raises(DataError, match="int16"):
        rows(lambda: fn.decoders.numpy(fn.readers.file(files=names)[0]), batch_size=2)
