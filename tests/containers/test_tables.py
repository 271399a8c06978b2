# SPDX-License-Identifier: Apache-2.0
"""``readers.huggingface`` and ``readers.parquet``: values, order and faults, with files of the real libraries."""

from __future__ import annotations

import warnings
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from stoker import ArgumentError, DataError, fn, samplers
from stoker.readers.huggingface import HuggingFaceReader
from tests.containers.data import epoch, pipeline, rows

pa = pytest.importorskip("pyarrow", reason="pyarrow is not installed")
pq = pytest.importorskip("pyarrow.parquet", reason="pyarrow is not installed")
datasets: Any = pytest.importorskip("datasets", reason="datasets is not installed")

COUNT = 40
COLUMNS = ["image", "text", "label", "x", "list", "map"]
FEATURES = datasets.Features(
    {
        "image": datasets.Image(decode=False), "text": datasets.Value("string"),
        "label": datasets.ClassLabel(names=["a", "b", "c"]), "x": datasets.Value("float32"),
        "list": datasets.Sequence(datasets.Value("int16")), "map": datasets.Array2D((None, 3), "float64"),
    }
)  # fmt: skip


def content(i: int) -> bytes:
    return np.random.default_rng(i).bytes(i * 97 % 400)


def sample(i: int) -> dict[str, Any]:
    return {
        "image": None if i == 5 else {"bytes": content(i), "path": f"{i}.png"},
        "text": None if i == 7 else "ü" * (i % 5),
        "label": i % 3, "x": None if i % 7 == 3 else i / 2, "list": list(range(i % 4)),
        "map": np.full((2 + i % 2, 3), i).tolist(),
    }  # fmt: skip


@pytest.fixture(scope="module", autouse=True)
def arrow_threads(tmp_path_factory: pytest.TempPathFactory) -> None:
    """Start Arrow's own threads, which live as long as the process: one of each kind."""
    datasets.disable_progress_bars()  # they start a thread
    pa.set_cpu_count(1)
    pa.set_io_thread_count(1)
    path = tmp_path_factory.mktemp("arrow") / "a.parquet"
    pq.write_table(pa.table({"a": [1, 2]}), path)
    pq.ParquetFile(path).read_row_group(0)


@pytest.fixture(scope="module")
def saved(tmp_path_factory: pytest.TempPathFactory) -> str:
    folder = str(tmp_path_factory.mktemp("hf"))
    datasets.Dataset.from_list([sample(i) for i in range(COUNT)], features=FEATURES).save_to_disk(folder, num_shards=3)
    return folder


def wanted(source: Any) -> list[tuple[Any, ...]]:
    """Return the rows as the library reads them."""
    found = []
    for row in source:
        image = b"" if row["image"] is None else row["image"]["bytes"]
        text = (row["text"] or "").encode()
        x = [] if row["x"] is None else [row["x"]]
        found.append((image, text, [row["label"]], x, row["list"], np.asarray(row["map"]).tolist()))
    return found


def read(source: Any, **settings: Any) -> list[tuple[Any, ...]]:
    found = rows(lambda: fn.readers.huggingface(source, columns=COLUMNS), **settings)
    for row in found:
        assert [a.dtype for a in row] == [np.uint8, np.uint8, np.int32, np.float32, np.int16, np.float64]
    return [(a.tobytes(), b.tobytes(), *(v.tolist() for v in rest)) for a, b, *rest in found]


CHANGES: dict[str, Callable[[Any], Any]] = {
    "as saved": lambda d: d,
    "shuffled": lambda d: d.shuffle(seed=3),
    "selected": lambda d: d.select([3, 3, 39, 0]),
    "sliced": lambda d: d.select(range(11, 27)),
    "filtered": lambda d: d.filter(lambda row: row["label"] == 1, load_from_cache_file=False, keep_in_memory=True),
    "joined": lambda d: datasets.concatenate_datasets([d.select(range(30, 33)), d.shuffle(seed=1)]),
    "in memory": lambda d: datasets.Dataset.from_list(list(d.select(range(9))), features=FEATURES),
    "fewer columns": lambda d: d.remove_columns("label").add_column("label", [i % 3 for i in range(COUNT)]),
}


@pytest.mark.parametrize("change", CHANGES.values(), ids=CHANGES)
def test_rows_are_those_of_the_library(change: Callable[[Any], Any], saved: str) -> None:
    source = change(datasets.load_from_disk(saved))
    if isinstance(source.features["label"], datasets.Value):  # a number that is no class label keeps its type
        numbers = rows(lambda: fn.readers.huggingface(source, columns="label"))
        assert [(n.dtype, n.tolist()) for (n,) in numbers] == [(np.int64, [i % 3]) for i in range(COUNT)]
        return
    for settings in ({"batch_size": 1, "num_threads": 1}, {"batch_size": 7, "num_threads": 3}):
        assert read(source, **settings) == wanted(source)


def test_bytes_come_from_the_files(saved: str) -> None:
    source = datasets.load_from_disk(saved).shuffle(seed=2)
    for given in (source, saved):
        found = HuggingFaceReader.dataset({"source": given, "columns": COLUMNS})
        for name in ("image", "text", "list", "map"):
            storage = found.column(name).storage
            assert storage is not None and type(storage).__name__ == "RangeStorage"
            assert all(storage.locate(i).path.startswith(saved) for i in range(COUNT) if storage.locate(i).path)
    assert HuggingFaceReader.dataset({"source": saved, "columns": "label"}).label == "label"


def test_images_may_be_files(tmp_path: Path) -> None:
    paths = []
    for i in range(4):
        paths.append(str(tmp_path / f"{i}.bin"))
        Path(paths[-1]).write_bytes(content(i))
    of_paths = datasets.Dataset.from_dict({"image": paths}).cast_column("image", datasets.Image(decode=False))
    some = [{"path": "no file", "bytes": content(9)} if i == 2 else {"path": paths[i], "bytes": None} for i in range(4)]
    mixed = datasets.Dataset.from_dict({"image": some}, features=datasets.Features({"image": datasets.Image()}))
    in_files = datasets.Dataset.from_generator(
        lambda: iter([{"image": one} for one in some]), mixed.features, str(tmp_path / "mixed")
    )
    for source in (of_paths, of_paths.select([3, 1])):
        found = rows(lambda source=source: fn.readers.huggingface(source, columns="image"))
        assert [r[0].tobytes() for r in found] == [Path(r["image"]["path"]).read_bytes() for r in source]
    found = rows(lambda: fn.readers.huggingface(in_files, columns="image"))
    assert [r[0].tobytes() for r in found] == [content(0), content(1), content(9), content(3)]
    with pytest.raises(ArgumentError, match="rows of 'image' in memory or in files, got both"):
        rows(lambda: fn.readers.huggingface(mixed, columns="image"))
    Path(paths[1]).unlink()
    with pytest.raises(ArgumentError, match=r"a file for row 1 of 'image', there is none"):
        rows(lambda: fn.readers.huggingface(in_files, columns="image"))


def test_states_and_shards_of_hugging_face(saved: str) -> None:
    def define() -> Any:
        return fn.readers.huggingface(saved, columns=["image", "label"], random_shuffle=True, shard_id=1, num_shards=2)

    with pipeline(define, batch_size=3) as pipe:
        pipe.next()
        state = pipe.get_state()
        rest = epoch(pipe)
    with pipeline(define, batch_size=5) as pipe:
        pipe.set_state(state)
        again = epoch(pipe)
    assert [r[0].tobytes() for r in again] == [r[0].tobytes() for r in rest]
    assert len(rest) == COUNT // 2 - 3


def test_data_sets_that_cannot_be_read(saved: str, tmp_path: Path) -> None:
    source = datasets.load_from_disk(saved)

    def fault(given: Any, columns: Any, text: str) -> None:
        with pytest.raises(ArgumentError, match=text):
            rows(lambda: fn.readers.huggingface(given, columns=columns))

    fault([1, 2], "image", r"expected a datasets\.Dataset, or a folder")
    fault(datasets.DatasetDict({"test": source}), "image", r"choose a split, such as source\['test'\]")
    fault(source.to_iterable_dataset(), "image", "without `streaming=True`")
    fault(source.with_transform(lambda row: row), "image", "use `readers.dataset`")
    fault(source, "images", "expected `columns` among 'image', 'text'.*got 'images'")
    fault(source, [], "expected a list of names")
    fault(source.select([]), "text", "with rows, got an empty one")
    fault(str(tmp_path), "image", "expected a folder that `save_to_disk` has written")
    nested = datasets.Dataset.from_dict({"a": [[[1], [2, 3]]], "b": [{"c": 1}], "d": [[1, None]]})
    fault(nested, "a", "lists of numbers or arrays.*got 'a' of the type")
    fault(nested, "b", "got 'b' of the type")
    fault(nested, "d", "elements without a value")


# ---- Parquet ----


def write(path: Path, first: int, last: int, *, group: int = 7, **options: Any) -> str:
    columns = {
        "image": [None if i == 5 else content(i) for i in range(first, last)],
        "struct": [{"bytes": content(i), "path": "x"} for i in range(first, last)],
        "label": [i % 3 for i in range(first, last)],
        "x": pa.array([None if i % 7 == 3 else i / 2 for i in range(first, last)], pa.float32()),
        "list": pa.array([list(range(i % 4)) for i in range(first, last)], pa.list_(pa.int16())),
        "flag": [i % 2 == 0 for i in range(first, last)],
        "word": pa.array([f"w{i % 3}" for i in range(first, last)]).dictionary_encode(),
        "fixed": pa.array([[i, i + 1] for i in range(first, last)], pa.list_(pa.uint16(), 2)),
    }
    pq.write_table(pa.table(columns), path, row_group_size=group, **options)
    return str(path)


PARQUET = ["image", "struct", "label", "x", "list", "flag", "word", "fixed"]


def row_of_parquet(i: int) -> tuple[Any, ...]:
    x = [] if i % 7 == 3 else [i / 2]
    image = b"" if i == 5 else content(i)
    return image, content(i), [i % 3], x, list(range(i % 4)), [i % 2 == 0], f"w{i % 3}".encode(), [i, i + 1]


def read_parquet(paths: Any, **arguments: Any) -> list[tuple[Any, ...]]:
    found = rows(lambda: fn.readers.parquet(paths, columns=PARQUET, label="label", **arguments), batch_size=3)
    return [
        (r[0].tobytes(), r[1].tobytes(), r[2].tolist(), r[3].tolist(), r[4].tolist(), r[5].tolist(), r[6].tobytes(),
         r[7].tolist())
        for r in found
    ]  # fmt: skip


@pytest.mark.parametrize("compression", ["snappy", "none", "zstd"])
@pytest.mark.parametrize("cache_bytes", [0, 2000, 1 << 30])
def test_rows_of_parquet(compression: str, cache_bytes: int, tmp_path: Path) -> None:
    paths = [write(tmp_path / "a.parquet", 0, 17, compression=compression), write(tmp_path / "b.parquet", 17, COUNT)]
    assert read_parquet(paths, cache_bytes=cache_bytes) == [row_of_parquet(i) for i in range(COUNT)]
    order = {"sampler": [39, 5, 5, 0, 38]}
    assert read_parquet(paths, cache_bytes=cache_bytes, **order) == [row_of_parquet(i) for i in order["sampler"]]
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", RuntimeWarning)  # the advice to shuffle in windows
        shuffled = read_parquet(paths, cache_bytes=cache_bytes, random_shuffle=True)
    assert sorted(shuffled) == sorted(row_of_parquet(i) for i in range(COUNT)) != shuffled


def test_windows_decode_each_row_group_once(tmp_path: Path) -> None:
    path = write(tmp_path / "a.parquet", 0, 420, group=10, compression="none")
    size = 10 * 450  # more than a row group of the two columns

    def define(**order: Any) -> Any:
        return fn.readers.parquet(path, columns=["image", "list"], cache_bytes=6 * size, **order)

    def decodes(*, exec_async: bool = True, **order: Any) -> int:
        with pipeline(lambda: define(**order), batch_size=5, exec_async=exec_async) as pipe:
            assert len(epoch(pipe)) == 420
            (source,) = pipe.execution.sources.values()
            storage: Any = source.columns[0].storage
            found: int = storage._groups.decodes
            return found

    assert decodes(exec_async=False) == 42
    assert decodes(exec_async=False, sampler=samplers.Windowed(10, 3)) == 42
    # With prefetching, the first row groups of the next epoch may be decoded, too: of two batches, which are ten rows.
    assert 42 <= decodes() <= 43
    assert 42 <= decodes(sampler=samplers.Windowed(10, 3)) <= 45
    with pytest.warns(RuntimeWarning, match=r"Windowed\(block=10, window=16\)"):
        assert decodes(random_shuffle=True) > 100


def test_parquet_files_that_cannot_be_read(tmp_path: Path) -> None:
    path = tmp_path / "a.parquet"
    good = Path(write(path, 0, 20)).read_bytes()

    def fault(text: str, columns: Any = ("image",), **arguments: Any) -> None:
        with pytest.raises(ArgumentError, match=text):
            rows(lambda: fn.readers.parquet(str(path), columns=list(columns), **arguments))

    for damaged in (b"", b"PAR1", good[:-5], good[:-8] + b"\xff\xff\xff\x7fPAR1", b"x" * 500):
        path.write_bytes(damaged)
        fault("expected a Parquet file")
    path.write_bytes(good)
    fault("expected `columns` among 'image', 'struct'.*got 'y'", ["y"])
    fault("expected `columns` among 'image', got 'label'", label="label")
    fault("whole numbers as `label`", ["x"], label="x")
    fault("cache_bytes. >= 0", cache_bytes=-1)
    path.unlink()
    fault("there is none at")
    pq.write_table(pa.table({"image": pa.array([], pa.binary())}), path)
    fault("expected rows")
    paths = [str(path), write(tmp_path / "b.parquet", 0, 3)]
    pq.write_table(pa.table({"image": [1]}), path)
    with pytest.raises(ArgumentError, match="of one type in all files"):
        rows(lambda: fn.readers.parquet(paths, columns="image"))


def test_damaged_and_changed_row_groups_are_bad_rows(tmp_path: Path) -> None:
    path = Path(write(tmp_path / "a.parquet", 0, 21, compression="snappy"))
    good = path.read_bytes()
    begin = pq.ParquetFile(path).metadata.row_group(1).column(0).data_page_offset
    path.write_bytes(good[:begin] + bytes(40) + good[begin + 40 :])

    def define() -> Any:
        return fn.readers.parquet(str(path), columns="image", on_error="skip")

    assert [r[0].tobytes() for r in rows(define)] == [row_of_parquet(i)[0] for i in (*range(7), *range(14, 21))]
    with pytest.raises(DataError, match=r"row group 1.*a\.parquet"):
        rows(lambda: fn.readers.parquet(str(path), columns="image"))
    path.write_bytes(good)
    with pipeline(lambda: fn.readers.parquet(str(path), columns="image"), prefetch_queue_depth=1) as pipe:
        pipe.build()
        path.write_bytes(good + b"PAR1")
        with pytest.raises(DataError, match="as it was when the pipeline was built"):
            epoch(pipe)
