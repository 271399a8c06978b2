# SPDX-License-Identifier: Apache-2.0
"""Manifests: the rows of files for every order, shard and state; faults; a data set of 10^10 records."""

from __future__ import annotations

import itertools
import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import containers
from stoker import ArgumentError, DataError, fn, samplers, types
from stoker import tfrecord as features
from stoker.command import main
from stoker.contract.reader import Shards
from stoker.contract.storage import RecordForm
from stoker.inspection.manifest import write_manifest
from stoker.inspection.reading_plan import rank_indices, simulate
from stoker.native import _native
from stoker.readers._index_files import index_files
from stoker.readers._manifest import ManifestStorage
from stoker.readers._manifest_file import ManifestWriter, ShardRecords, entries_path, file_version, open_manifest
from tests.containers.data import epoch, pipeline, plain, rows
from tests.idle_clock import HANG_S

COUNTS = [4, 0, 7, 1]  # samples of the shards


def content(i: int) -> bytes:
    return np.random.default_rng(i).bytes(i * 37 % 300)


def numbers() -> list[range]:
    ends = np.cumsum([0, *COUNTS]).tolist()
    return [range(a, b) for a, b in itertools.pairwise(ends)]


def tfrecords(folder: Path) -> tuple[list[str], Callable[..., Any]]:
    paths = []
    for k, some in enumerate(numbers()):
        (folder / f"{k}.tfrecord").write_bytes(
            containers.tfrecord([containers.example({"s": content(i), "n": [i]}) for i in some])
        )
        paths.append(str(folder / f"{k}.tfrecord"))
    wanted = {
        "s": features.FixedLenFeature((), features.string, ""),
        "n": features.FixedLenFeature([1], features.int64),
    }
    return paths, lambda path, **order: list(fn.readers.tfrecord(path=path, features=wanted, **order).values())


def recordios(folder: Path) -> tuple[list[str], Callable[..., Any]]:
    paths = []
    for k, some in enumerate(numbers()):
        data, _ = containers.recordio([containers.image_record([1.5, i], containers.MAGIC + content(i)) for i in some])
        (folder / f"{k}.rec").write_bytes(data)
        paths.append(str(folder / f"{k}.rec"))
    return paths, lambda path, **order: fn.readers.mxnet(path=path, **order)


def tars(folder: Path) -> tuple[list[str], Callable[..., Any]]:
    paths = []
    for k, some in enumerate(numbers()):
        members: list[tuple[str, bytes]] = []
        for i in some:
            members += [(f"{i:02}.{'png' if i % 3 else 'jpg'}", content(i)), (f"{i:02}.jpg", b"another")]
            members += [(f"{i:02}.Cls", bytes([i, i]))] * (i % 4 != 0)
        (folder / f"{k}.tar").write_bytes(containers.tar(members))
        paths.append(str(folder / f"{k}.tar"))
    return paths, lambda path, **order: fn.readers.webdataset(
        paths=path, ext=["jpg;png", "cls"], case_sensitive_extensions=False, dtypes=[types.UINT8, types.UINT16], **order
    )


def bags(folder: Path) -> tuple[list[str], Callable[..., Any]]:
    paths = []
    for k, some in enumerate(numbers()):
        (folder / f"{k}.bag").write_bytes(containers.bagz([content(i) for i in some]))
        paths.append(str(folder / f"{k}.bag"))
    return paths, lambda path, **order: [fn.readers.bagz(paths=path, **order)]


FORMATS = {"tfrecord": tfrecords, "recordio": recordios, "tar": tars, "bagz": bags}
ORDERS: list[dict[str, Any]] = [
    {}, {"random_shuffle": True, "seed": 5}, {"sampler": [3, 3, 11, 0]}, {"num_shards": 5, "shard_id": 3},
    {"random_shuffle": True, "num_shards": 3, "shard_id": 2, "sharding": "contiguous"},
    {"sampler": samplers.Windowed(2, 3), "num_shards": 2, "shard_id": 1},
]  # fmt: skip


@pytest.fixture(params=FORMATS.values(), ids=FORMATS)
def made(request: pytest.FixtureRequest, tmp_path: Path) -> tuple[list[str], Callable[..., Any], str]:
    """Return paths, reader and manifest of a data set."""
    paths, read = request.param(tmp_path)
    out = str(tmp_path / "all.manifest")
    assert write_manifest(out, paths) == sum(COUNTS)
    return paths, read, out


@pytest.mark.parametrize("batch", [1, 5])
def test_rows_are_those_of_the_files(made: tuple[list[str], Callable[..., Any], str], batch: int) -> None:
    paths, read, out = made
    for order in ORDERS:
        wanted = rows(lambda order=order: read(paths, **order), batch_size=batch)
        found = rows(lambda order=order: read(out, **order), batch_size=batch)
        assert list(map(plain, found)) == list(map(plain, wanted))
        assert len(found) > 1


def test_a_state_resumes_at_every_row(made: tuple[list[str], Callable[..., Any], str]) -> None:
    _, read, out = made

    def define() -> Any:
        return read(out, random_shuffle=True)

    whole = list(map(plain, rows(define, batch_size=3)))
    for batches in range(1, 4):
        with pipeline(define, batch_size=3) as pipe:
            for _ in range(batches):
                pipe.next()
            state = pipe.get_state()
        with pipeline(define, batch_size=3) as pipe:
            pipe.set_state(state)
            assert list(map(plain, epoch(pipe))) == whole[3 * batches :]


def test_manifests_join_and_mix(made: tuple[list[str], Callable[..., Any], str], tmp_path: Path) -> None:
    paths, read, out = made
    for k, half in enumerate((paths[:2], paths[2:])):
        write_manifest(str(tmp_path / f"{k}.manifest"), half)
    parts = [str(tmp_path / f"{k}.manifest") for k in range(2)]
    (tmp_path / "sub").mkdir()
    joined = str(tmp_path / "sub/joined.manifest")
    assert write_manifest(joined, parts) == sum(COUNTS)
    wanted = list(map(plain, rows(lambda: read(out))))
    assert list(map(plain, rows(lambda: read(joined)))) == wanted


def test_concatenated_readers(tmp_path: Path) -> None:
    paths, read = tfrecords(tmp_path)
    for k, half in enumerate((paths[:1], paths[2:])):
        write_manifest(str(tmp_path / f"{k}.manifest"), half)

    def define(*names: Any) -> Any:
        return fn.readers.concat([read(name) for name in names])[:2] if len(names) > 1 else read(names[0])

    found = rows(lambda: define(str(tmp_path / "0.manifest"), str(tmp_path / "1.manifest")))
    assert list(map(plain, found)) == list(map(plain, rows(lambda: define(paths))))


def test_mds(tmp_path: Path) -> None:
    columns = {"n": ("int", 8), "data": ("bytes", None)}
    for k in range(2):
        samples = [{"n": np.int64(i).tobytes(), "data": content(i)} for i in range(9 * k, 9 * k + 9)]
        containers.mds(tmp_path / str(k), samples, columns, per_shard=4)
    out = str(tmp_path / "all.manifest")
    assert write_manifest(out, [str(tmp_path / "0"), str(tmp_path / "1")]) == 18

    def read(path: str) -> Any:
        return list(fn.readers.mds(path=path, columns=["n", "data"]).values())

    wanted = rows(lambda: read(str(tmp_path / "0"))) + rows(lambda: read(str(tmp_path / "1")))
    assert list(map(plain, rows(lambda: read(out)))) == list(map(plain, wanted))


# ---- faults ----


def small(folder: Path) -> tuple[list[str], Callable[..., Any], str]:
    paths, read = tfrecords(folder)
    out = str(folder / "a.manifest")
    write_manifest(out, paths)
    return paths, read, out


def test_every_truncated_or_spoilt_manifest_is_refused(tmp_path: Path) -> None:
    _, _, out = small(tmp_path)
    whole = Path(out).read_bytes()
    for end in range(len(whole)):
        Path(out).write_bytes(whole[:end])
        with pytest.raises(ArgumentError, match="expected a manifest"):
            open_manifest(out)
    for at in range(len(whole)):
        Path(out).write_bytes(whole[:at] + bytes([whole[at] ^ 0x20]) + whole[at + 1 :])
        with pytest.raises(ArgumentError, match="expected a manifest"):
            open_manifest(out)


def test_spoilt_records_fail_their_rows_alone(tmp_path: Path) -> None:
    _, read, out = small(tmp_path)
    whole = Path(entries_path(out)).read_bytes()
    wanted = list(map(plain, rows(lambda: read(out))))
    for at in range(32, 32 + 5 * 20):
        Path(entries_path(out)).write_bytes(whole[:at] + bytes([whole[at] ^ 0x81]) + whole[at + 1 :])
        with pipeline(lambda: read(out, on_error="skip"), batch_size=12) as pipe:
            found = list(map(plain, epoch(pipe)))
        bad = (at - 32) // 20
        assert found == wanted[:bad] + wanted[bad + 1 :]
    for end in (0, 8, 31, len(whole) - 1):
        Path(entries_path(out)).write_bytes(whole[:end])
        with pytest.raises(ArgumentError, match=r"records|bytes"):
            open_manifest(out)
    Path(entries_path(out)).unlink()
    with pytest.raises(ArgumentError, match="there is no such file"):
        open_manifest(out)


def test_shards_that_vanish_or_change(tmp_path: Path) -> None:
    paths, read, out = small(tmp_path)
    wanted = list(map(plain, rows(lambda: read(out))))
    with open(paths[0], "ab") as file:
        file.write(b"more")
    os.unlink(paths[3])
    with pipeline(lambda: read(out, on_error="skip")) as pipe:
        assert list(map(plain, epoch(pipe))) == wanted[4:11]
        reasons = {str(bad.reason) for bad in pipe.errors}
    assert any("the shard has changed" in reason for reason in reasons)
    assert any("No such file" in reason for reason in reasons)
    with pytest.raises(DataError, match="as its manifest says"):
        rows(lambda: read(out))


def later(path: str | Path) -> int:
    """Move a file's modification time on, and return the time before."""
    before = os.stat(path).st_mtime_ns
    os.utime(path, ns=(before, before + 1))
    return before


def changed_in_place(path: str, at: int) -> None:
    """Change a byte of a file, which keeps its modification time."""
    times = os.stat(path)
    with open(path, "r+b") as file:
        file.seek(at)
        byte = file.read(1)[0]
        file.seek(at)
        file.write(bytes([byte ^ 0x40]))
    os.utime(path, ns=(times.st_atime_ns, times.st_mtime_ns))


def storage_of(out: str) -> ManifestStorage:
    return ManifestStorage(open_manifest(out), [0], RecordForm.STORED)


def test_a_shard_that_was_rewritten_with_its_size_is_refused(
    made: tuple[list[str], Callable[..., Any], str], tmp_path: Path
) -> None:
    paths, read, out = made
    wanted = list(map(plain, rows(lambda: read(out))))
    joined = str(tmp_path / "joined.manifest")
    write_manifest(joined, [out])
    changed_in_place(paths[2], os.path.getsize(paths[2]) // 2)
    later(paths[2])
    for name in (out, joined):
        with pipeline(lambda name=name: read(name, on_error="skip"), error_limit=1.0) as pipe:
            assert list(map(plain, epoch(pipe))) == wanted[:4] + wanted[11:]
            reasons = [str(bad.reason) for bad in pipe.errors]
            assert len(reasons) == 7
            assert all(paths[2] in reason and "of the same size with other bytes" in reason for reason in reasons)
        with pytest.raises(DataError, match=r"as it was when its manifest was made.*the shard has changed"):
            rows(lambda name=name: read(name))


def test_copied_shards_with_other_times_are_read(
    made: tuple[list[str], Callable[..., Any], str], tmp_path: Path
) -> None:
    paths, read, out = made
    wanted = list(map(plain, rows(lambda: read(out))))
    for path in paths:
        later(path)
    assert list(map(plain, rows(lambda: read(out)))) == wanted
    again = str(tmp_path / "again.manifest")
    write_manifest(again, paths)
    first, second = open_manifest(out), open_manifest(again)
    assert [tag for _, tag, *_ in first.shards()] != [tag for _, tag, *_ in second.shards()]
    assert first.digest == second.digest  # so that states restore


def test_the_pieces_are_compared_once_for_each_time(tmp_path: Path) -> None:
    paths, _ = bags(tmp_path)
    out = str(tmp_path / "a.manifest")
    write_manifest(out, paths)
    storage, at = storage_of(out), 40
    storage.close()  # each read opens its shard
    assert storage.content(1) == content(1)
    changed_in_place(paths[0], at)
    changed = content(1)[:3] + bytes([content(1)[3] ^ 0x40]) + content(1)[4:]
    changed_in_place(paths[0], at)
    assert storage.content(1) == content(1)
    later(paths[0])
    assert storage.content(1) == content(1)  # the pieces are compared
    changed_in_place(paths[0], 3)
    assert storage.content(1) == changed  # a file with a known time is not compared
    later(paths[0])
    with pytest.raises(OSError, match="of the same size with other bytes"):
        storage.content(1)


@pytest.mark.parametrize("size", [0, 1, 4095, 4096, 4097, 65535, 65536, 65537, 65551, 70_000, 300_001])
def test_the_checksum_of_a_version(tmp_path: Path, size: int) -> None:
    path = tmp_path / "shard"
    data = np.random.default_rng(size).bytes(size)
    path.write_bytes(data)
    pieces = [(at, min(at + 4096, size)) for at in range(0, size, 4096)]
    if size > 65536:
        step = (size - 4096) // 15
        pieces = [(k * step, k * step + 4096) for k in range(15)] + [(size - 4096, size)]
    crc = _native.crc32c(b"".join(data[a:b] for a, b in pieces))
    assert file_version(str(path)) == (size, f"{os.stat(path).st_mtime_ns}:{crc}")
    for at in {0, size // 3, size // 2, size - 1} if size else set():
        changed_in_place(str(path), at)
        is_sampled = any(a <= at < b for a, b in pieces)
        assert (file_version(str(path))[1] != f"{os.stat(path).st_mtime_ns}:{crc}") == is_sampled
        changed_in_place(str(path), at)


def test_a_shard_that_changes_while_the_manifest_is_made(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    paths, _ = tfrecords(tmp_path)

    def find(kind: str, some: list[str], store: Any) -> Any:
        found = index_files(kind, some, store)
        later(paths[2])
        return found

    monkeypatch.setattr("stoker.inspection.manifest.index_files", find)
    with pytest.raises(ArgumentError, match="has changed while the manifest was made"):
        write_manifest(str(tmp_path / "a.manifest"), paths)
    assert not list(tmp_path.glob("a.manifest*"))


@pytest.mark.parametrize("tag", ["x", ":", "12:", ":5", "1:2:3", " 1:2", "1:-2", "1:99999999999", "9" * 30 + ":1"])
def test_versions_that_are_none_are_refused(tmp_path: Path, tag: str) -> None:
    paths, _ = bags(tmp_path)
    out = str(tmp_path / "a.manifest")
    for text in ("", tag):
        with ManifestWriter(out, "bagz") as writer:
            range_of = np.zeros((1, 1), np.uint64), np.ones((1, 1), np.uint64)
            writer.add(ShardRecords(paths[0], os.path.getsize(paths[0]), text, ("",), *range_of))
            writer.finish()
        if not text:
            assert len(storage_of(out).content(0)) == 1  # without a version, sizes alone are compared
    with pytest.raises(OSError, match="expected the version of a file"):
        storage_of(out).content(0)


def test_refusals(tmp_path: Path) -> None:
    paths, read, out = small(tmp_path)
    with pytest.raises(ArgumentError, match="one manifest"):
        rows(lambda: read([out, paths[0]]))
    with pytest.raises(ArgumentError, match="of recordio files, got one of tfrecord"):
        rows(lambda: fn.readers.mxnet(path=out)[0])
    with pytest.raises(ArgumentError, match="expected no `index_path`"):
        rows(lambda: read(out, index_path=paths[0]))
    with pytest.raises(ArgumentError, match="there is none"):
        rows(lambda: read(str(tmp_path / "none.manifest")))
    with pytest.raises(ArgumentError, match="to end with"):
        write_manifest(str(tmp_path / "out"), paths)
    Path(paths[2]).write_bytes(Path(paths[2]).read_bytes()[:-1])
    with pytest.raises(ArgumentError, match="is damaged at byte"):
        write_manifest(str(tmp_path / "b.manifest"), paths)
    assert not list(tmp_path.glob("b.manifest*"))


def test_components_that_samples_lack(tmp_path: Path) -> None:
    paths, _ = tars(tmp_path)
    out = str(tmp_path / "a.manifest")
    write_manifest(out, paths)

    def read(ext: str, behavior: str) -> Any:
        return fn.readers.webdataset(paths=out, ext=ext, missing_component_behavior=behavior)

    assert len(rows(lambda: read("jpg", "error"))) == sum(COUNTS)
    assert sum(len(row[0]) == 0 for row in rows(lambda: read("Cls", "empty"))) == 3
    for behavior in ("skip", "error"):
        with pytest.raises(ArgumentError, match=f"in all 12 samples.*{behavior}.*got it in 9"):
            rows(lambda behavior=behavior: read("Cls", behavior))
    with pytest.raises(ArgumentError, match="expected components of 'jpg'"):
        rows(lambda: read("mp3", "empty"))


def test_command(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    paths, _ = tars(tmp_path)
    out = str(tmp_path / "a.manifest")
    (tmp_path / "list").write_text("\n".join(paths))
    assert main(["index", "--manifest", out, f"@{tmp_path / 'list'}"]) == 0
    assert "4 shards, 12 records" in capsys.readouterr().out
    assert main(["index", out, "--ranks", "3", "--rate", "4", "--batch", "1", "--window", "2"]) == 0
    lines = capsys.readouterr().out.splitlines()
    assert "tar, 4 shards, 12 records" in lines[0]
    assert [line.split(":")[0].strip() for line in lines[1:]] == [
        "Shuffled, strided", "Windowed(3, 2), strided", "Windowed(3, 2), contiguous",
    ]  # fmt: skip
    assert main(["index", paths[0], "--ranks", "3"]) == 1
    assert main(["index", "--manifest", out, str(tmp_path / "none.tar")]) == 1


# ---- scale ----

SHARDS, PER_SHARD, RANKS = 1_000_000, 10_000, 10_000


@pytest.fixture(scope="module")
def large(tmp_path_factory: pytest.TempPathFactory) -> str:
    """Return a manifest of 10^10 records in 10^6 shards, which are names of four files."""
    folder = tmp_path_factory.mktemp("large")
    shards = []
    for k in range(4):
        some = [containers.example({"n": [k * PER_SHARD + i]}) for i in range(PER_SHARD)]
        data, sizes = containers.tfrecord(some), np.asarray([len(s) + 16 for s in some], np.uint64)
        (folder / f"{k}.tfrecord").write_bytes(data)
        offset = (np.cumsum(sizes) - sizes).astype(np.uint64)[:, None]
        shards.append(ShardRecords(str(folder / f"{k}.tfrecord"), len(data), "", ("",), offset, sizes[:, None]))
    out = str(folder / "large.manifest")
    with ManifestWriter(out, "tfrecord") as writer:
        for shard in shards:
            writer.add(shard)
        for number in range(4, SHARDS):
            writer.add_packed(shards[number % 4], number % 4 * PER_SHARD, PER_SHARD, 1)
        writer.finish()
    return out


_START = """
import sys, time
before = time.process_time(), time.perf_counter()
from stoker import Pipeline, fn, tfrecord
features = {"n": tfrecord.FixedLenFeature([1], tfrecord.int64)}
pipe = Pipeline(batch_size=64, num_threads=2, seed=3, device_id=None)
with pipe:
    pipe.set_outputs(fn.readers.tfrecord(path=sys.argv[1], features=features, random_shuffle=True,
                                         num_shards=10_000, shard_id=int(sys.argv[2]))["n"])
with pipe:
    rows = [int(row[0]) for row in pipe.execution.batches(pipe.next())[0]]
    took = time.process_time() - before[0], time.perf_counter() - before[1]
    status = dict(line.split(":", 1) for line in open("/proc/self/status"))  # getrusage counts the parent's memory
    print(*took, int(status["VmHWM"].split()[0]) >> 10, len(repr(pipe.get_state())), *rows)
"""


def test_a_rank_of_ten_thousand_starts_fast_and_small(large: str) -> None:
    """The limits are 2 s and 200 MB; the processor's time does not depend on other programs."""
    done = subprocess.run(
        [sys.executable, "-c", _START, large, "7"], capture_output=True, text=True, check=True, timeout=120
    )
    cpu_s, _, rss_mib, state_bytes, *found = map(float, done.stdout.split())
    print(f"start: {cpu_s:.2f} s of processor time, {rss_mib:.0f} MiB, state of {state_bytes:.0f} bytes")
    assert cpu_s < 2
    assert rss_mib < 200
    assert state_bytes < 2000
    wanted = rank_indices(SHARDS * PER_SHARD, samplers.Shuffled(), Shards(RANKS, 7), np.arange(64, dtype=np.int64), 3)
    assert [int(n) for n in found] == (wanted // PER_SHARD % 4 * PER_SHARD + wanted % PER_SHARD).tolist()


ORDERS_AT_SCALE = [samplers.Shuffled(), samplers.Windowed(PER_SHARD, 16)]


@pytest.mark.parametrize("is_contiguous", [False, True])
def test_ranks_partition_sampled_positions(is_contiguous: bool) -> None:
    """Every position of the epoch has one rank and row, and different positions have different samples."""
    size = SHARDS * PER_SHARD + 77  # no multiple of the ranks
    chosen = np.unique(np.random.default_rng(1).integers(0, size, 20_000))
    if is_contiguous:
        rank = ((chosen + 1) * RANKS - 1) // size
        local = chosen - rank * size // RANKS
    else:
        rank, local = chosen % RANKS, chosen // RANKS
    assert rank.min() >= 0 and rank.max() < RANKS
    for epoch_number in (0, 3):
        for position, one, row in zip(chosen[:2000], rank, local, strict=False):
            shards = Shards(RANKS, (int(one) - epoch_number) % RANKS, is_contiguous)  # parts change hands every epoch
            assert int(row) < shards.own_length(size, epoch_number)
            assert shards.positions(size, epoch_number, 0, np.asarray([row]))[0] == position
        for sampler in ORDERS_AT_SCALE:
            found = sampler.bind(size, None, Shards(RANKS), 5).indices(5, epoch_number, chosen)
            assert len(np.unique(found)) == len(chosen)
            assert found.min() >= 0 and found.max() < size
    lengths = sum(Shards(RANKS, r, is_contiguous).own_length(size, 0) for r in range(RANKS))
    assert lengths == size


@pytest.mark.parametrize("size", [1, 9, 10, 61])
@pytest.mark.parametrize("ranks", [1, 2, 7, 61])
def test_ranks_partition_whole_small_epochs(size: int, ranks: int) -> None:
    for sampler in (samplers.Shuffled(), samplers.Windowed(4, 3), samplers.Sequential()):
        for is_contiguous in (False, True):
            for number in range(3):
                found: list[int] = []
                for rank in range(ranks):
                    shards = Shards(ranks, rank, is_contiguous)
                    local = np.arange(shards.own_length(size, number), dtype=np.int64)
                    found += rank_indices(size, sampler, shards, local, 5, number).tolist()
                assert sorted(found) == list(range(size))


def test_reads_of_a_rank(large: str) -> None:
    """A full shuffle reads every record from another shard; windows keep to few if the parts are contiguous."""
    opened = open_manifest(large)
    try:
        full, strided, contiguous = simulate(opened, RANKS, rate=500, batch=64, window=16)
    finally:
        opened.native.close()
    assert full.shards > 499
    assert full.open_shards > 127
    assert strided.records == 500
    assert 15 <= contiguous.shards <= 33
    assert contiguous.open_shards <= 33
    assert contiguous.blocks < full.blocks / 10
    assert "500 records/s" in str(full)


def test_a_writer_that_is_killed(tmp_path: Path) -> None:
    """A process that is killed leaves no manifest, and the next run writes it."""
    paths, read = tfrecords(tmp_path)
    out = tmp_path / "a.manifest"
    code = "import os, sys; from stoker.inspection.manifest import write_manifest; write_manifest(sys.argv[1], sys.argv[2:], lambda *_: os.kill(os.getpid(), 9))"  # noqa: E501
    killed = subprocess.run([sys.executable, "-c", code, str(out), *paths], check=False, timeout=HANG_S)
    assert killed.returncode == -9
    assert not out.exists()
    write_manifest(str(out), paths)
    assert list(map(plain, rows(lambda: read(str(out))))) == list(map(plain, rows(lambda: read(paths))))
    assert not list(tmp_path.glob("*.new"))
