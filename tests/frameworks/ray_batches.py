# SPDX-License-Identifier: Apache-2.0
"""``stoker.ray`` with real clusters of several nodes on this machine, in a network of their own: `make test-ray`."""

from __future__ import annotations

import hashlib
import json
import os
import random
import signal
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import ray
from ray.cluster_utils import Cluster

from stoker import ArgumentError, DataError, ResourceError, StateError, UnsupportedError, fn, pipeline_def
from stoker.numpy import Loader
from stoker.ray import Remote
from tests.frameworks.batches import run_page
from tests.photographs import write_photographs
from tests.run.pipelines import files_of, training

ROWS = 37
WAIT_S = float(os.environ.get("WAIT_S", "100"))
KILLS = int(os.environ.get("TIMES", "4"))
NODES = 3
pytestmark = pytest.mark.leaks("Ray's threads and files outlive the tests")


@pytest.fixture(scope="module")
def files(jpegs: Path) -> list[str]:
    found = files_of(jpegs)
    return [found[i % len(found)] for i in range(ROWS)]


@pytest.fixture(scope="module")
def cluster() -> Iterator[Cluster]:
    """Yield a cluster whose head has no processors, so that every actor is on a node that may fail."""
    made = Cluster(initialize_head=True, head_node_args={"num_cpus": 0, "include_dashboard": False})
    for _ in range(NODES):
        made.add_node(num_cpus=2, wait=False)
    made.wait_for_nodes(timeout=WAIT_S)
    ray.init(address=made.address, log_to_driver=False, runtime_env={"env_vars": {"PYTHONPATH": os.getcwd()}})
    yield made
    ray.shutdown()
    made.shutdown()


def digest(batch: Any) -> str:
    """Return a checksum of a batch's arrays, with their types and shapes."""
    parts = batch if isinstance(batch, tuple) else (batch,)
    done = hashlib.sha256()
    for part in parts:
        for array in part if isinstance(part, list) else [part]:
            done.update(f"{array.dtype}{array.shape}".encode())
            done.update(array.tobytes())
    return done.hexdigest()


def of_local(files: list[str], epochs: int = 1, policy: str = "even", **options: Any) -> list[str]:
    with training(files, **options) as pipe:
        loader = Loader(pipe, last_batch_policy=policy)
        return [digest(batch) for _ in range(epochs) for batch in loader]


@pytest.mark.parametrize(
    ("policy", "cut"),
    [("even", "fewest_bytes"), ("partial", "fewest_bytes"), ("drop", "outputs"), ("fill", "fewest_bytes")],
)
def test_order_and_bits_are_those_of_the_pipeline(cluster: Cluster, files: list[str], policy: str, cut: str) -> None:
    with Remote(training(files), actors=3, timeout_s=WAIT_S, cut=cut) as remote:
        loader = Loader(remote, last_batch_policy=policy)
        got = [digest(batch) for _ in range(2) for batch in loader]
        assert got == of_local(files, 2, policy) and len(got) == 2 * len(loader)
        reports = remote.actor_reports()
        share = [len(range(actor, -(-ROWS // 5), 3)) for actor in range(3)]  # batch k is of actor k modulo 3
        assert [r.batches for r in reports] == [2 * n for n in share]
        assert len({r.node for r in reports}) > 1 and all("rows" in str(r) for r in reports)
        whole = remote.report_all()
        assert whole.consumer.progress.of == ROWS and whole.batches == sum(r.batches for r in reports)
        assert len(whole.actors) == 3 and remote.cut in str(whole)
        assert ("772 bytes a row instead of 3076" in remote.cut) == (cut == "fewest_bytes")


def test_rows_of_different_shapes(cluster: Cluster, files: list[str]) -> None:
    @pipeline_def(batch_size=5, num_threads=2, seed=7)
    def whole() -> Any:
        jpegs, labels = fn.readers.file(files=files, random_shuffle=True)
        return fn.decoders.image(jpegs), labels

    with whole() as pipe, Remote(whole(), actors=2, timeout_s=WAIT_S) as remote:
        want = [digest(batch) for batch in Loader(pipe)]
        assert [digest(batch) for batch in Loader(remote)] == want


def test_batches_in_flight_are_bounded_in_bytes(cluster: Cluster, files: list[str]) -> None:
    size, cut_size = 5 * (3 * 16 * 16 * 4 + 4), 5 * (3 * 16 * 16 + 4)
    for batches, cut in ((1, "outputs"), (3, "fewest_bytes")):
        most = batches * (size if cut == "outputs" else cut_size) + 1
        with Remote(training(files), actors=3, max_bytes=most, timeout_s=WAIT_S, cut=cut) as remote:
            for _ in Loader(remote):
                assert len(remote._asked) <= batches
    with pytest.raises(ArgumentError, match=f"at least one batch .{size} bytes"):
        Remote(training(files), max_bytes=size - 1, cut="outputs")
    with pytest.raises(ArgumentError, match=f"at least one batch .{cut_size} bytes"):
        Remote(training(files), max_bytes=cut_size - 1)


def test_arrays_own_their_memory(cluster: Cluster, files: list[str]) -> None:
    with Remote(training(files), actors=2, timeout_s=WAIT_S) as remote:
        for images, _ in Loader(remote):
            assert images.flags.writeable and images.ctypes.data % 64 == 0


def test_states_are_those_of_the_pipeline_for_any_number_of_shards_and_actors(
    cluster: Cluster, files: list[str]
) -> None:
    def labels_of(pipe: Any, state: Any, batches: int | None = None) -> tuple[list[int], Any]:
        loader, found = Loader(pipe), []
        if state is not None:
            loader.load_state_dict(state)
        for number, (_, labels) in enumerate(loader):
            found += labels.tolist()
            if batches is not None and number + 1 == batches:
                break
        return found, json.loads(json.dumps(loader.state_dict()))

    with training(files) as plain:
        whole, _ = labels_of(plain, None)
    seen: list[int] = []
    states = []
    for shard in range(2):  # two ranks, each with actors of its own
        pipe = training(files, num_shards=2, shard_id=shard)
        with Remote(pipe, actors=2, timeout_s=WAIT_S) as remote:
            found, state = labels_of(remote, None, 2)
            seen += found
            states.append(state)
    assert states[0] == states[1]
    rest = []
    for shard in range(3):  # three ranks go on, one of them without actors
        pipe = training(files, num_shards=3, shard_id=shard)
        with Remote(pipe, actors=1 + shard, timeout_s=WAIT_S) if shard else pipe as remote:
            rest += labels_of(remote, states[0])[0]
    # The last row of a shard that lacks one is another shard's.
    assert sorted(set(seen + rest)) == sorted(whole) and len(seen) == 20


def test_a_loop_that_was_left_is_not_continued(cluster: Cluster, files: list[str]) -> None:
    want = of_local(files, 3)
    with Remote(training(files), actors=3, timeout_s=WAIT_S) as remote:
        loader = Loader(remote)
        assert digest(next(iter(loader))) == want[0]
        assert [digest(batch) for batch in loader] == want[8:16]
        loader.set_epoch(2)
        assert [digest(batch) for batch in loader] == want[16:]


def test_a_bad_file_fails_its_batch_alone(cluster: Cluster, files: list[str], tmp_path: Path) -> None:
    bad = tmp_path / "bad.jpg"
    bad.write_bytes(Path(files[0]).read_bytes()[:300])
    mixed = [*files[:7], str(bad), *files[8:]]
    with Remote(training(mixed, shuffle=False), actors=2, timeout_s=WAIT_S) as remote:
        loop = iter(Loader(remote))
        next(loop)
        with pytest.raises(DataError, match=r"bad\.jpg"):
            next(loop)
        assert len(list(loop)) == 6
    want = replaced(mixed, None)
    assert replaced(mixed, 2) == want and len(want[1]) == 1


def replaced(files: list[str], actors: int | None) -> tuple[list[Any], list[Any]]:
    """Return the batches of two epochs of a pipeline that replaces bad rows, with the state after each, which has the
    number of the epoch's bad rows, and its bad samples.
    """

    @pipeline_def(batch_size=5, num_threads=2, seed=7, on_error="replace", error_limit=0.5)
    def pipe() -> Any:
        jpegs, labels = fn.readers.file(files=files, random_shuffle=True)
        return fn.resize(fn.decoders.image(jpegs), size=(8, 8)), labels

    with pipe() as plain, plain if actors is None else Remote(plain, actors=actors, timeout_s=WAIT_S) as used:
        loader = Loader(used)
        return [(digest(batch), loader.state_dict()) for _ in range(2) for batch in loader], used.errors


@pytest.mark.parametrize("number", range(KILLS))
def test_a_node_that_fails_changes_no_byte(cluster: Cluster, files: list[str], number: int) -> None:
    """Each failure is a test of its own, with a limit of its own on its time."""
    many = files * 4
    want = of_local(many)
    choice = random.Random(f"{os.environ.get('SEED', '1')}, {number}")
    with Remote(training(many), actors=3, timeout_s=WAIT_S) as remote:
        victims = [r.node for r in remote.actor_reports()]
        moment, victim = choice.randrange(1, len(want) - 6), choice.choice(victims)
        got = []
        for batch_number, batch in enumerate(Loader(remote)):
            got.append(digest(batch))
            if batch_number == moment:
                node = next(n for n in cluster.worker_nodes if n.node_id == victim)
                cluster.remove_node(node, allow_graceful=False)
                cluster.add_node(num_cpus=2)
        assert got == want
        assert victim not in [r.node for r in remote.actor_reports()], "a report is of the node that has failed"


def test_a_killed_actor_is_replaced(cluster: Cluster, files: list[str]) -> None:
    many = files * 2
    want = of_local(many)

    with Remote(training(many), actors=2, timeout_s=WAIT_S) as remote:
        got = []
        for number, batch in enumerate(Loader(remote)):
            got.append(digest(batch))
            if number == 3:
                os.kill(_living_actors()[0], signal.SIGKILL)
        assert got == want


def _living_actors() -> list[int]:
    """Return the processes of this machine that are actors of a Remote."""
    found = []
    for folder in Path("/proc").iterdir():
        try:
            if b"ray::_Worker" in (folder / "cmdline").read_bytes():
                found.append(int(folder.name))
        except (OSError, ValueError):
            continue
    return found


def test_resources_that_no_node_has_are_named_after_the_time(cluster: Cluster, files: list[str]) -> None:
    began = time.monotonic()
    with (
        Remote(training(files), actors=1, resources={"CPU": 1, "absent": 1}, timeout_s=3) as remote,
        pytest.raises(ResourceError, match="none from 1 actors; 4 nodes"),
    ):
        next(iter(Loader(remote)))
    assert time.monotonic() - began < WAIT_S


def test_what_cannot_be_remote_is_refused(cluster: Cluster, files: list[str]) -> None:
    @pipeline_def(batch_size=2, num_threads=1)
    def fed() -> Any:
        return fn.external_source(source=lambda: [np.ones(3, np.float32)] * 2)

    with pytest.raises(UnsupportedError, match="source of the caller's data"):
        Remote(fed())
    with Remote(training(files), timeout_s=WAIT_S) as remote:
        with pytest.raises(StateError, match="epochs without end"):
            remote.run()
        with pytest.raises(UnsupportedError, match="got a Remote"):
            Loader(remote, background=True)
        assert not remote.may_take_ahead
    for options, text in (
        ({"actors": 0}, "`actors`"),
        ({"max_bytes": 1.5}, "`max_bytes`"),
        ({"timeout_s": -1}, "`timeout_s`"),
        ({"resources": {"CPU": "x"}}, "`resources`"),
        ({"cut": "middle"}, "`cut`"),
    ):
        with pytest.raises(ArgumentError, match=text):
            Remote(training(files), **options)
    with pytest.raises(UnsupportedError, match="got `resources` with a GPU"):
        Remote(training(files), resources={"GPU": 1})
    with pytest.raises(ArgumentError, match="expected a Pipeline"):
        Remote(3)


def test_other_files_on_a_node_are_noticed(cluster: Cluster, tmp_path: Path, jpegs: Path) -> None:
    folder = tmp_path / "data"
    write_photographs(folder, per_class=2)

    @pipeline_def(batch_size=2, num_threads=1, seed=1)
    def listed() -> Any:
        jpegs, labels = fn.readers.file(file_root=str(folder))
        return fn.resize(fn.decoders.image(jpegs), size=(8, 8)), labels

    pipe = listed().build()
    next(p for p in sorted(folder.rglob("*")) if p.is_file()).unlink()
    with Remote(pipe, actors=1, timeout_s=WAIT_S) as remote, pytest.raises(StateError, match="another data set"):
        next(iter(Loader(remote)))


def test_the_guide(cluster: Cluster, tmp_path: Path) -> None:
    run_page("ray", write_photographs(tmp_path / "photographs", per_class=16))
