# SPDX-License-Identifier: Apache-2.0
"""The token of every delivered batch restores the following batches, byte for byte, under other settings."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from stoker import Pipeline, StateError, fn, pipeline_def
from stoker.torch import Loader
from tests.run.pipelines import epoch, files_of, labels_of, rows_of, stream, training

SHAPES: list[dict[str, Any]] = [
    {"batch_size": 5},
    {"batch_size": 1, "num_threads": 1, "prefetch_queue_depth": 1},
    {"batch_size": 7, "num_threads": 3, "prefetch_queue_depth": 4},
    {"batch_size": 50, "exec_async": False},
]


@pytest.fixture(scope="module")
def files(jpegs: Path) -> list[str]:
    return files_of(jpegs)[:13]


def through_json(token: dict[str, Any]) -> dict[str, Any]:
    restored: dict[str, Any] = json.loads(json.dumps(token))
    assert restored == token
    return restored


@pytest.mark.parametrize("shape", SHAPES, ids=str)
def test_every_token_restores_the_rest(files: list[str], shape: dict[str, Any]) -> None:
    rows, tokens = [], []
    with training(files) as pipe:
        tokens.append((0, through_json(pipe.get_state())))
        for _ in range(6):  # more than two epochs: also batches across the ends of epochs
            rows += rows_of(pipe.run())
            tokens.append((len(rows), through_json(pipe.get_state())))
    rows = stream(training(files), 60)
    for taken, token in tokens:
        pipe = training(files, **shape)
        pipe.set_state(token)
        assert pipe.get_state() == token
        count = min(20, len(rows) - taken)
        assert stream(pipe, count)[:count] == rows[taken : taken + count]


def test_a_token_belongs_to_the_caller(files: list[str]) -> None:
    with training(files) as pipe:
        token = pipe.get_state()
        whole = json.dumps(token)
        for name, arguments, _ in token["nodes"]:
            arguments[name] = "changed"
        token["nodes"].reverse()
        token["data"][0].clear()
        assert json.dumps(pipe.get_state()) == whole


def test_a_checkpoint_is_an_argument_as_well(files: list[str]) -> None:
    with training(files) as pipe:
        pipe.run()
        token, rest = pipe.get_state(), rows_of(pipe.run())
    with training(files, checkpoint=token) as pipe:
        assert rows_of(pipe.run()) == rest
    with training(files, checkpoint=token, seed=8) as pipe:
        for _ in range(2):
            with pytest.raises(StateError, match="another seed"):
                pipe.run()


def test_a_pipeline_without_a_seed_takes_that_of_its_checkpoint(files: list[str]) -> None:
    with training(files, seed=None) as pipe:
        seed = pipe.seed
        pipe.run()
        token, rest = pipe.get_state(), rows_of(pipe.run())
    for not_given in (None, -1):
        with training(files, seed=not_given, checkpoint=json.loads(json.dumps(token))) as pipe:
            assert pipe.seed == seed
            assert rows_of(pipe.run()) == rest


@pytest.mark.parametrize("seed", [None, "7", 1.5, -1, 1 << 64, True])
def test_a_seed_of_a_checkpoint_that_is_none_is_refused(files: list[str], seed: Any) -> None:
    token = token_of(training(files))
    broken = {**token, "seed": seed}
    with training(files, seed=None, checkpoint=broken) as pipe, pytest.raises(StateError, match="seed"):
        pipe.run()


def test_a_running_pipeline_can_be_rewound(files: list[str]) -> None:
    with training(files) as pipe:
        first = rows_of(pipe.run())
        token = pipe.get_state()
        later = [rows_of(pipe.run()) for _ in range(4)]
        pipe.set_state(token)
        assert [rows_of(pipe.run()) for _ in range(4)] == later
        pipe.set_state({**token, "epoch": 0, "consumed": 0})
        assert rows_of(pipe.run()) == first


def test_the_rest_of_an_epoch(files: list[str]) -> None:
    with training(files) as pipe:
        batches = list(epoch(pipe))
    assert [len(rows) for rows, _ in batches] == [5, 5, 3]
    for n, (_, token) in enumerate(batches):
        with training(files, batch_size=4) as pipe:
            pipe.set_state(token)
            rest = [row for rows, _ in epoch(pipe) for row in rows]
        assert rest == [row for rows, _ in batches[n + 1 :] for row in rows]


# ---- several shards ----


def shard(files: list[str], number: int, count: int, token: dict[str, Any] | None = None, batches: int = 100) -> Any:
    """Return the labels of a shard in the rest of the epoch (or in some batches of it), and its last token."""
    with training(files, batch_size=2, shard_id=number, num_shards=count) as pipe:
        if token is not None:
            pipe.set_state(token)
        labels: list[int] = []
        for _ in range(batches):
            delivered = pipe.next()
            if delivered is None:
                break
            labels += labels_of(delivered.outputs)
        return labels, pipe.get_state()


@pytest.mark.parametrize(("before", "after"), [(2, 3), (3, 2), (4, 1), (1, 4), (3, 3)])
def test_another_number_of_shards(files: list[str], before: int, after: int) -> None:
    firsts = [shard(files, s, before, batches=1) for s in range(before)]
    tokens = [through_json(token) for _, token in firsts]
    assert all(token == tokens[0] for token in tokens), "any shard's token serves all"
    rests = [shard(files, s, after, tokens[0]) for s in range(after)]
    assert len({len(labels) for labels, _ in rests}) == 1, "shards end together"
    samples = [x for labels, _ in [*firsts, *rests] for x in labels]
    assert set(samples) == set(range(len(files))), "no sample is lost"
    assert len(samples) - len(files) < max(before, after), "samples come twice only to make shards equally long"
    # And again from a token of the second run.
    halves = [shard(files, s, after, tokens[0], batches=1) for s in range(after)]
    tails = [shard(files, s, before, halves[0][1]) for s in range(before)]
    samples = [x for labels, _ in [*firsts, *halves, *tails] for x in labels]
    assert set(samples) == set(range(len(files)))


# ---- the loader ----


def loader_rows(loader: Loader) -> list[list[tuple[bytes, ...]]]:
    return [[(x.numpy().tobytes(), y.numpy().tobytes()) for x, y in zip(*batch, strict=True)] for batch in loader]


@pytest.mark.parametrize("policy", ["partial", "drop", "fill"])
@pytest.mark.parametrize("batch_size", [5, 4, 1])
def test_a_loader_resumes(files: list[str], policy: str, batch_size: int) -> None:
    whole = Loader(training(files), last_batch_policy=policy)
    rows: list[list[tuple[bytes, ...]]] = []
    states = [through_json(whole.state_dict())]
    for x, y in whole:
        rows.append([(a.numpy().tobytes(), b.numpy().tobytes()) for a, b in zip(x, y, strict=True)])
        states.append(through_json(whole.state_dict()))
    second = loader_rows(whole)
    whole.close()
    assert len(rows) == len(whole)
    flat = [row for batch in rows for row in batch]
    for n, state in enumerate(states):
        loader = Loader(training(files, batch_size=batch_size), last_batch_policy=policy)
        loader.load_state_dict(state)
        rest, after = loader_rows(loader), loader_rows(loader)
        loader.close()
        if batch_size == 5:
            assert rest == rows[n:], "the same batches"
            assert after == second, "then the next epoch"
        elif policy == "partial":
            assert [row for batch in rest for row in batch] == flat[5 * n :]
            assert [row for batch in after for row in batch] == [row for batch in second for row in batch]


def test_a_loader_of_endless_data_counts_its_batches() -> None:
    @pipeline_def(batch_size=2, num_threads=1, seed=3)
    def numbers() -> Any:
        return fn.random.uniform(range=[0.0, 1.0])

    def values(loader: Loader) -> list[list[float]]:
        return [x.tolist() for x in loader]

    whole = Loader(numbers(), size=4)
    batches, states = [], []
    for x in whole:
        batches.append(x.tolist())
        states.append(through_json(whole.state_dict()))
    second = values(whole)
    whole.close()
    assert second != batches
    for n, state in enumerate(states):
        loader = Loader(numbers(), size=4)
        loader.load_state_dict(state)
        assert values(loader) == batches[n + 1 :]
        assert values(loader) == second
        loader.close()


# ---- refused states ----


def token_of(pipe: Pipeline) -> dict[str, Any]:
    with pipe:
        pipe.run()
        return pipe.get_state()


@pytest.mark.parametrize(
    ("changed", "message"),
    [
        ({"size": 17}, "another graph"),
        ({"shuffle": False}, "another graph"),
        ({"seed": 8}, "another seed: expected 8, got 7"),
        ({"files": ["a.jpg"]}, "another data set"),
        ({"files": "reversed"}, "another data set"),
    ],
)
def test_a_token_of_another_pipeline_is_refused(files: list[str], changed: dict[str, Any], message: str) -> None:
    token = token_of(training(files))
    arguments = {"files": files, **changed}
    if arguments["files"] == "reversed":
        arguments["files"] = files[::-1]
    with (
        training(arguments.pop("files"), **arguments).build() as pipe,
        pytest.raises(StateError, match=message) as refused,
    ):
        pipe.set_state(token)
    assert "start without the state" in str(refused.value)


def test_a_token_of_another_format_is_refused(files: list[str]) -> None:
    token = token_of(training(files))
    with training(files).build() as pipe:
        with pytest.raises(StateError, match="another format: expected 1, got 2"):
            pipe.set_state({**token, "stoker_state": 2})
        with pytest.raises(StateError, match="another format: expected 1, got None"):
            pipe.set_state({})
        assert len(pipe.run()[0]) == 5, "a refused state changes nothing"


def test_a_damaged_token_is_refused_before_anything_changes(files: list[str]) -> None:
    token = token_of(training(files))
    damaged: dict[str, Any] = {
        "gives as a dict, got bytes": b"{}",
        "gives as a dict, got str": json.dumps(token),
        "'epoch' of a state as a whole number, got '1'": {**token, "epoch": "1"},
        r"'consumed' of a state from 0 to 2\*\*62, got -5": {**token, "consumed": -5},
        "'bad' of a state as an epoch and its rows": {**token, "bad": [1]},
    }
    damaged |= {f"without {field!r}": {k: v for k, v in token.items() if k != field} for field in token}
    del damaged["without 'stoker_state'"]  # another format
    with training(files).build() as pipe, training(files).build() as untouched:
        for text, wrong_token in damaged.items():
            with pytest.raises(StateError, match=text):
                pipe.set_state(wrong_token)
        assert np.array_equal(pipe.run()[0].as_array(), untouched.run()[0].as_array())


def test_the_folder_may_have_moved(jpegs: Path, tmp_path: Path) -> None:
    def copied(name: str) -> list[str]:
        folder = tmp_path / name
        folder.mkdir()
        for i, file in enumerate(files_of(jpegs)[:6]):
            (folder / f"{i}.jpg").write_bytes(Path(file).read_bytes())
        return [f"{i}.jpg" for i in range(6)]

    names = copied("a")
    assert copied("b") == names
    with training(names, file_root=str(tmp_path / "a")) as pipe:
        pipe.run()
        token, rest = pipe.get_state(), rows_of(pipe.run())
    with training(names, file_root=str(tmp_path / "b"), read_ahead=True) as pipe:
        pipe.set_state(token)
        assert rows_of(pipe.run()) == rest


# ---- state besides the order ----


@pipeline_def(batch_size=3, num_threads=2, seed=1)
def counting(files: list[str]) -> Any:
    _, labels = fn.readers.file(files=files, random_shuffle=True)
    return fn.test_count(labels), labels


@pytest.mark.parametrize("depth", [1, 4])
def test_stateful_operators(files: list[str], depth: int) -> None:
    with counting(files) as pipe:
        tokens, rows = [pipe.get_state()], []
        for _ in range(6):
            rows += rows_of(pipe.run())
            tokens.append(through_json(pipe.get_state()))
    for n, token in enumerate(tokens):
        pipe = counting(files, prefetch_queue_depth=depth, batch_size=2)
        pipe.set_state(token)
        assert stream(pipe, len(rows) - 3 * n)[: len(rows) - 3 * n] == rows[3 * n :]


def test_dropped_prefetched_batches_leave_no_trace(files: list[str]) -> None:
    results = []
    for depth in (1, 2, 5):
        with counting(files, prefetch_queue_depth=depth) as pipe:
            pipe.run()
            pipe.start_epoch(1)
            results.append(rows_of(pipe.run()))
    assert results[0] == results[1] == results[2]


# ---- custom sources ----


@pipeline_def(batch_size=2, num_threads=1, seed=1)
def sourced(source: Any, **options: Any) -> Any:
    return fn.external_source(source=source, **options) * 1


def forward() -> Iterator[np.ndarray[Any, Any]]:
    for n in range(10):
        yield np.asarray([n, n + 100], np.int32)


def test_a_source_with_a_position_resumes() -> None:
    def batch(number: int) -> Any:
        if number == 10:
            raise StopIteration
        return np.asarray([number, number + 100], np.int32)

    for source in (batch, list(forward())):
        with sourced(source) as pipe:
            pipe.run()
            token = through_json(pipe.get_state())
            rest = [rows_of(pipe.run()) for _ in range(9)]
        with sourced(source, prefetch_queue_depth=4) as pipe:
            pipe.set_state(token)
            assert [rows_of(pipe.run()) for _ in range(9)] == rest
            with pytest.raises(StopIteration):
                pipe.run()


def test_an_opaque_source_cannot_be_resumed() -> None:
    with sourced(forward()) as pipe:
        pipe.run()
        with pytest.raises(
            StateError, match=r"`external_source`: expected a source that can be resumed.*made at .*\.py:\d+"
        ):
            pipe.get_state()


@pipeline_def(batch_size=2, num_threads=1, seed=7)
def counting_shard(files: list[str], number: int, shards: int) -> Any:
    _, labels = fn.readers.file(files=files, shard_id=number, num_shards=shards)
    return fn.test_count(labels), labels


def test_the_state_of_a_stateful_operator_is_valid_for_its_shard_alone(files: list[str]) -> None:
    with counting_shard(files, 1, 2) as pipe:
        pipe.run()
        token, rest = through_json(pipe.get_state()), rows_of(pipe.run())
        with pytest.raises(
            StateError, match="`test_count`: expected no stateful operator for a state that another numb"
        ):
            pipe.get_state(elastic=True)
    with counting_shard(files, 1, 2) as pipe:
        pipe.set_state(token)
        assert rows_of(pipe.run()) == rest
    for number, shards, has in (
        (0, 2, "shard 0 of 2 by itself"),
        (1, 3, "shard 1 of 3 by itself"),
        (0, 1, "share a state"),
    ):
        with counting_shard(files, number, shards) as pipe:
            fresh = pipe.get_state()
            with pytest.raises(
                StateError, match=f"had shard 1 of 2 by itself, has .*{has}.*`test_count` has seen the rows"
            ):
                pipe.set_state(token)
            assert pipe.get_state() == fresh, "nothing has been changed"
