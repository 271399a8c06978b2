# SPDX-License-Identifier: Apache-2.0
"""``readers.file``: sources of files, their order and labels; its arguments; large data sets."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from stoker import ArgumentError, DataError, Pipeline, StateError, fn, pipeline_def
from stoker.torch import Loader
from tests.idle_clock import HANG_S
from tests.run.pipelines import environment


@pipeline_def(batch_size=3, num_threads=2, seed=7)
def reading(**arguments: Any) -> Any:
    return fn.readers.file(name="Reader", **arguments)


def read_samples(pipe: Pipeline, batches: int | None = None) -> list[tuple[str, int]]:
    """Return the contents of the files and the labels: of an epoch, or of a number of batches across epochs."""
    found: list[tuple[str, int]] = []
    with pipe:
        for _ in range(batches or 1000):
            if batches is None:
                delivered = pipe.next()
                if delivered is None:
                    break
                outputs = pipe.execution.batches(delivered)
            else:
                outputs = pipe.run()
            found += [(bytes(x).decode(), int(y[0])) for x, y in zip(*outputs, strict=True)]
    return found


@pytest.fixture(scope="module")
def root(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Create three classes. Each file contains its own name."""
    root = tmp_path_factory.mktemp("classes")
    for name in ("b/2.jpg", "b/10.JPG", "a/x.png", "a/notes.txt", "C/1.jpg", "loose.jpg", "b/deep/never.jpg"):
        path = root / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(name)
    (root / "b" / "folder.jpg").mkdir()
    (root / "b" / "gone.jpg").symlink_to(root / "nowhere.jpg")
    return root


def test_folders_are_classes_in_lexicographic_order(root: Path) -> None:
    images = {"file_root": root, "extensions": [".jpg", ".png"]}
    with reading(dir_filters=["a", "C"], **images) as pipe:
        assert pipe.epoch_size("Reader") == 2
    assert read_samples(reading(dir_filters=["a", "C"], **images)) == [("C/1.jpg", 0), ("a/x.png", 1)]
    with reading(batch_size=1, **images) as pipe:
        sources = next(iter(pipe.execution.sources.values()))
        names = [os.path.relpath(sources.describe(i), root) for i in range(sources.samples)]
        assert names == ["C/1.jpg", "a/x.png", "b/10.JPG", "b/2.jpg", "b/gone.jpg"]
        for _ in range(4):
            pipe.run()
        with pytest.raises(DataError, match=r"gone\.jpg.*No such file"):  # a dangling link is not skipped silently
            pipe.run()


def test_filters(root: Path) -> None:
    assert read_samples(reading(file_root=root, file_filters="*.txt")) == [("a/notes.txt", 1)]
    assert read_samples(reading(file_root=root, file_filters=["*.JPG"], case_sensitive_filter=True)) == [
        ("b/10.JPG", 2)
    ]
    assert read_samples(reading(file_root=root, file_filters=["*.png", "1.*"])) == [("C/1.jpg", 0), ("a/x.png", 1)]
    assert read_samples(reading(file_root=root, dir_filters="A", file_filters="*.png")) == [("a/x.png", 0)]
    with pytest.raises(ArgumentError, match=r"no file was found in .*Are the files in class sub-folders"):
        reading(file_root=root, file_filters="*.gif").build()


def test_extensions(root: Path) -> None:
    assert read_samples(reading(file_root=root, extensions=[".TXT"])) == [("a/notes.txt", 1)]
    assert read_samples(reading(file_root=root, extensions=[".JPG"], case_sensitive_filter=True)) == [("b/10.JPG", 2)]
    with pytest.raises(ArgumentError, match="expected one of `extensions` and `file_filters`, got both"):
        reading(file_root=root, extensions=[".jpg"], file_filters="*.jpg")
    for wrong in (".jpg", ["jpg"], [1], [None]):
        with pytest.raises(
            ArgumentError, match=r"expected `extensions` to be a list of extensions with their dot, .* got"
        ):
            reading(file_root=root, extensions=wrong)


SIGNATURES = {
    "JPEG": b"\xff\xd8\xff\xe0", "PNG": b"\x89PNG\r\n\x1a\n", "GIF": b"GIF89a", "TIFF": b"MM\0*", "BigTIFF": b"II+\0",
    "WebP": b"RIFF\x10\0\0\0WEBPVP8 ", "AVIF": b"\0\0\0\x1cftypavif", "HEIC": b"\0\0\0\x18ftypheic", "QOI": b"qoif",
    "JPEG 2000": b"\0\0\0\x0cjP  \r\n\x87\n", "JPEG XL": b"\xff\x0a", "PNM": b"P6\n3 2\n255\n",
    "BMP": b"BM" + bytes(12) + b"\x28\0\0\0",
}  # fmt: skip


def test_images_are_found_by_extension_or_content(tmp_path: Path) -> None:
    """Names with the extension of an image are taken unread, others by their content; the rest is counted once."""
    (tmp_path / "a").mkdir()
    taken = []
    for extension in ("jpg", "JPEG", "jpe", "jfif", "avif", "heic", "jxl", "jp2", "webp", "tiff", "qoi"):
        taken.append(f"image.{extension}")
        (tmp_path / "a" / taken[-1]).write_bytes(b"not read")
    for name, start in SIGNATURES.items():
        taken += [name, f"{name}.data"]
        for path in taken[-2:]:
            (tmp_path / "a" / path).write_bytes(start + bytes(20))
    left_out = {"a.wav": b"RIFF\x10\0\0\0WAVEfmt ", "notes.txt": b"BM is short for ...", "empty": b"", "Pn": b"Pn 6"}
    for path, content in left_out.items():
        (tmp_path / "a" / path).write_bytes(content)
    (tmp_path / "a" / ".DS_Store").write_bytes(b"hidden, not counted")
    os.mkfifo(tmp_path / "a" / "pipe")  # opening it would block
    (tmp_path / "a" / "gone").symlink_to(tmp_path / "nowhere")
    pipe = reading(file_root=tmp_path)
    with pytest.warns(
        RuntimeWarning, match=r"6 files are left out, such as 'a/.*': neither name nor content"
    ) as warned:
        pipe.build()
    with pipe:
        source = next(iter(pipe.execution.sources.values()))
        names = [os.path.basename(source.describe(i)) for i in range(source.samples)]
    assert names == sorted(taken)
    assert len(warned) == 1 and warned[0].filename == __file__
    with pytest.raises(ArgumentError, match=r"no file was found in .*; 6 files are left out, such as"):
        for name in taken:
            (tmp_path / "a" / name).unlink()
        reading(file_root=tmp_path).build()


def test_a_list_of_files(root: Path) -> None:
    assert read_samples(reading(file_root=root, files=["a/x.png", "b/2.jpg"])) == [("a/x.png", 0), ("b/2.jpg", 1)]
    assert read_samples(reading(files=[root / "a/x.png"], labels=np.asarray([-7]))) == [("a/x.png", -7)]
    mixed = [str(root / "a/x.png"), "C/1.jpg", root / "b/2.jpg"]
    assert read_samples(reading(file_root=root, files=mixed, labels=[3, 2, 1])) == [
        ("a/x.png", 3), ("C/1.jpg", 2), ("b/2.jpg", 1)
    ]  # fmt: skip
    assert read_samples(reading(files=root / "a/x.png", labels=5)) == [("a/x.png", 5)]
    assert read_samples(reading(files=str(root / "a/x.png"))) == [("a/x.png", 0)]
    elsewhere = root.parent / "elsewhere.jpg"
    elsewhere.write_text("elsewhere")
    assert read_samples(reading(file_root=root, files=["a/x.png", elsewhere])) == [("a/x.png", 0), ("elsewhere", 1)]


def test_a_list_file(root: Path) -> None:
    listing = root / "list.txt"
    (root / "a" / "with space.jpg").write_text("space")
    listing.write_text("a/x.png 5\n\nb/2.jpg -1\na/with space.jpg 0\n")
    expected = [("a/x.png", 5), ("b/2.jpg", -1), ("space", 0)]
    assert read_samples(reading(file_list=listing)) == expected
    (root / "a" / "with space.jpg").unlink()
    other = root.parent / "other.txt"
    other.write_text("a/x.png 5\n")
    assert read_samples(reading(file_list=other, file_root=root)) == expected[:1]
    other.write_text("  a/x.png\t5  \r\n \t\nb/2.jpg \t -1\n")
    assert read_samples(reading(file_list=other, file_root=root)) == expected[:2]


@pytest.mark.parametrize(
    ("arguments", "text"),
    [
        ({"files": ["a"], "labels": [1, 2]}, "expected one label per file, got 2 labels for 1 files"),
        ({"files": ["a", "b"], "labels": 1}, "expected one label per file, got 1 labels for 2 files"),
        ({"files": ["a"], "labels": [0.5]}, "expected `labels` to be whole numbers of at most 32 bits"),
        ({"files": ["a"], "labels": [1 << 40]}, "expected `labels` to be whole numbers of at most 32 bits"),
        ({"files": ["a"], "labels": [float("nan")]}, "expected `labels` to be whole numbers of at most 32 bits"),
        ({"files": ["a"], "labels": [2.0**63]}, "expected `labels` to be whole numbers of at most 32 bits"),
        ({"files": ["a"], "labels": ["cat"]}, "expected `labels` to be whole numbers"),
        ({"labels": [1]}, "`labels` go with `files`"),
        ({"files": ["a"], "file_list": "b"}, "expected one of `files` and `file_list`, got both"),
        ({"files": ["a\0b"]}, "without zero bytes"),
        ({"files": ["a"], "num_shards": 0}, "expected 0 <= shard_id < num_shards"),
        ({"files": ["a"], "random_shuffle": True, "shuffle_after_epoch": True}, "shuffles the whole data set"),
        ({"files": ["a"], "stick_to_shard": True, "shuffle_after_epoch": True}, "shuffles the whole data set"),
        ({"files": ["a"], "sharding": "round"}, "expected one of 'strided', 'contiguous'"),
        (
            {"files": ["a"], "random_shuffle": True, "stick_to_shard": True, "num_shards": 2, "sharding": "strided"},
            'expected sharding="contiguous" with random_shuffle and stick_to_shard',
        ),
    ],
)
def test_wrong_arguments(arguments: dict[str, Any], text: str) -> None:
    with pytest.raises(ArgumentError, match=text):
        reading(**arguments).build()


def test_a_wrong_line_of_a_list_is_an_error(tmp_path: Path) -> None:
    for line in ("only_a_name", "name notanumber", " 3"):
        (tmp_path / "list.txt").write_text(f"fine.jpg 1\n{line}\n")
        with pytest.raises(ArgumentError, match='expected "path label" in line 2'):
            reading(file_list=tmp_path / "list.txt").build()


# ---- the order ----


@pytest.fixture(scope="module")
def numbered(tmp_path_factory: pytest.TempPathFactory) -> list[str]:
    root = tmp_path_factory.mktemp("numbered")
    for n in range(10):
        (root / f"{n}").write_text(f"{n}")
    return [str(root / f"{n}") for n in range(10)]


def epochs(pipe: Pipeline, count: int) -> list[list[int]]:
    found = []
    with pipe:
        for epoch in range(count):
            pipe.start_epoch(epoch)
            labels: list[int] = []
            while (delivered := pipe.next()) is not None:
                labels += np.asarray(delivered.outputs[1]).reshape(-1).tolist()
            found.append(labels)
    return found


def test_shuffling(numbered: list[str]) -> None:
    shuffled = epochs(reading(files=numbered, random_shuffle=True), 3)
    assert all(sorted(e) == list(range(10)) for e in shuffled)
    assert shuffled[0] != shuffled[1] != shuffled[2]
    later = epochs(reading(files=numbered, shuffle_after_epoch=True), 3)
    assert later == shuffled  # DALI 2.4 shuffles the first epoch too
    parts = [
        epochs(reading(files=numbered, shuffle_after_epoch=True, sharding="contiguous", num_shards=2, shard_id=i), 2)
        for i in range(2)
    ]
    for epoch in range(2):
        first, second = (set(part[epoch]) for part in parts)
        assert first | second == set(range(10))
    assert sorted(parts[0][0]) != sorted(parts[0][1])  # a shard has other samples every epoch
    assert epochs(reading_with(3, files=numbered, random_shuffle=True), 2) == epochs(reading_seeded(3, numbered), 2)


def reading_with(seed: int, **arguments: Any) -> Pipeline:
    """Set the seed of the reader."""

    @pipeline_def(batch_size=3, num_threads=1, seed=99)
    def define() -> Any:
        return fn.readers.file(seed=seed, **arguments)

    return define()


def reading_seeded(seed: int, files: list[str]) -> Pipeline:
    """Set the seed of the pipeline."""

    @pipeline_def(batch_size=4, num_threads=1, seed=seed)
    def define() -> Any:
        return fn.readers.file(files=files, random_shuffle=True)

    return define()


def test_a_fixed_and_shuffled_part(numbered: list[str]) -> None:
    """Like DALI: the same files in every epoch, in another order."""
    orders = epochs(reading(files=numbered, random_shuffle=True, stick_to_shard=True, num_shards=2, shard_id=1), 4)
    assert [sorted(e) for e in orders] == [[5, 6, 7, 8, 9]] * 4
    assert len({tuple(e) for e in orders}) > 1


def test_the_metadata_of_the_reader(numbered: list[str]) -> None:
    with reading(files=numbered, num_shards=3, shard_id=2, pad_last_batch=True, stick_to_shard=True) as pipe:
        assert pipe.reader_meta("Reader") == {
            "epoch_size": 10, "epoch_size_padded": 12, "number_of_shards": 3, "shard_id": 2, "pad_last_batch": 1,
            "stick_to_shard": 1,
        }  # fmt: skip
        assert pipe.epoch_size() == {"Reader": 10}


@pytest.mark.parametrize("policy", ["fill", "drop", "even"])
@pytest.mark.parametrize("sharding", ["strided", "contiguous"])
@pytest.mark.parametrize("pads", [False, True])
def test_all_ranks_get_the_same_number_of_batches(policy: str, sharding: str, pads: bool, numbered: list[str]) -> None:
    for number in (1, 2, 3, 4):
        counts = set()
        for shard in range(number):
            pipe = reading(
                files=numbered, num_shards=number, shard_id=shard, sharding=sharding, pad_last_batch=pads, batch_size=2
            )
            loader = Loader(pipe, last_batch_policy=policy)
            for _ in range(2):
                sizes = [len(labels) for _, labels in loader]
                assert len(sizes) == len(loader)
                counts.add(tuple(sizes))
            loader.close()
        assert len(counts) == 1


@pytest.mark.parametrize("shuffled", [False, True])
@pytest.mark.parametrize("sharding", ["strided", "contiguous"])
@pytest.mark.parametrize("pads", [False, True])
@pytest.mark.parametrize("size", [1, 9, 10])
def test_partial_delivers_every_sample_once(
    size: int, pads: bool, sharding: str, shuffled: bool, numbered: list[str]
) -> None:
    """Over all shards, in every epoch, with shards that differ by one row at most, and after a restored state too."""
    for number in (1, 2, 3, 4, 7):
        epochs: list[list[int]] = [[], [], []]
        counts = []
        for shard in range(number):

            def loader(shard: int = shard, number: int = number) -> Loader:
                pipe = reading(
                    files=numbered[:size], num_shards=number, shard_id=shard, sharding=sharding, pad_last_batch=pads,
                    random_shuffle=shuffled, batch_size=2,
                )  # fmt: skip
                return Loader(pipe, last_batch_policy="partial")

            whole = loader()
            per_epoch, states = [], []
            for epoch in epochs:
                length, batches = len(whole), []
                for _, labels in whole:
                    batches.append(labels.tolist())
                    states.append((len(per_epoch), len(batches), whole.state_dict()))
                assert length == len(batches)
                epoch += [label for batch in batches for label in batch]
                per_epoch.append(batches)
            whole.close()
            counts.append([sum(map(len, batches)) for batches in per_epoch])
            for epoch_number, delivered, state in states[-2:]:
                resumed = loader()
                resumed.load_state_dict(state)
                assert [labels.tolist() for _, labels in resumed] == per_epoch[epoch_number][delivered:]
                resumed.close()
        for epoch in epochs:
            assert sorted(epoch) == list(range(size))
        assert all(max(rows) - min(rows) <= 1 for rows in zip(*counts, strict=True))


def test_contiguous_shards_resume_but_not_in_another_number(numbered: list[str]) -> None:
    def shard(number: int, which: int) -> Pipeline:
        return reading(
            files=numbered, random_shuffle=True, num_shards=number, shard_id=which, sharding="contiguous", batch_size=2
        )

    with shard(2, 1) as pipe:
        pipe.run()
        state = pipe.get_state()
        expected = [x[1].as_array().tolist() for x in (pipe.run(), pipe.run(), pipe.run())]
        with pytest.raises(StateError, match='expected sharding="strided" for a state that another number of shards'):
            pipe.get_state(elastic=True)
    with shard(2, 1) as pipe:
        pipe.set_state(state)
        assert [x[1].as_array().tolist() for x in (pipe.run(), pipe.run(), pipe.run())] == expected
    for other in (shard(3, 1), shard(2, 0)):
        with other.build(), pytest.raises(StateError, match="had shard 1 of 2 by itself, has shard"):
            other.set_state(state)
    with reading(files=numbered, num_shards=2) as pipe:
        pipe.run()
        assert pipe.get_state(elastic=True) == pipe.get_state()


# ---- large data sets ----

_MANY = """
import sys, time
from pathlib import Path
from stoker import fn, pipeline_def
import stoker.executor.execution
count = int(sys.argv[1])
names = [f"n{i // 1300:08}/n{i // 1300:08}_{i}.JPEG" for i in range(count)]

@pipeline_def(batch_size=4, num_threads=1, seed=1, on_error="skip", error_limit=1)
def pipe():
    return fn.readers.file(file_root="/nowhere", files=names, labels=range(count), random_shuffle=True)

def used(what):
    lines = Path("/proc/self/status").read_text().splitlines()
    return next(int(line.split()[1]) for line in lines if line.startswith(what)) << 10

before, start = used("VmRSS"), time.process_time()
built = pipe().build()
seconds = time.process_time() - start
built.run()
state = built.get_state()
state["consumed"] = count // 2
start = time.process_time()
built.set_state(state)
print(seconds, used("VmHWM") - before, time.process_time() - start)
built.close()
"""


def test_many_files_start_fast_and_small() -> None:
    """Start with a tenth of the million files in the benchmark case `million-files`.

    The least processor time of several runs counts: programs that share caches and cores only add to it.
    """
    most_s, most_restoring_s = 0.6, 0.1  # 2 s for ten times the files
    seconds, restoring = [], []
    for _ in range(20):
        done = subprocess.run(
            [sys.executable, "-c", _MANY, "100000"],
            capture_output=True,
            text=True,
            env=environment(),
            check=False,
            timeout=HANG_S,
        )
        assert done.returncode == 0, done.stderr
        started, grown, restored = map(float, done.stdout.split())
        assert grown < 30 << 20  # 200 MB
        seconds.append(started)
        restoring.append(restored)
        if min(seconds) < most_s and min(restoring) < most_restoring_s:
            break
    assert min(seconds) < most_s, seconds
    assert min(restoring) < most_restoring_s, restoring
