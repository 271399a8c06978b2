# SPDX-License-Identifier: Apache-2.0
"""``readers.numpy``: types, orders, versions, regions, damaged files, lists of files."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from stoker import ArgumentError, DataError, fn
from stoker.readers._fetching import AsyncStorage
from stoker.readers.numpy import NumpyReader
from tests.containers.data import pipeline, rows

TYPES = ["?", "u1", "u2", "u4", "u8", "i1", "i2", "i4", "i8", "f2", "f4", "f8"]


def save(path: Path, array: Any, version: tuple[int, int] = (1, 0)) -> str:
    with path.open("wb") as file:
        np.lib.format.write_array(file, array, version=version)
    return str(path)


def read(files: Any, **arguments: Any) -> list[Any]:
    return [row[0] for row in rows(lambda: fn.readers.numpy(files=files, **arguments), batch_size=1)]


def example(dtype: Any, shape: tuple[int, ...]) -> Any:
    return np.random.default_rng(1).integers(0, 2 if np.dtype(dtype) == bool else 100, shape).astype(dtype)


@pytest.mark.parametrize("dtype", TYPES)
@pytest.mark.parametrize("order", "CF")
@pytest.mark.parametrize("endian", "<>")
def test_types_orders_and_versions(tmp_path: Path, dtype: str, order: Any, endian: str) -> None:
    for number, shape in enumerate([(), (0,), (5,), (3, 4), (2, 3, 4), (3, 0, 2), (1, 2, 1, 2, 1, 2, 2)]):
        array = np.asarray(example(endian + dtype, shape), order=order)
        files = [save(tmp_path / f"{number}{v}.npy", array, (v, 0)) for v in (1, 2, 3)]
        for found in read(files):
            assert found.dtype == array.dtype.newbyteorder("=") and found.shape == array.shape
            assert np.array_equal(found, array)


def test_extents_may_differ(tmp_path: Path) -> None:
    arrays = [example("f4", (i, 7 - i)) for i in range(7)]
    files = [save(tmp_path / f"{i}.npy", a) for i, a in enumerate(arrays)]
    with pipeline(lambda: fn.readers.numpy(files=files), batch_size=7) as pipe:
        for found, wanted in zip(pipe.run()[0], arrays, strict=True):
            assert np.array_equal(found, wanted)


@pytest.mark.parametrize("policy", ["error", "pad", "trim_to_shape"])
def test_regions_are_those_of_the_twin(tmp_path: Path, policy: str) -> None:
    """Random regions of arrays in both orders, as constants and as nodes: the column reads them with NumPy."""
    rng = np.random.default_rng({"error": 1, "pad": 2, "trim_to_shape": 3}[policy])
    shape = (5, 6, 4)
    array = example(">i4", shape)
    files = [save(tmp_path / "c.npy", array), save(tmp_path / "f.npy", np.asfortranarray(array)),
             save(tmp_path / "l.npy", array.astype("<i4"))]  # fmt: skip
    reach = 0 if policy == "error" else 3
    for trial in range(30):
        axes = rng.permutation(3)[: rng.integers(1, 4)] if trial % 3 else np.arange(1 if trial % 2 else 3)
        extents = np.asarray(shape)[axes]
        begin = rng.integers(-reach, extents + reach + 1)
        end = np.minimum(begin + rng.integers(0, 6, len(axes)), extents + reach).clip(min=begin)
        arguments: dict[str, Any] = {"out_of_bounds_policy": policy, "fill_value": 7.0}
        if len(axes) < 3 or list(axes) != [0, 1, 2]:
            arguments["roi_axes"] = [int(a) - 3 * int(rng.integers(2)) for a in axes]
        start_name, end_name = (
            rng.choice(["roi_start", "rel_roi_start"]),
            rng.choice(["roi_end", "rel_roi_end", "roi_shape"]),
        )
        numbers = {
            start_name: begin if start_name == "roi_start" else begin / extents,
            end_name: {"roi_end": end, "rel_roi_end": end / extents, "roi_shape": end - begin}[end_name],
        }
        constants = {**arguments, **{k: v.tolist() for k, v in numbers.items()}}
        region = [slice(None)] * 3
        for axis, b, e in zip(axes, begin, end, strict=True):
            region[axis] = slice(b, e)
        found = read(files, **constants)
        if policy == "error":
            assert all(np.array_equal(x, array[tuple(region)]) for x in found)
        args = NumpyReader.fill_defaults(NumpyReader.bind({**constants, "files": files}), {})
        column = NumpyReader.dataset(args).columns[0]
        assert all(np.array_equal(x, column.row(i)) for i, x in enumerate(found))

        def with_nodes(numbers: Any = numbers, arguments: Any = arguments) -> Any:
            nodes = {
                k: fn.copy(fn.cast(np.asarray(v), dtype="float32" if "rel" in k else "int32"))
                for k, v in numbers.items()
            }
            return fn.readers.numpy(files=files, **nodes, **arguments)

        if not any("rel" in k for k in numbers):
            again = [row[0] for row in rows(with_nodes, batch_size=1)]
            assert all(np.array_equal(a, b) for a, b in zip(found, again, strict=True))


def test_a_region_of_a_source_whose_sizes_the_first_batch_shows(tmp_path: Path) -> None:
    array = example("<i4", (5, 6))
    path = save(tmp_path / "a.npy", array)

    def reader(starts: list[list[int]]) -> Any:
        numbers = [np.asarray(start, np.int32) for start in starts]
        start = fn.external_source(source=lambda i: [numbers[i % len(numbers)]], batch=True)
        return fn.readers.numpy(files=[path] * 2, roi_start=start, roi_shape=[2, 1])

    found = [row[0] for row in rows(lambda: reader([[1, 2], [3, 0]]), batch_size=1)]
    assert all(np.array_equal(x, wanted) for x, wanted in zip(found, (array[1:3, 2:3], array[3:5, :1]), strict=True))
    with pytest.raises(DataError, match="expected 2 numbers as `roi_start` in every row, as in the first batch, got 3"):
        rows(lambda: reader([[1, 2], [3, 0, 1]]), batch_size=1)


def test_padding_and_its_value(tmp_path: Path) -> None:
    path = save(tmp_path / "u.npy", np.arange(24, dtype=np.uint8).reshape(4, 6))
    region = {"roi_start": [-1, 4], "roi_end": [1, 8], "out_of_bounds_policy": "pad"}
    for value, wanted in ((300.7, 255), (-3, 0), (2.5, 2), (3.5, 4), (float("nan"), 0)):
        assert read([path], fill_value=value, **region)[0].tolist() == [[wanted] * 4, [4, 5, wanted, wanted]]
    assert read([path], roi_start=[9, 9], roi_shape=[1, 2], out_of_bounds_policy="pad")[0].tolist() == [[0, 0]]
    assert read([path], roi_start=[9, 1], roi_shape=[1, 2], out_of_bounds_policy="trim_to_shape")[0].shape == (0, 2)


@pytest.mark.parametrize(("arguments", "text"), [
    ({"roi_start": [3, 1], "roi_end": [2, 3]}, "an end at or after its start in axis 0, got 3 to 2"),
    ({"roi_start": [-1, 1]}, "a region inside of the array's 4 elements in axis 0, got -1 to 4"),
    ({"roi_end": [4, 7]}, "a region inside of the array's 6 elements in axis 1, got 0 to 7"),
    ({"roi_shape": [1 << 60, 1]}, "an end at or after its start in axis 0, got 0 to an impossible number"),
])  # fmt: skip
def test_a_region_that_does_not_fit_is_an_error_of_the_row(tmp_path: Path, arguments: Any, text: str) -> None:
    path = save(tmp_path / "a.npy", np.zeros((4, 6)))
    with pytest.raises(DataError, match=text):
        read([path], **arguments)


@pytest.mark.parametrize(("arguments", "text"), [
    ({"roi_start": [1], "rel_roi_start": [0.5]}, "at most one of `roi_start`, `rel_roi_start`"),
    ({"roi_end": [1], "roi_shape": [1]}, "at most one of `roi_end`"),
    ({"roi_start": [1, 2, 3]}, "a number in `roi_start` for each of 2 axes, got 3"),
    ({"roi_start": [1], "roi_axes": [2]}, "different axes of 2 as `roi_axes`"),
    ({"roi_start": [1], "roi_axes": [0, -2]}, "different axes of 2 as `roi_axes`"),
])  # fmt: skip
def test_wrong_regions_are_refused(tmp_path: Path, arguments: Any, text: str) -> None:
    path = save(tmp_path / "a.npy", np.zeros((4, 6)))
    with pytest.raises(ArgumentError, match=text):
        read([path], **arguments)


@pytest.mark.parametrize("order", ["False", "True"])
def test_only_the_rows_of_the_region_are_read(tmp_path: Path, order: str) -> None:
    """The file has 64 GiB, nearly all of which is a hole. Reading the whole would take as much memory."""
    path = tmp_path / "sparse.npy"
    long, short = 1 << 30, 64
    shape = (long, short) if order == "False" else (short, long)
    text = f"{{'descr': '|u1', 'fortran_order': {order}, 'shape': {shape}, }}".ljust(117) + "\n"
    head = b"\x93NUMPY\1\0" + len(text).to_bytes(2, "little") + text.encode()
    path.write_bytes(head + bytes(range(64)) * 4)
    os.truncate(path, len(head) + long * short)
    axes = [0, 1] if order == "False" else [1, 0]
    (found,) = read([str(path)], roi_start=[1, 10], roi_shape=[2, 3], roi_axes=axes)
    wanted = [[10, 11, 12]] * 2
    assert found.tolist() == (wanted if order == "False" else np.asarray(wanted).T.tolist())


def test_damaged_files_are_errors_of_their_rows(tmp_path: Path) -> None:
    good, bad = save(tmp_path / "a.npy", np.arange(6.0).reshape(2, 3)), tmp_path / "b.npy"
    whole = Path(good).read_bytes()
    contents = [whole[:n] for n in (*range(0, len(whole), 5), len(whole) - 1)]
    contents += [whole[:6] + b"\7\0" + whole[8:], whole.replace(b"'<f8'", b"'<c8'"), whole.replace(b"'<f8'", b"'<f4'"),
                 whole.replace(b"(2, 3)", b"(2, 9)"), whole.replace(b"(2, 3)", b"(6,)  "),
                 whole.replace(b"(2, 3)", b"(2, -)"), whole.replace(b"shape", b"shapf"),
                 whole.replace(b"(2, 3), }          ", b"(99999999999, 99999999999), }"[:19])]  # fmt: skip
    for content in contents:
        bad.write_bytes(content)
        with pytest.raises(DataError, match="expected "):
            read([good, str(bad)])
        assert len(rows(lambda: fn.readers.numpy(files=[good, str(bad)], on_error="skip"), error_limit=1.0)) == 1
    with pytest.raises(ArgumentError, match=r"expected an \.npy file, got none in the first 1 files"):
        read([str(bad)])


def test_files_that_numpy_refuses_are_refused(tmp_path: Path) -> None:
    for array in (np.zeros(3, "c8"), np.asarray(["text"]), np.zeros(2, [("a", "f4")]), np.zeros(2, "M8[s]")):
        path = save(tmp_path / "a.npy", array)
        with pytest.raises(ArgumentError, match=r"expected (bool, integers or floats|numbers)"):
            read([path])


def test_folders_and_lists(tmp_path: Path) -> None:
    for name in ("b.npy", "a.npy", "B.npy", "x/2.npy", "x/1.npy", "x/y/3.npy", "c.txt"):
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        save(tmp_path / name, np.asarray([ord(Path(name).name[0])]))
    (tmp_path / "list.txt").write_text("b.npy\n\nx/2.npy\n")
    root = str(tmp_path)

    def names(**arguments: Any) -> str:
        found = rows(lambda: fn.readers.numpy(**arguments))
        return "".join(chr(int(row[0][0])) for row in found)

    assert names(file_root=root) == "Bab12"
    assert names(file_root=root, file_filter="[ab].npy") == "ab"
    assert names(file_root=root, file_list=f"{root}/list.txt") == "b2"
    assert names(file_list=f"{root}/list.txt") == "b2"
    assert names(file_root=root, files=["x/1.npy", "a.npy"]) == "1a"
    assert names(file_root=f"{root}/x", files=["1.npy", f"{root}/a.npy", "2.npy"]) == "1a2"
    assert sorted(names(file_root=root, random_shuffle=True)) == sorted("Bab12")
    for arguments, text in (({}, "got none of them"),
                            ({"file_root": root, "file_filter": "*.NPY"}, "no file was found"),
                            ({"file_root": f"{root}/none"}, "to be a folder"),
                            ({"files": ["a"], "file_list": "b"}, "got both")):  # fmt: skip
        with pytest.raises(ArgumentError, match=text):
            names(**arguments)


def test_joined_readers(tmp_path: Path) -> None:
    paths = [save(tmp_path / f"{k}.npy", np.full((2, 2), k)) for k in range(2)]
    found = rows(lambda: fn.readers.concat([fn.readers.numpy(files=[p], roi_shape=[1, 2]) for p in paths]))
    assert [(x.tolist(), int(p[0])) for x, p in found] == [([[0, 0]], 0), ([[1, 1]], 1)]


def test_a_masked_number_is_refused(tmp_path: Path) -> None:
    path = save(tmp_path / "a.npy", np.zeros(3))
    with pytest.raises(ArgumentError, match="expected a number, got a masked one"):
        read([path], fill_value=np.ma.masked)


class _Objects:
    """Store of objects in memory."""

    def __init__(self, objects: dict[str, bytes]) -> None:
        self.objects = objects

    def fetch(self, ranges: Any) -> list[bytes]:
        return [self.objects[r.path][r.offset : r.offset + r.length] for r in ranges]

    def close(self) -> None:
        """Close nothing."""


@pytest.mark.parametrize(
    "region",
    [
        {}, {"roi_start": [1, 2], "roi_end": [3, 5]}, {"rel_roi_start": [0.2], "rel_roi_shape": [0.5], "roi_axes": [1]},
        {"roi_start": [-2, 1], "roi_shape": [9, 4], "out_of_bounds_policy": "pad", "fill_value": 3},
        {"roi_start": [-2], "roi_end": [99], "roi_axes": [0], "out_of_bounds_policy": "trim_to_shape"},
    ],
)  # fmt: skip
def test_arrays_of_a_store_are_those_of_files(
    region: dict[str, Any], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for i, dtype in enumerate(["<f4", ">f4", "<f4", ">f4"]):
        array = np.random.default_rng(i).random((6, 5 + i)).astype(dtype)
        np.save(tmp_path / f"{i}.npy", np.asfortranarray(array) if i > 1 else array)
    whole = (tmp_path / "3.npy").read_bytes()
    for i, spoilt in enumerate((whole[:-1], whole[:20], whole[:70], b"", b"x" + whole)):
        (tmp_path / f"{4 + i}.npy").write_bytes(spoilt)

    def read() -> list[Any]:
        return [
            r[0].tolist() for r in rows(lambda: fn.readers.numpy(file_root=str(tmp_path), on_error="skip", **region))
        ]

    wanted = read()
    assert len(wanted) == 4

    def objects(names: list[str], root: str, known: Any) -> AsyncStorage:
        content = {name: Path(root, name).read_bytes() for name in names}
        zeros = np.zeros(len(names), np.int64)
        return AsyncStorage(_Objects(content), names, np.arange(len(names)), zeros, [len(content[n]) for n in names])

    monkeypatch.setattr("stoker.readers.numpy.whole_files", objects)
    assert read() == wanted
