# SPDX-License-Identifier: Apache-2.0
"""Readers of containers, written with public declarations only: contents, orders, shards, tokens, bad samples."""

from __future__ import annotations

import io
import json
import os
import subprocess
import sys
import tarfile
import threading
import time
from collections.abc import Callable, Iterator
from concurrent.futures import Future
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from idle_clock import HANG_S

import stoker
from stoker import ArgumentError, DataError, Pipeline, StateError, fn, pipeline_def, samplers
from stoker.frontends import registry
from stoker.readers import ByteRange, Bytes, DataSet, RangeStorage, Values, presence, ragged, strings
from tests.run.own_readers import FolderStore, RecordReader, TarReader, write_records
from tests.run.pipelines import environment

COUNT = 23


@pytest.fixture(autouse=True)
def own_operators() -> Iterator[None]:
    before = dict(registry._registered)
    stoker.register(TarReader)
    stoker.register(RecordReader)
    yield
    registry._registered.clear()
    registry._registered.update(before)


# ---- files and their contents ----


def image(i: int) -> bytes:
    return bytes([i]) * (i * 7 % 50)


def boxes(i: int) -> Any:
    return np.arange(4 * (i % 3), dtype=np.float32) + i


@pytest.fixture(scope="module")
def tars(tmp_path_factory: pytest.TempPathFactory) -> list[str]:
    """Write samples of an image, optional boxes and an optional text. PAX headers have names of more than 100 bytes."""
    root = tmp_path_factory.mktemp("tars")
    paths = [str(root / f"{n}.tar") for n in range(2)]
    for n, path in enumerate(paths):
        with tarfile.open(path, "w") as tar:
            for i in range(COUNT):
                if i % 2 != n:
                    continue
                key = f"{'long/' * 30}{i:03}" if i % 5 == 0 else f"{i:03}"
                parts = {"img": image(i), "box": boxes(i).tobytes(), "txt": f"text {i}".encode()}
                for ext, content in parts.items():
                    if (ext == "box" and i % 4 == 0) or (ext == "txt" and i % 3 == 0):
                        continue
                    member = tarfile.TarInfo(f"{key}.{ext}")
                    member.size = len(content)
                    tar.addfile(member, io.BytesIO(content))
    return paths


TAR_ORDER = [*range(0, COUNT, 2), *range(1, COUNT, 2)]


@pytest.fixture(scope="module")
def records(tmp_path_factory: pytest.TempPathFactory) -> list[str]:
    root = tmp_path_factory.mktemp("records")
    paths = [str(root / f"{n}.rec") for n in range(3)]
    for n, path in enumerate(paths):
        write_records(path, [payload(i) for i in range(COUNT) if i * 3 // COUNT == n])
    return paths


def payload(i: int) -> tuple[bytes, int, Any]:
    return f"payload {i} ".encode() * ((i + 1) % 5), i % 4, np.arange(2 * (i % 3), dtype=np.float32) + i


@pipeline_def(batch_size=4, num_threads=2, seed=3)
def of_tar(**arguments: Any) -> Any:
    args = {"ext": ["img", "box", "txt"], "optional": ["box", "txt"], "dtypes": {"box": "float32"}, **arguments}
    return fn.own.tar(**args)


@pipeline_def(batch_size=4, num_threads=2, seed=3)
def of_records(**arguments: Any) -> Any:
    return fn.own.records(**arguments)


def rows_of(outputs: Any) -> list[tuple[bytes, ...]]:
    """Return every row as the bytes of its outputs, with their shapes."""
    return [tuple(repr(x.shape).encode() + x.tobytes() for x in row) for row in zip(*outputs, strict=True)]


def epoch(pipe: Pipeline) -> list[Any]:
    """Return the rows of an epoch, each a tuple of arrays."""
    found: list[Any] = []
    while (delivered := pipe.next()) is not None:
        found += [tuple(map(np.asarray, row)) for row in zip(*pipe.execution.batches(delivered), strict=True)]
    return found


def as_tar_sample(row: Any) -> int:
    """Return the number of the sample in a row, and compare all its components with the written ones."""
    img, box, txt, has_box, has_txt = row
    number = next(i for i in range(COUNT) if _same_tar(i, img, box, txt))
    assert bool(has_box) == (number % 4 != 0) and bool(has_txt) == (number % 3 != 0)
    assert has_box.dtype == bool and has_box.shape == ()
    return number


def _same_tar(i: int, img: Any, box: Any, txt: Any) -> bool:
    wanted_box = boxes(i) if i % 4 else boxes(i)[:0]
    wanted_txt = f"text {i}".encode() if i % 3 else b""
    same = img.tobytes() == image(i) and np.array_equal(box, wanted_box) and txt.tobytes() == wanted_txt
    return same and img.dtype == np.uint8 and box.dtype == np.float32


def as_record(row: Any) -> int:
    data, label, points, name = row
    number = int(name.tobytes().decode().split()[1])
    wanted = payload(number)
    assert data.tobytes() == wanted[0] and label.tolist() == [wanted[1]] and label.dtype == np.int32
    assert points.dtype == np.float32 and points.tolist() == wanted[2].reshape(-1, 2).tolist()
    return number


class Way:
    """Pipeline over one of the readers, and the function that numbers its rows."""

    def __init__(self, make: Callable[..., Pipeline], number: Callable[[Any], int], **arguments: Any) -> None:
        self.make = lambda **more: make(**{**arguments, **more})
        self.number = number


@pytest.fixture(params=["tar", "file", "memory", "store"])
def way(request: pytest.FixtureRequest, tars: list[str], records: list[str]) -> Way:
    if request.param == "tar":
        return Way(of_tar, as_tar_sample, paths=tars)
    if request.param == "store":
        return Way(lambda **a: of_records(store=FolderStore(), **a), as_record, paths=records, where="store")
    return Way(of_records, as_record, paths=records, where=request.param)


# ---- contents, orders, shards, tokens ----


def test_rows_hold_what_was_written_in_order(tars: list[str], records: list[str]) -> None:
    with of_tar(paths=tars) as pipe:
        assert [as_tar_sample(row) for row in epoch(pipe)] == TAR_ORDER
    for where in ("file", "memory"):
        with of_records(paths=records, where=where) as pipe:
            assert [as_record(row) for row in epoch(pipe)] == list(range(COUNT))


SHAPES: list[dict[str, Any]] = [
    {"batch_size": 1, "num_threads": 1, "prefetch_queue_depth": 1},
    {"batch_size": 7, "num_threads": 3, "prefetch_queue_depth": 4},
    {"batch_size": COUNT, "exec_async": False},
]


def test_a_shuffle_takes_each_once_and_is_another_one_every_epoch(way: Way) -> None:
    with way.make(random_shuffle=True) as pipe:
        first = [way.number(row) for row in epoch(pipe)]
        pipe.reset()
        second = [way.number(row) for row in epoch(pipe)]
    assert sorted(first) == sorted(second) == list(range(COUNT))
    assert len({tuple(first), tuple(second), tuple(range(COUNT))}) == 3
    for shape in SHAPES:
        with way.make(random_shuffle=True, **shape) as pipe:
            assert [way.number(row) for row in epoch(pipe)] == first


def test_the_token_of_every_batch_restores_what_comes_after_it(way: Way) -> None:
    rows, tokens = [], []
    with way.make(random_shuffle=True) as pipe:
        for _ in range(9):  # into the second epoch
            tokens.append((len(rows), json.loads(json.dumps(pipe.get_state()))))
            rows += rows_of(pipe.run())
    for taken, token in tokens:
        with way.make(random_shuffle=True, batch_size=5, num_threads=1) as pipe:
            pipe.set_state(token)
            count = min(5, len(rows) - taken)
            assert rows_of(pipe.run())[:count] == rows[taken : taken + count]


def test_a_pipeline_goes_back_to_a_token_with_batches_made_ahead(way: Way) -> None:
    with way.make(random_shuffle=True, prefetch_queue_depth=3) as pipe:
        token = pipe.get_state()
        first = [rows_of(pipe.run()) for _ in range(3)]
        pipe.set_state(token)
        assert [rows_of(pipe.run()) for _ in range(3)] == first


def test_shards_share_an_epoch_and_a_token_serves_another_number_of_them(way: Way) -> None:
    with way.make(random_shuffle=True) as pipe:
        order = [way.number(row) for row in epoch(pipe)]
    parts = []
    for shard in range(2):
        with way.make(random_shuffle=True, num_shards=2, shard_id=shard) as pipe:
            parts.append([way.number(row) for row in epoch(pipe)])
    assert [parts[i % 2][i // 2] for i in range(COUNT)] == order
    with way.make(random_shuffle=True, num_shards=2, shard_id=0) as pipe:
        pipe.run()
        token = pipe.get_state(elastic=True)
    with way.make(random_shuffle=True) as pipe:
        pipe.set_state(token)
        assert [way.number(row) for row in epoch(pipe)] == order[8:]


def test_samplers_see_the_labels(records: list[str]) -> None:
    with of_records(paths=records, sampler=samplers.ClassBalanced()) as pipe:
        labels = [int(row[1][0]) for row in epoch(pipe)]
    counts = np.bincount(labels)
    assert len(counts) == 4 and counts.max() - counts.min() <= 4


def test_another_data_set_has_another_fingerprint(tars: list[str]) -> None:
    with of_tar(paths=tars) as pipe:
        token = pipe.get_state()
    with of_tar(paths=tars[::-1]) as pipe, pytest.raises(StateError, match="another data set"):
        pipe.set_state(token)


def test_joined_readers_join_all_columns(tars: list[str], records: list[str]) -> None:
    @pipeline_def(batch_size=4, num_threads=2, seed=3)
    def joined() -> Any:
        args: dict[str, Any] = {"ext": ["img", "box"], "optional": ["box"], "dtypes": {"box": "float32"}}
        return fn.readers.concat([fn.own.tar(paths=[path], **args) for path in tars])

    with joined() as pipe:
        rows = epoch(pipe)
    for row, number in zip(rows, TAR_ORDER, strict=True):
        img, box, has_box, part = row
        assert img.tobytes() == image(number) and part.tolist() == [number % 2]
        assert box.tolist() == (boxes(number) if number % 4 else boxes(number)[:0]).tolist()
        assert bool(has_box) == (number % 4 != 0)

    @pipeline_def(batch_size=4, num_threads=2, seed=3)
    def woven(where: str) -> Any:
        return fn.readers.mix([fn.own.records(paths=[p], where=where) for p in records], label_offsets=[0, 10, 20])

    for where in ("file", "memory"):
        with woven(where) as pipe:
            rows = epoch(pipe)
        assert len(rows) == COUNT
        for data, label, points, _, part in rows:
            assert label[0] // 10 == part[0]
            same = [i for i in range(COUNT) if payload(i)[0] == data.tobytes() and i % 4 == label[0] % 10]
            assert any(points.tolist() == payload(i)[2].reshape(-1, 2).tolist() for i in same)

    @pipeline_def(batch_size=4, num_threads=2)
    def unlike() -> Any:
        return fn.readers.concat([fn.own.tar(paths=tars, ext=["img"]), fn.own.records(paths=records)])

    with pytest.raises(ArgumentError, match=r"expected parts with the same columns, got \[\['img'\], \['payload',"):
        unlike().build()

    @pipeline_def(batch_size=4, num_threads=2)
    def of_unlike_storages() -> Any:
        return fn.readers.concat([fn.own.records(paths=[records[0]], where=w) for w in ("file", "memory")])

    with pytest.raises(ArgumentError, match=r"'payload' of uint8, 1 axes \(RangeStorage\), .* \(MemoryStorage\)"):
        of_unlike_storages().build()


# ---- absent components ----


def test_an_absent_component_is_refused_unless_the_reader_says_that_it_is_optional(tars: list[str]) -> None:
    refused = rf"expected 'box' in every sample, got none in sample 0 \({tars[0]} at byte \d+\), and in 6 of 23"
    with pytest.raises(ArgumentError, match=refused):
        of_tar(paths=tars, optional=["txt"]).build()


def test_an_optional_column_of_values_has_no_elements_where_it_is_absent() -> None:
    column = Values("box", np.arange(12.0).reshape(3, 4), absent=[False, True, False], optional=True)
    assert column.row(1).shape == (0,) and column.row(2).tolist() == [8, 9, 10, 11]
    assert presence(column).values.tolist() == [True, False, True]
    with pytest.raises(ArgumentError, match="expected 'box' in every sample, got none in sample 1, and in 1 of 3"):
        DataSet((Values("box", np.zeros((3, 4)), absent=[False, True, False]),), "")
    with pytest.raises(ArgumentError, match="expected at least one axis in an optional column"):
        Values("number", np.zeros(3), optional=True)


# ---- bad samples ----


@pytest.fixture
def cut(records: list[str], tmp_path: Path) -> tuple[list[str], int, int]:
    """Copy the record files, and return (sample, offset) of the last record of a file, which will be truncated."""
    paths = []
    for path in records:
        paths.append(str(tmp_path / os.path.basename(path)))
        Path(paths[-1]).write_bytes(Path(path).read_bytes())
    sample = max(i for i in range(COUNT) if i * 3 // COUNT == 1)
    return paths, sample, os.path.getsize(paths[1]) - len(payload(sample)[0])


def truncate(path: str) -> None:
    os.truncate(path, os.path.getsize(path) - 3)


def test_a_truncated_record_is_an_error_with_path_and_offset(cut: tuple[list[str], int, int]) -> None:
    paths, sample, offset = cut
    with of_records(paths=paths, batch_size=COUNT) as pipe:
        truncate(paths[1])
        length, size = len(payload(sample)[0]), os.path.getsize(paths[1])
        text = (
            rf"`own\.records`: expected {length} bytes at byte {offset} of '{paths[1]}', got a file of {size} bytes — "
            rf"sample {sample} \({paths[1]} at byte {offset}\), made at {__file__}:\d+"
        )
        with pytest.raises(DataError, match=text) as raised:
            pipe.run()
        assert raised.value.sample == sample
        bad = pipe.errors[0]
        assert (bad.path, bad.index, bad.offset, bad.action) == (paths[1], sample, offset, "raised")


@pytest.mark.parametrize("where", ["file", "store"])
def test_a_truncated_record_is_left_out(cut: tuple[list[str], int, int], where: str) -> None:
    paths, sample, offset = cut
    store = FolderStore()
    with of_records(paths=paths, where=where, store=store, on_error="skip") as pipe:
        truncate(paths[1])
        assert [as_record(row) for row in epoch(pipe)] == [i for i in range(COUNT) if i != sample]
        (bad,) = pipe.errors
        assert (bad.path, bad.index, bad.offset, bad.action) == (paths[1], sample, offset, "skipped")
        assert f"at byte {offset} of '{paths[1]}', got" in bad.reason
    store.close()


@pytest.mark.parametrize("where", ["file", "store"])
def test_a_truncated_record_is_replaced_by_the_same_one_however_it_runs(
    cut: tuple[list[str], int, int], where: str
) -> None:
    paths, sample, offset = cut
    found = []
    for shape in ({}, *SHAPES):
        store = FolderStore()
        arguments: dict[str, Any] = {"paths": paths, "where": where, "store": store, "random_shuffle": True, **shape}
        with of_records(on_error="replace", error_limit=0.5, **arguments) as pipe:
            if os.path.getsize(paths[1]) > offset + 1 and not found:
                pipe.build()
                truncate(paths[1])
            found.append([as_record(row) for row in epoch(pipe)])
            (bad,) = pipe.errors
            assert (bad.index, bad.action, bad.offset) == (sample, "replaced", offset)
            assert bad.substitute is not None and bad.substitute != sample
        store.close()
    assert all(f == found[0] for f in found)
    assert sample not in found[0] and len(found[0]) == COUNT


def test_the_component_that_is_damaged_is_the_one_that_is_listed(jpegs: Path, tmp_path: Path) -> None:
    photo = sorted(jpegs.rglob("*.jpg"))[0].read_bytes()
    path = str(tmp_path / "two.tar")
    with tarfile.open(path, "w") as tar:
        for i in range(3):
            for ext, content in (("a", photo), ("b", photo[: len(photo) // 2] if i == 1 else photo)):
                member = tarfile.TarInfo(f"{i}.{ext}")
                member.size = len(content)
                tar.addfile(member, io.BytesIO(content))
    with tarfile.open(path) as tar:
        begin = {m.name: m.offset_data for m in tar}["1.b"]

    @pipeline_def(batch_size=3, num_threads=2, on_error="skip")
    def both() -> Any:
        a, b = fn.own.tar(paths=[path], ext=["a", "b"])
        return fn.decoders.image(a), fn.decoders.image(b)

    with both() as pipe:
        assert len(pipe.run()[0]) == 2
        (bad,) = pipe.errors
    assert (bad.path, bad.index) == (path, 1)
    assert bad.offset == begin + len(photo) // 2, "where the data end, counted in the tar file"


def test_elements_that_are_not_whole_are_an_error_of_their_sample(tmp_path: Path) -> None:
    path = str(tmp_path / "odd.rec")
    write_records(path, [(b"12345678", 0, []), (b"123456789", 1, [])])

    class Odd(RecordReader, name="own.odd"):
        """Return payloads as numbers. Outputs: the payloads, four numbers per item."""

        outputs = 1

        @classmethod
        def dataset(cls, args: Any) -> DataSet:
            data = super().dataset(args)
            storage = data.columns[0].storage
            assert storage is not None
            return DataSet((Bytes("numbers", storage, "int16", (4,)),), data.fingerprint)

    stoker.register(Odd)

    @pipeline_def(batch_size=2, num_threads=1, on_error="skip")
    def odd(where: str, store: Any = None) -> Any:
        return fn.own.odd(paths=[path], where=where, store=store)

    for where in ("file", "memory", "store"):
        store = FolderStore()
        with odd(where, store) as pipe:
            (rows,) = pipe.run()
            assert len(rows) == 1 and rows[0].shape == (1, 4) and rows[0].dtype == np.int16
            assert rows[0].tobytes() == b"12345678"
            assert pipe.errors[0].reason == "expected a multiple of 8 bytes, got 9", where
        store.close()


def test_files_that_vanish_or_are_no_files_are_errors_of_their_samples(cut: tuple[list[str], int, int]) -> None:
    paths, _, _ = cut
    with of_records(paths=paths, on_error="skip", error_limit=1.0) as pipe:
        pipe.build()
        os.remove(paths[0])
        os.remove(paths[2])
        os.mkdir(paths[2])
        left = [as_record(row) for row in epoch(pipe)]
        reasons = {bad.reason for bad in pipe.errors}
    assert left == [i for i in range(COUNT) if i * 3 // COUNT == 1]
    assert reasons == {
        f"cannot read '{paths[0]}': No such file or directory", f"cannot read '{paths[2]}': Is a directory"
    }  # fmt: skip


def test_an_open_file_is_read_on_although_its_name_is_gone(cut: tuple[list[str], int, int]) -> None:
    paths, _, _ = cut
    with of_records(paths=paths, batch_size=1, num_threads=1, prefetch_queue_depth=1) as pipe:
        pipe.run()
        os.remove(paths[0])
        assert as_record(tuple(o[0] for o in pipe.run())) == 1
        storage = pipe.execution.sources[0].storages()[0]
        assert isinstance(storage, RangeStorage) and storage.table.open_files >= 1
    assert storage.table.open_files == 0, "closed with the pipeline"


def test_a_file_that_grows_is_read_with_its_new_size(tmp_path: Path) -> None:
    path = tmp_path / "growing"
    path.write_bytes(b"0123")
    storage = RangeStorage([path], [0, 0], [0, 4], [4, 4])
    assert storage.content(0) == b"0123"
    with pytest.raises(OSError, match=r"expected 4 bytes at byte 4 of '.*growing', got a file of 4 bytes"):
        storage.content(1)
    path.write_bytes(b"01234567")  # the same file
    assert storage.content(1) == b"4567"
    storage.close()


NO_DESCRIPTORS = """
import os, resource, sys
import stoker
from stoker import fn, pipeline_def
from tests.run.own_readers import RecordReader
stoker.register(RecordReader)

@pipeline_def(batch_size=4, num_threads=1, seed=3, on_error="skip")
def of_files(paths):
    return fn.readers.file(files=paths)

@pipeline_def(batch_size=4, num_threads=1, seed=3, on_error="skip")
def of_records(paths):
    return fn.own.records(paths=paths)

pipe = {way}(sys.argv[1:])
pipe.run()
soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
free = os.dup(0)
os.close(free)
resource.setrlimit(resource.RLIMIT_NOFILE, (free, hard))
try:
    for _ in range(20):
        pipe.run()
except stoker.DataError as error:
    assert "Too many open files" in str(error), error
    print("refused", len(pipe.errors))
else:
    print("went on", len(pipe.errors))
resource.setrlimit(resource.RLIMIT_NOFILE, (soft, hard))
pipe.close()
"""


def test_a_system_without_descriptors_fails_batches_and_is_no_bad_sample(records: list[str]) -> None:
    def said(way: str) -> str:
        command = [sys.executable, "-c", NO_DESCRIPTORS.replace("{way}", way), *records]
        done = subprocess.run(command, capture_output=True, text=True, env=environment(), timeout=120, check=False)
        assert done.returncode == 0, done.stderr
        return done.stdout.strip()

    assert said("of_files") == "refused 0"
    assert said("of_records") == "went on 0", "the descriptor of another file of the container is given back"


FEW_DESCRIPTORS = """
import os, resource, sys
import numpy as np
import stoker
from stoker import arg, fn, pipeline_def
from stoker.readers import Bytes, DataSet, RangeStorage, SampledReader, fingerprint

resource.setrlimit(resource.RLIMIT_NOFILE, (len(os.listdir("/proc/self/fd")) + 48, 4096))

@stoker.register
class Files(SampledReader, name="own.files"):
    \"\"\"Records of many files. Output: their bytes.\"\"\"

    outputs = 1
    paths = arg("object", doc="The files.")

    @classmethod
    def dataset(cls, args):
        count = len(args["paths"])
        file, part = np.divmod(np.arange(4 * count), 4)
        storage = RangeStorage(args["paths"], file, 3 * part, np.full(4 * count, 3))
        return DataSet((Bytes("data", storage),), fingerprint(file))

@pipeline_def(batch_size=16, num_threads=4, seed=3)
def graph():
    return fn.own.files(paths=sys.argv[1:], random_shuffle=True)

with graph() as pipe:
    storage = pipe.execution.sources[0].storages()[0]
    seen = []
    for _ in range(8 * (len(sys.argv) - 1) // 16):
        seen += [bytes(row).decode() for row in pipe.run()[0]]
        assert storage.table.open_files <= max(8, resource.getrlimit(resource.RLIMIT_NOFILE)[0] // 4)
    wanted = [f"{file:02}{part}" for file in range(len(sys.argv) - 1) for part in range(4)]
    assert sorted(seen) == sorted(2 * wanted)
print("open", storage.table.open_files)
"""


def test_more_files_than_descriptors_are_read_by_several_threads(tmp_path: Path) -> None:
    paths = []
    for n in range(80):
        paths.append(tmp_path / f"{n}.rec")
        paths[-1].write_text("".join(f"{n:02}{part}" for part in range(4)))
    command = [sys.executable, "-c", FEW_DESCRIPTORS, *map(str, paths)]
    done = subprocess.run(command, capture_output=True, text=True, env=environment(), timeout=120, check=False)
    assert (done.returncode, done.stdout) == (0, "open 0\n"), done.stderr


# ---- asynchronous stores ----


class Slow(FolderStore):
    """Store in which every range takes a while. It counts the ranges in flight."""

    def __init__(self) -> None:
        super().__init__()
        self.gate = threading.Event()

    def _read(self, r: ByteRange) -> bytes:
        self.gate.wait(2 * HANG_S)
        return super()._read(r)


def test_a_store_is_asked_as_far_ahead_as_batches_are_made(records: list[str]) -> None:
    store = Slow()
    with of_records(paths=records, where="store", store=store, prefetch_queue_depth=3) as pipe:
        got: list[Any] = []
        thread = threading.Thread(target=lambda: got.append(rows_of(pipe.run())))
        thread.start()
        deadline = time.monotonic() + HANG_S
        first = sum(bool(payload(i)[0]) for i in range(12))  # a store may leave out requests for empty records
        while len(store.requested) < first and time.monotonic() < deadline:
            time.sleep(0.01)
        assert len(store.requested) >= first, "three batches"
        assert not got
        store.gate.set()
        thread.join(HANG_S)
        assert len(got) == 1
        asked = len(store.requested)
        list(epoch(pipe))
    wanted = sum(bool(payload(i)[0]) for i in range(COUNT))
    assert wanted <= len(store.requested) <= 2 * wanted and asked < len(store.requested)
    assert store.closed >= 1


def test_nothing_is_asked_for_twice_or_for_outputs_that_nothing_needs(records: list[str]) -> None:
    @pipeline_def(batch_size=4, num_threads=2, seed=3)
    def labels_alone(store: Any) -> Any:
        return fn.own.records(paths=records, where="store", store=store)[1]

    store = FolderStore()
    with labels_alone(store) as pipe:
        pipe.run()
        assert not store.requested
    store = FolderStore()
    with of_records(paths=records, where="store", store=store, exec_async=False) as pipe:
        epoch(pipe)
        assert len(store.requested) == len(set(store.requested)) == sum(bool(payload(i)[0]) for i in range(COUNT))


def test_closing_ends_the_wait_for_a_store(records: list[str]) -> None:
    store = Slow()
    pipe = of_records(paths=records, where="store", store=store)
    failed: list[BaseException] = []

    def take() -> None:
        try:
            pipe.run()
        except BaseException as error:
            failed.append(error)

    thread = threading.Thread(target=take)
    thread.start()
    deadline = time.monotonic() + HANG_S
    while not store.requested and time.monotonic() < deadline:
        time.sleep(0.01)
    closing = threading.Thread(target=pipe.close)
    closing.start()
    thread.join(HANG_S)
    assert not thread.is_alive() and isinstance(failed[0], (StateError, DataError)), failed
    store.gate.set()
    closing.join(HANG_S)
    assert not closing.is_alive() and store.closed >= 1


def test_what_a_store_raises_is_the_rows_unless_it_is_the_systems(records: list[str]) -> None:
    place = RecordReader.dataset({"paths": records, "where": "file"}).columns[0].storage
    assert place is not None
    at = place.locate(6)

    store = FolderStore()
    store.failing[at.path, at.offset] = ConnectionError("reset by peer")
    with of_records(paths=records, where="store", store=store, on_error="skip") as pipe:
        assert len(epoch(pipe)) == COUNT - 1
        (bad,) = pipe.errors
        expected = f"cannot read '{at.path}' at byte {at.offset}: ConnectionError: reset by peer"
        assert (bad.index, bad.offset, bad.reason) == (6, at.offset, expected)

    store = FolderStore()
    store.failing[at.path, at.offset] = OSError(24, "Too many open files")
    with of_records(paths=records, where="store", store=store, on_error="skip") as pipe:
        pipe.run()
        with pytest.raises(DataError, match=r"Too many open files — sample 6"):
            pipe.run()
        assert len(epoch(pipe)) == COUNT - 8 and not pipe.errors

    store = FolderStore()
    store.cut.add((at.path, at.offset))
    with of_records(paths=records, where="store", store=store, on_error="skip") as pipe:
        assert len(epoch(pipe)) == COUNT - 1
        assert f"at byte {at.offset} of '{at.path}', got {(at.length or 0) - 1}" in pipe.errors[0].reason


def test_bytes_that_are_there_need_no_future(records: list[str]) -> None:
    class Cached:
        def fetch(self, ranges: Any) -> list[bytes | Future[bytes]]:
            found: list[bytes | Future[bytes]] = []
            for r in ranges:
                with open(r.path, "rb") as file:
                    file.seek(r.offset)
                    found.append(file.read(r.length))
            return found

        def close(self) -> None:
            pass

    with of_records(paths=records, where="store", store=Cached()) as pipe:
        assert [as_record(row) for row in epoch(pipe)] == list(range(COUNT))


# ---- invalid declarations ----


def test_columns_and_storages_that_do_not_fit_are_refused(tmp_path: Path) -> None:
    path = tmp_path / "file"
    path.write_bytes(b"0123456789")
    storage = RangeStorage([path], [0, 0], [0, 4], [4, 4])
    with pytest.raises(ArgumentError, match="columns of equally many samples"):
        DataSet((Bytes("a", storage), Values("b", np.zeros(3))), "")
    with pytest.raises(ArgumentError, match="columns of different names"):
        DataSet((Bytes("a", storage), Values("a", np.zeros(2))), "")
    with pytest.raises(ArgumentError, match="one int32 per sample in the column 'b' of labels"):
        DataSet((Bytes("a", storage), Values("b", np.zeros(2))), "", "b")
    with pytest.raises(ArgumentError, match="expected a column of"):
        DataSet((Bytes("a", storage),), "", "b")
    with pytest.raises(ArgumentError, match="expected at least one sample"):
        DataSet((Values("b", np.zeros((0, 3))),), "")
    with pytest.raises(ArgumentError, match="expected at least one column"):
        DataSet((), "")
    with pytest.raises(ArgumentError, match="a fingerprint in hexadecimal digits, got 'mine'"):
        DataSet((Bytes("a", storage),), "mine")
    with pytest.raises(ArgumentError, match="a layout of 1 axes"):
        Bytes("a", storage, layout="HW")
    with pytest.raises(ArgumentError, match="expected numbers in the column 'b'"):
        Values("b", np.asarray(["text"]))
    with pytest.raises(ArgumentError, match="ends that rise to 3"):
        ragged("r", np.zeros((3, 2)), [2, 1, 3])
    with pytest.raises(ArgumentError, match="in files that there are"):
        RangeStorage([path], [1], [0], [4])
    with pytest.raises(ArgumentError, match="expected numbers from 0"):
        RangeStorage([path], [0], [-1], [4])
    with pytest.raises(ArgumentError, match="one file, offset and length per record"):
        RangeStorage([path], [0], [0, 1], [4, 4])
    texts = strings("t", ["a", None, "bc"], optional=True)
    assert [texts.row(i).tobytes() for i in range(3)] == [b"a", b"", b"bc"]
    assert presence(texts).values.tolist() == [True, False, True]
