# SPDX-License-Identifier: Apache-2.0
"""Pipelines in processes that a launcher started: their GPU, and the shards of their readers."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from stoker import ArgumentError, DeviceError, Launch, StateError, fn, pipeline_def
from stoker.device.gpu import Gpu
from stoker.native import _native
from tests.run.pipelines import files_of

FILES = [f"{n}.jpg" for n in range(10)]
SetLauncher = Callable[..., None]


@pytest.fixture
def set_launcher(monkeypatch: pytest.MonkeyPatch) -> SetLauncher:
    """Set the environment of a launcher: rank, world size, local rank."""

    def set_variables(*numbers: int) -> None:
        for name, number in zip(("RANK", "WORLD_SIZE", "LOCAL_RANK"), numbers, strict=False):
            monkeypatch.setenv(name, str(number))

    return set_variables


@pipeline_def(batch_size=5, num_threads=1, seed=3)
def numbers(**reader: Any) -> Any:
    _, labels = fn.readers.file(files=FILES, labels=list(range(10)), random_shuffle=True, name="Reader", **reader)
    return labels + 0


@pytest.fixture(autouse=True)
def empty_files(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Create the files of the labels: the pipeline reads them and does not decode them."""
    monkeypatch.chdir(tmp_path)
    for name in FILES:
        Path(name).write_bytes(b"x")


def labels_of(**settings: Any) -> list[int]:
    with numbers(**settings) as pipe:
        rows = pipe.epoch_size("Reader") // pipe.reader_meta("Reader")["number_of_shards"]
        found = [pipe.run()[0].as_array().ravel() for _ in range(rows // 5)]
    return [int(x) for x in np.concatenate(found)]


def test_shards_of_the_launcher(set_launcher: SetLauncher) -> None:
    parts = []
    for rank in range(2):
        set_launcher(rank, 2, 0)
        parts.append(labels_of(shards="launcher"))
        assert parts[-1] == labels_of(shard_id=rank, num_shards=2)
    assert sorted(parts[0] + parts[1]) == list(range(10))


def test_without_a_launcher_there_is_one_shard() -> None:
    assert labels_of(shards="launcher") == labels_of()
    with numbers(shards="launcher") as pipe:
        pipe.run()
        assert (pipe.report().assignment.shard, pipe.report().assignment.shards) == (0, 1)
        assert "shard" not in str(pipe.report())


def test_the_report_has_the_shard_and_its_origin(set_launcher: SetLauncher) -> None:
    set_launcher(1, 2, 1)
    with numbers(shards="launcher") as pipe:
        pipe.run()
        assert "\nshard 1 of 2, from the launcher\n" in str(pipe.report())
        assert pipe.report().to_dict()["assignment"] == {"shard": 1, "shards": 2, "gpu": None, "launcher": ("shard",)}
    with numbers(shard_id=1, num_shards=2) as pipe:
        pipe.run()
        assert "\nshard 1 of 2\n" in str(pipe.report())


def test_whole_epochs_in_each_process_warn(set_launcher: SetLauncher) -> None:
    set_launcher(1, 8, 1)
    with pytest.warns(RuntimeWarning, match=r"gives each of the launcher's 8 processes all samples.*num_shards=1"):
        whole = labels_of()
    assert whole == labels_of(num_shards=1)  # states that it is intended; warnings are errors here
    assert sorted(whole) == list(range(10))


def test_a_launcher_of_one_process_changes_nothing(set_launcher: SetLauncher) -> None:
    set_launcher(0, 1, 0)
    assert sorted(labels_of()) == list(range(10))


def test_readers_ignore_an_incomplete_environment_unless_asked(set_launcher: SetLauncher) -> None:
    set_launcher(0, 2)
    assert sorted(labels_of()) == list(range(10))
    with pytest.raises(ArgumentError, match=r"or none of them, got \{'RANK': '0', 'WORLD_SIZE': '2'\}"):
        labels_of(shards="launcher")


@pytest.mark.parametrize(
    ("reader", "text"),
    [
        ({"num_shards": 4, "shard_id": 1}, "`readers.file`: expected no `num_shards`.*got 4 where WORLD_SIZE is 2"),
        ({"num_shards": 1}, "expected no `num_shards`.*got 1 where WORLD_SIZE is 2"),
        ({"num_shards": 2, "shard_id": 0}, "expected no `shard_id`.*got 0 where RANK is 1 — made at .*test_launched"),
    ],
)
def test_arguments_that_contradict_the_launcher(set_launcher: SetLauncher, reader: dict[str, int], text: str) -> None:
    set_launcher(1, 2, 1)
    with pytest.raises(ArgumentError, match=text):
        numbers(**reader, shards="launcher").build()
    assert labels_of(num_shards=2, shard_id=1, shards="launcher") == labels_of(shards="launcher")


def test_joined_readers_are_divided_as_one(set_launcher: SetLauncher) -> None:
    @pipeline_def(batch_size=5, num_threads=1, seed=3)
    def joined(**more: Any) -> Any:
        halves = [fn.readers.file(files=FILES[k::2], labels=list(range(k, 10, 2))) for k in (0, 1)]
        return fn.readers.concat(halves, random_shuffle=True, **more)[1] + 0

    set_launcher(1, 2, 1)
    with joined(shards="launcher") as mine, joined(num_shards=2, shard_id=1) as want:
        np.testing.assert_array_equal(mine.run()[0].as_array(), want.run()[0].as_array())


def test_processes_that_lightning_starts_are_divided(monkeypatch: pytest.MonkeyPatch) -> None:
    for name, value in (("LOCAL_RANK", "1"), ("NODE_RANK", "0"), ("WORLD_SIZE", "2")):
        monkeypatch.setenv(name, value)
    assert labels_of(shards="launcher") == labels_of(num_shards=2, shard_id=1)
    monkeypatch.setenv("NODE_RANK", "1")
    with pytest.raises(ArgumentError, match="a machine other than the first one"):
        labels_of(shards="launcher")


def test_a_process_that_becomes_a_rank_after_the_build_is_refused(set_launcher: SetLauncher) -> None:
    """A trainer that starts the other processes turns its own process into rank 0."""
    with numbers(shards="launcher") as early, numbers(shards="launcher") as running, numbers(num_shards=1) as whole:
        for pipe in (early, whole):
            pipe.build()
        running.run()
        set_launcher(0, 2, 0)
        text = r"expected the rank that the process had .*\(0 of 1\).*got 0 of 2.*train_dataloader"
        with pytest.raises(StateError, match=text):
            early.run()
        with pytest.raises(StateError, match=text):
            early.next()
        running.run()
        running.start_epoch(1)
        with pytest.raises(StateError, match=text):
            running.run()
        whole.run()
    with numbers(shards="launcher") as late:
        late.run()
        set_launcher(0, 1, 0)  # at its end, a trainer removes its variables
        late.start_epoch(1)
        late.run()


def test_sources_that_cannot_be_divided_are_refused(set_launcher: SetLauncher) -> None:
    @pipeline_def(batch_size=2, num_threads=1, shards="launcher")
    def own() -> Any:
        return fn.external_source(source=lambda: np.zeros((2, 3), np.uint8))

    with pytest.raises(ArgumentError, match=r"expected a reader that can be divided.*Launch.from_environment"):
        own().build()
    with pytest.raises(ArgumentError, match=r'expected `shards` "launcher" or None .*got 4'):
        numbers(shards=4)


def test_states_resume_in_another_number_of_processes(set_launcher: SetLauncher) -> None:
    """The launcher's settings are not part of the identity of a graph."""
    set_launcher(0, 2, 0)
    with numbers(shards="launcher", batch_size=2) as pipe:
        first = pipe.run()[0].as_array().ravel().tolist()
        state = pipe.get_state(elastic=True)
    set_launcher(1, 2, 1)
    with numbers(shards="launcher", batch_size=2) as pipe:
        first += pipe.run()[0].as_array().ravel().tolist()
    with numbers(num_shards=1, batch_size=6, checkpoint=state) as pipe:
        assert sorted(first + pipe.run()[0].as_array().ravel().tolist()) == list(range(10))


# ---- the GPU ----


@pipeline_def(batch_size=4, num_threads=1, seed=3)
def on_gpu(files: list[str]) -> Any:
    data, _ = fn.readers.file(files=files, num_shards=1)
    return fn.resize(fn.decoders.image(data, device="mixed"), size=[8, 8])


@pytest.fixture
def opened_gpus(monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """Record the GPUs that pipelines open; the machine has none."""
    numbers: list[int] = []

    def opened(number: int, memory_limit: int | None = None) -> Gpu:
        numbers.append(number)
        raise DeviceError(f"GPU {number} cannot be used: there is none")

    monkeypatch.setattr(Gpu, "open", staticmethod(opened))
    return numbers


@pytest.mark.parametrize(
    ("launch", "visible", "number"),
    [
        ((), 8, 0),  # no launcher
        ((5, 16, 5), 8, 5),
        ((13, 16, 5), 8, 5),
        ((5, 16, 5), 1, 0),  # a launcher that shows each process only its own GPU
        ((5, 16, 5), 2, 5),  # no GPU with this number: opening it raises
        ((0, 1, 0), 8, 0),
    ],
)
def test_the_gpu_of_the_process(
    set_launcher: SetLauncher,
    opened_gpus: list[int],
    jpegs: Path,
    monkeypatch: pytest.MonkeyPatch,
    launch: Any,
    visible: int,
    number: int,
) -> None:
    set_launcher(*launch)
    monkeypatch.setattr(_native.gpu, "count_cuda", lambda: visible)
    with pytest.raises(DeviceError, match=rf"GPU {number} cannot.*With `without_gpu=\"cpu\"` it runs on the CPU"):
        on_gpu(files_of(jpegs)).build()
    with pytest.raises(DeviceError, match="GPU 3 cannot"):
        on_gpu(files_of(jpegs), device_id=np.int64(3)).build()
    assert opened_gpus == [number, 3]


def test_without_a_gpu_the_cpu_takes_over_with_a_warning(
    set_launcher: SetLauncher, opened_gpus: list[int], jpegs: Path
) -> None:
    set_launcher(1, 2, 1)
    pipe = on_gpu(files_of(jpegs), without_gpu="cpu")
    with pytest.warns(RuntimeWarning, match="no GPU is used: GPU 1 cannot be used"):
        pipe.build()
    with pipe:
        assert pipe.run()[0].device == "cpu" and pipe.device_id is None
        assert "GPU" not in str(pipe.report().assignment)


def test_a_gpu_is_opened_only_if_a_node_is_placed_on_it(set_launcher: SetLauncher, opened_gpus: list[int]) -> None:
    set_launcher(1, 2)  # not even a broken environment matters in this case
    with numbers(num_shards=1) as pipe:
        pipe.run()
        assert pipe.device_id is None
    assert opened_gpus == []


def test_a_contradictory_environment_has_a_way_out(
    set_launcher: SetLauncher, opened_gpus: list[int], jpegs: Path
) -> None:
    set_launcher(1, 2)
    with pytest.raises(ArgumentError, match=r"or none of them, got .*Or say which GPU: `device_id`, a number"):
        on_gpu(files_of(jpegs)).build()
    with pytest.raises(DeviceError, match="GPU 0 cannot"):
        on_gpu(files_of(jpegs), device_id=0).build()


# ---- integers of other types ----


def test_numbers_of_numpy() -> None:
    @pipeline_def(
        batch_size=np.int64(4), num_threads=np.uint8(2), device_id=np.int32(0), seed=np.int64(9),
        prefetch_queue_depth={"cpu_size": np.int64(2), "gpu_size": np.uint16(1)}, py_num_workers=np.int64(1),
        gpu_memory_limit=np.int64(1 << 30), gpu_jpeg_index=np.int32(4096), gpu_decoder_load=np.float32(0.5),
        gpu_utilization=np.float64(1), error_limit=np.float32(0.25),
    )  # fmt: skip
    def typed() -> Any:
        parts = [fn.readers.file(files=FILES, labels=list(range(10))) for _ in range(2)]
        _, labels, _ = fn.readers.mix(
            parts, length=np.int64(8), label_offsets=[np.int64(0), np.int32(100)], num_shards=np.int64(1),
            shard_id=np.uint8(0),
        )  # fmt: skip
        return labels + 0

    with typed() as pipe:
        assert (pipe.batch_size, pipe.num_threads, pipe.device_id, pipe.seed) == (4, 2, 0, 9)
        assert all(type(x) is int for x in (pipe.batch_size, pipe.num_threads, pipe.device_id, pipe.seed))
        pipe.run()


@pytest.mark.parametrize("seed", [1.5, "7", True, np.float64(2)])
def test_a_seed_is_a_whole_number(seed: Any) -> None:
    with pytest.raises(ArgumentError, match=r"expected a whole number below 2\*\*64 as `seed`, or None, got"):
        numbers(seed=seed)


def test_launch_is_a_public_name(set_launcher: SetLauncher) -> None:
    set_launcher(3, 4, 1)
    assert Launch.from_environment() == Launch(3, 4, 1)
