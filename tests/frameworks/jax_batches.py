# SPDX-License-Identifier: Apache-2.0
"""``stoker.jax`` with JAX on the CPU, on one and on eight devices: `make test-jax`."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from jax.sharding import Mesh, NamedSharding, PartitionSpec

from stoker import ArgumentError, DataError, StateError, UnsupportedError, types
from stoker.jax import Loader, shard_of, to_jax
from tests.frameworks.batches import DTYPES, check_same_training, expected, ragged, run_page, typed
from tests.idle_clock import HANG_S
from tests.photographs import write_photographs
from tests.run.pipelines import ROOT, environment, files_of, training

ROWS = 17
WIDE = {types.INT64, types.UINT64, types.FLOAT64}
jax.config.update("jax_num_cpu_devices", 8)


@pytest.fixture(scope="module", autouse=True)
def _jax_threads() -> None:
    """Start JAX's threads, which outlive the tests."""
    jax.jit(jnp.sum)(jnp.ones(8)).block_until_ready()


@pytest.fixture
def wide() -> Any:
    jax.config.update("jax_enable_x64", True)
    yield
    jax.config.update("jax_enable_x64", False)


@pytest.fixture(scope="module")
def files(jpegs: Path) -> list[str]:
    return files_of(jpegs)[:ROWS]


@pytest.mark.parametrize("dtype", DTYPES, ids=str)
def test_types_and_values(dtype: Any, wide: None) -> None:
    with typed(dtype) as pipe:
        got = next(iter(Loader(pipe, size=1)))
        assert str(got.dtype) == str(dtype) and got.shape == (4, 3, 5)
        np.testing.assert_array_equal(np.asarray(got.astype(jnp.float64)), expected(dtype))
        np.testing.assert_array_equal(np.asarray(to_jax(pipe.run()[0]).astype(jnp.float64)), expected(dtype))


@pytest.mark.parametrize("dtype", sorted(WIDE), ids=str)
def test_types_that_jax_would_narrow_are_refused(dtype: Any) -> None:
    with typed(dtype) as pipe:
        with pytest.raises(ArgumentError, match="jax_enable_x64"):
            next(iter(Loader(pipe, size=1)))
        with pytest.raises(ArgumentError, match="jax_enable_x64"):
            to_jax(pipe.run()[0])


def test_batches_share_the_engines_memory_and_stay(files: list[str]) -> None:
    with training(files) as pipe, training(files) as plain:
        kept = [images for images, _ in Loader(pipe)] + [images for images, _ in Loader(plain)]
        again = [b for _ in range(4) for b in Loader(pipe)]  # later batches use other memory
        assert len(again) == 16
        for first, second in zip(kept[:4], kept[4:], strict=True):
            np.testing.assert_array_equal(first, second)
    with training(files) as pipe:
        delivered = pipe.next("stop")
        array = to_jax(pipe.execution.batches(delivered)[0])
        assert array.unsafe_buffer_pointer() == delivered.outputs[0].ctypes.data
        assert delivered.outputs[0].ctypes.data % 64 == 0


def test_labels_are_int32_and_outputs_have_names(files: list[str]) -> None:
    with training(files, shuffle=False) as pipe:
        batches = list(Loader(pipe, ["image", "label"]))
        labels = np.concatenate([b["label"] for b in batches])
        assert labels.dtype == np.int32 and labels.tolist() == list(range(ROWS))
        assert batches[0]["image"].shape == (5, 3, 16, 16)


def test_a_label_that_int32_lacks_is_refused(wide: None) -> None:
    from stoker import fn, pipeline_def

    @pipeline_def(batch_size=2, num_threads=1, device_id=None)
    def big() -> Any:
        return fn.external_source(source=lambda: np.array([1, 2**40], np.int64), batch=True)

    with big() as pipe, pytest.raises(DataError, match="int32"):
        next(iter(Loader(pipe, size=1)))


def test_rows_of_different_shapes_are_lists() -> None:
    with ragged() as pipe:
        rows = next(iter(Loader(pipe)))
        assert [r.shape for r in rows] == [(2, 3, 4), (1, 5, 4), (3, 1, 4)]
        np.testing.assert_array_equal(rows[1].reshape(-1), np.arange(20))


def test_a_state_continues_in_the_middle(files: list[str]) -> None:
    with training(files) as pipe, training(files) as other:
        whole = [labels.tolist() for _, labels in Loader(pipe)]
        loader = Loader(other)
        batches = iter(loader)
        next(batches)
        state = json.loads(json.dumps(loader.state_dict()))
        rest = Loader(training(files))
        rest.load_state_dict(state)
        assert [labels.tolist() for _, labels in rest] == whole[1:]
        rest.close()


def test_orbax_holds_the_state(files: list[str], tmp_path: Path) -> None:
    import orbax.checkpoint as ocp

    with training(files) as pipe:
        loader = Loader(pipe)
        whole = [labels.tolist() for _, labels in loader]
        loader.set_epoch(0)
        next(iter(loader))
        with ocp.CheckpointManager(tmp_path / "checkpoints") as manager:
            manager.save(1, args=ocp.args.Composite(loader=ocp.args.JsonSave(loader.state_dict())))
            manager.wait_until_finished()
            state = manager.restore(1, args=ocp.args.Composite(loader=ocp.args.JsonRestore())).loader
        loader.load_state_dict(state)
        assert [labels.tolist() for _, labels in loader] == whole[1:]


# ---- devices ----


def mesh(*shape: int, names: str = "ab") -> Mesh:
    return Mesh(np.asarray(jax.devices()).reshape(shape), tuple(names[: len(shape)]))


@pytest.mark.parametrize(
    ("shape", "spec"),
    [
        ((8,), ("a",)),
        ((4, 2), ("a",)),
        ((4, 2), (("a", "b"),)),
        ((4, 2), (None, None, "b")),
        ((2, 4), ("a", None, "b")),
    ],
)
def test_a_sharded_batch_is_the_batch(files: list[str], shape: Any, spec: Any) -> None:
    sharding = NamedSharding(mesh(*shape), PartitionSpec(*spec))
    rows = NamedSharding(sharding.mesh, PartitionSpec(*spec[:1]))
    images = {"size": 16, "batch_size": 8}
    with training(files, **images) as pipe, training(files, **images) as plain:
        loader = Loader(pipe, ["x", "y"], sharding={"x": sharding, "y": rows}, last_batch_policy="drop")
        for got, want in zip(loader, Loader(plain, ["x", "y"], last_batch_policy="drop"), strict=True):
            assert got["x"].sharding == sharding and got["y"].sharding == rows
            np.testing.assert_array_equal(got["x"], want["x"])
            np.testing.assert_array_equal(got["y"], want["y"])
            assert float(jax.jit(jnp.sum)(got["x"])) == pytest.approx(float(want["x"].sum()), abs=0.1)


def test_a_last_batch_that_does_not_divide_is_refused(files: list[str]) -> None:
    sharding = NamedSharding(mesh(8), PartitionSpec("a"))
    with training(files, batch_size=8) as pipe:
        batches = iter(Loader(pipe, sharding=sharding))
        next(batches), next(batches)
        with pytest.raises(ArgumentError, match="last_batch_policy"):
            next(batches)


def test_partial_batches_have_a_mask(files: list[str]) -> None:
    sharding = NamedSharding(mesh(8), PartitionSpec("a"))
    with training(files, batch_size=8, shuffle=False) as pipe:
        batches = list(Loader(pipe, ["x", "y"], sharding=sharding, last_batch_policy="partial", mask="real"))
        assert [b["x"].shape[0] for b in batches] == [8, 8, 8]
        real = np.concatenate([b["real"] for b in batches])
        assert np.concatenate([b["y"] for b in batches])[real].tolist() == list(range(ROWS))
        assert batches[2]["real"].sharding == sharding


@pytest.mark.parametrize("shards", [2, 3, 5])
def test_masks_of_all_shards_hold_every_sample_once(files: list[str], shards: int) -> None:
    seen: list[int] = []
    lengths = set()
    for shard in range(shards):
        with training(files, batch_size=4, num_shards=shards, shard_id=shard) as pipe:
            loader = Loader(pipe, last_batch_policy="partial")
            batches = list(loader)
            assert len(batches) == len(loader)
            lengths.add(len(batches))
            seen += [int(y) for _, labels, mask in batches for y in labels[mask]]
    assert sorted(seen) == list(range(ROWS)) and len(lengths) == 1


def test_another_shard_than_the_shardings_is_refused(files: list[str]) -> None:
    sharding = NamedSharding(mesh(8), PartitionSpec("a"))
    assert shard_of(sharding) == (0, 1)
    with training(files, num_shards=2, shard_id=0) as pipe, pytest.raises(ArgumentError, match="shard 0 of 2"):
        Loader(pipe, sharding=sharding)


@pytest.mark.parametrize(
    ("options", "text"),
    [
        ({"sharding": "x"}, "jax.sharding.Sharding"),
        ({"sharding": {"z": None}, "output_map": ["x", "y"]}, "names of outputs"),
        ({"sharding": {"x": None}}, "output_map"),
        ({"mask": "x", "output_map": ["x", "y"]}, "mask"),
        ({"last_batch_policy": "other"}, "last_batch_policy"),
    ],
)
def test_wrong_arguments(files: list[str], options: dict[str, Any], text: str) -> None:
    with training(files) as pipe, pytest.raises(ArgumentError, match=text):
        Loader(pipe, **options)


@pytest.mark.leaks("JAX keeps threads that compile")
def test_the_same_training_as_in_numpy(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    check_same_training("jax", tmp_path, monkeypatch)


def test_the_guide(tmp_path: Path) -> None:
    run_page("jax", write_photographs(tmp_path / "photographs", per_class=16))


# ---- DALI's iterators ----


def dali_pipeline(files: list[str], **options: Any) -> Any:
    from stoker.dali import fn, pipeline_def

    @pipeline_def(batch_size=5, num_threads=2, device_id=None, seed=7)
    def pipe(device_id: int = 0, shard_id: int = 0, num_shards: int = 1) -> Any:
        jpegs, labels = fn.readers.file(files=files, name="Reader", shard_id=shard_id, num_shards=num_shards)
        images = fn.resize(fn.decoders.image(jpegs), size=(8, 8))
        return images, labels

    return pipe(**options)


def test_dalis_iterator(files: list[str]) -> None:
    from stoker.dali.plugin.jax import DALIGenericIterator

    for auto_reset in (False, True):
        iterator = DALIGenericIterator(dali_pipeline(files), ["x", "y"], reader_name="Reader", auto_reset=auto_reset)
        for _ in range(2):
            batches = list(iterator)
            assert [b["x"].shape for b in batches] == [(5, 8, 8, 3)] * 4 and batches[0]["y"].shape == (5, 1)
            assert np.concatenate([b["y"] for b in batches]).reshape(-1)[:ROWS].tolist() == list(range(ROWS))
            if not auto_reset:
                iterator.reset()


def test_dalis_iterator_with_a_sharding_and_for_pmap(files: list[str]) -> None:
    from stoker.dali.plugin.jax import DALIGenericIterator

    sharding = NamedSharding(mesh(8), PartitionSpec("a"))

    def pipes(count: int) -> Any:
        return [dali_pipeline(files, batch_size=1, shard_id=i, num_shards=count) for i in range(count)]

    batch = next(iter(DALIGenericIterator(pipes(8), ["x", "y"], reader_name="Reader", sharding=sharding)))
    assert batch["x"].sharding == sharding and batch["x"].shape == (8, 8, 8, 3)
    assert np.asarray(batch["y"]).reshape(-1).tolist() == list(range(8))
    stacked = next(iter(DALIGenericIterator(pipes(4), ["x", "y"], reader_name="Reader")))
    assert stacked["x"].shape == (4, 1, 8, 8, 3) and len(stacked["x"].sharding.device_set) == 4


def test_dalis_decorators(files: list[str]) -> None:
    from stoker.dali import fn
    from stoker.dali.plugin.jax import data_iterator
    from stoker.dali.plugin.jax.clu import ArraySpec, peekable_data_iterator

    sharding = NamedSharding(mesh(8), PartitionSpec("a"))

    def define(device_id: int = 0, shard_id: int = 0, num_shards: int = 1) -> Any:
        return fn.readers.file(files=files, name="Reader", shard_id=shard_id, num_shards=num_shards)[1]

    alone = data_iterator(define, output_map=["y"], reader_name="Reader")(batch_size=6, seed=3)
    assert next(alone)["y"].shape == (6, 1)
    rest = data_iterator(define, output_map=["y"], reader_name="Reader")(
        batch_size=6, seed=3, checkpoints=alone.checkpoints()
    )
    np.testing.assert_array_equal(next(rest)["y"], next(alone)["y"])
    spread = data_iterator(output_map=["y"], reader_name="Reader", sharding=sharding)(define)(batch_size=8)
    assert next(spread)["y"].sharding == sharding
    peekable = peekable_data_iterator(define, output_map=["y"], reader_name="Reader")(batch_size=6)
    assert peekable.element_spec == {"y": ArraySpec(np.dtype(np.int32), (6, 1))}
    first = peekable.peek()
    np.testing.assert_array_equal(peekable.peek_async().result(HANG_S)["y"], first["y"])
    with pytest.raises(StateError, match="peeked"):
        peekable.checkpoints()
    np.testing.assert_array_equal(next(peekable)["y"], first["y"])
    assert next(peekable)["y"][0, 0] == 6
    peekable._pool.shutdown()
    for iterator in (alone, rest, spread, peekable):
        for pipe in iterator._pipes:
            pipe.close()


def test_what_dalis_iterator_refuses(files: list[str]) -> None:
    from stoker.dali.plugin.jax import DALIGenericIterator, LastBatchPolicy, data_iterator

    pipe = dali_pipeline(files)
    with pytest.raises(UnsupportedError, match="PARTIAL"):
        DALIGenericIterator(pipe, ["x", "y"], reader_name="Reader", last_batch_policy=LastBatchPolicy.PARTIAL)
    for options in ({"sharding": 3}, {"sharding": NamedSharding(mesh(8), PartitionSpec("a"))}):
        with pytest.raises(ArgumentError, match="sharding"):
            DALIGenericIterator(pipe, ["x", "y"], reader_name="Reader", **options)
    with pytest.raises(ArgumentError, match="got both"):
        data_iterator(lambda: None, sharding=NamedSharding(mesh(8), PartitionSpec("a")), devices=jax.devices())
    pipe.close()


# ---- processes ----


@pytest.mark.parametrize("spec", ["rows", "model"])
def test_two_processes(files: list[str], spec: str, tmp_path: Path) -> None:
    """Two processes with four devices each: data parallel, and one model over both."""
    ranks = [
        subprocess.Popen(
            [sys.executable, "-m", "tests.frameworks.jax_rank", spec, str(rank), str(tmp_path), *files],
            cwd=ROOT, env=environment(XLA_FLAGS="--xla_force_host_platform_device_count=4", JAX_PLATFORMS="cpu"),
        )
        for rank in range(2)
    ]  # fmt: skip
    assert [r.wait(timeout=300) for r in ranks] == [0, 0]
    reports = [json.loads((tmp_path / f"{rank}.json").read_text()) for rank in range(2)]
    assert reports[0]["sums"] == reports[1]["sums"], "both see the same global batches"
    rows = [row for r in (reports if spec == "rows" else reports[:1]) for row in r["labels"]]
    assert sorted(rows) == list(range(ROWS))
    assert [r["shard"] for r in reports] == ([[0, 2], [1, 2]] if spec == "rows" else [[0, 1], [0, 1]])
