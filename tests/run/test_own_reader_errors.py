# SPDX-License-Identifier: Apache-2.0
"""Faults of container files: truncated records, missing files, and a lack of descriptors."""

from __future__ import annotations

import io
import os
import subprocess
import sys
import tarfile
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import stoker
from stoker import DataError, fn, pipeline_def
from stoker.readers import Bytes, DataSet, RangeStorage
from tests.run import containers
from tests.run.containers import COUNT, SETTINGS, as_record, epoch, of_records, payload
from tests.run.own_readers import FolderStore, RecordReader, write_records
from tests.run.pipelines import environment

pytestmark = pytest.mark.usefixtures("registered_readers")


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
            rf"sample {sample} \({paths[1]} at byte {offset}\), made at {containers.__file__}:\d+"
        )
        with pytest.raises(DataError, match=text) as raised:
            pipe.run()
        assert raised.value.sample == sample
        bad = pipe.errors[0]
        assert (bad.path, bad.index, bad.offset, bad.action) == (paths[1], sample, offset, "raised")


@pytest.mark.parametrize("where", ["file", "store"])
def test_a_truncated_record_is_skipped(cut: tuple[list[str], int, int], where: str) -> None:
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
def test_a_truncated_record_is_replaced_by_the_same_one_under_all_settings(
    cut: tuple[list[str], int, int], where: str
) -> None:
    paths, sample, offset = cut
    found = []
    for shape in ({}, *SETTINGS):
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


def test_the_damaged_component_is_listed(jpegs: Path, tmp_path: Path) -> None:
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


def test_partial_elements_are_an_error_of_their_sample(tmp_path: Path) -> None:
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


def test_missing_files_are_errors_of_their_samples(cut: tuple[list[str], int, int]) -> None:
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


def test_an_open_file_stays_readable_after_its_removal(cut: tuple[list[str], int, int]) -> None:
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

pipe = {source}(sys.argv[1:])
pipe.run()
soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
free = os.dup(0)
os.close(free)
# A thread that reads ahead may return a descriptor later. With a limit of 3, no free one can be below it.
resource.setrlimit(resource.RLIMIT_NOFILE, (free if "{source}" == "of_records" else 3, hard))
try:
    for _ in range(20):
        pipe.run()
except stoker.DataError as error:
    assert "Too many open files" in str(error), error
    print("refused", len(pipe.errors))
else:
    print("continued", len(pipe.errors))
resource.setrlimit(resource.RLIMIT_NOFILE, (soft, hard))
pipe.close()
"""


def test_a_lack_of_descriptors_fails_batches_and_no_sample(records: list[str]) -> None:
    def run(source: str) -> str:
        command = [sys.executable, "-c", NO_DESCRIPTORS.replace("{source}", source), *records]
        done = subprocess.run(command, capture_output=True, text=True, env=environment(), timeout=120, check=False)
        assert done.returncode == 0, done.stderr
        return done.stdout.strip()

    assert run("of_files") == "refused 0"
    assert run("of_records") == "continued 0", "it releases the descriptor of another file of the container"


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
    rows = []
    for _ in range(8 * (len(sys.argv) - 1) // 16):
        rows += [bytes(row).decode() for row in pipe.run()[0]]
        assert storage.table.open_files <= max(8, resource.getrlimit(resource.RLIMIT_NOFILE)[0] // 4)
    wanted = [f"{file:02}{part}" for file in range(len(sys.argv) - 1) for part in range(4)]
    assert sorted(rows) == sorted(2 * wanted)
print("open", storage.table.open_files)
"""


def test_several_threads_read_more_files_than_there_are_descriptors(tmp_path: Path) -> None:
    paths = []
    for n in range(80):
        paths.append(tmp_path / f"{n}.rec")
        paths[-1].write_text("".join(f"{n:02}{part}" for part in range(4)))
    command = [sys.executable, "-c", FEW_DESCRIPTORS, *map(str, paths)]
    done = subprocess.run(command, capture_output=True, text=True, env=environment(), timeout=120, check=False)
    assert (done.returncode, done.stdout) == (0, "open 0\n"), done.stderr
