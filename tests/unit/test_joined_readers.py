# SPDX-License-Identifier: Apache-2.0
"""Joined readers: concatenated, and mixed in proportion."""

from __future__ import annotations

import itertools
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from stoker import ArgumentError, Pipeline, StateError, fn, pipeline_def, samplers
from stoker.frontends.registry import find
from stoker.graph.node import Graph

A, B = 11, 4  # Numbers of files of the parts.


@pytest.fixture
def folders(tmp_path: Path) -> list[str]:
    """Create two folders of two classes. The content of a file is its name."""
    for root, count in (("a", A), ("b", B)):
        for i in range(count):
            file = tmp_path / root / "xy"[i % 2] / f"{root}{i}.jpg"
            file.parent.mkdir(parents=True, exist_ok=True)
            file.write_bytes(file.stem.encode())
    return [str(tmp_path / "a"), str(tmp_path / "b")]


@pipeline_def(batch_size=4, num_threads=2, seed=7)
def joined(folders: list[str], how: str, parts: list[dict[str, Any]] | None = None, **more: Any) -> Any:
    readers = [fn.readers.file(file_root=f, **p) for f, p in zip(folders, parts or [{}] * len(folders), strict=True)]
    data, label, part = getattr(fn.readers, how)(readers, **more)
    return data, label, part, fn.random.uniform()


@pipeline_def(batch_size=4, num_threads=1, seed=7)
def alone(folder: str, **more: Any) -> Any:
    data, label = fn.readers.file(file_root=folder, **more)
    return data, label


Row = tuple[Any, ...]


def batches(pipe: Pipeline, epochs: int = 1) -> list[list[Row]]:
    """Return all batches of this many epochs as rows of (name, label, part, draw)."""
    found: list[list[Row]] = []
    for _ in range(epochs):
        while True:
            delivered = pipe.next("stop")
            if delivered is None:
                pipe.start_epoch(pipe.execution.mark.epoch + 1)
                break
            columns = [list(batch) for batch in pipe.execution.batches(delivered)]
            found.append([(bytes(row[0]).decode(), *(x.item() for x in row[1:])) for row in zip(*columns, strict=True)])
    return found


def rows(pipe: Pipeline, epochs: int = 1) -> list[Row]:
    with pipe:
        return list(itertools.chain.from_iterable(batches(pipe, epochs)))


def names(found: list[Row]) -> list[str]:
    return [row[0] for row in found]


# ---- concat ----


def test_concatenation_is_the_parts_one_after_the_other(folders: list[str]) -> None:
    found = rows(joined(folders, "concat"))
    first, second = names(rows(alone(folders[0]))), names(rows(alone(folders[1])))
    assert names(found) == first + second
    assert [r[2] for r in found] == [0] * A + [1] * B
    assert [r[1] for r in found] == [int(n[1:]) % 2 for n in names(found)]


def test_shuffled_parts_stay_one_after_the_other(folders: list[str]) -> None:
    found = names(rows(joined(folders, "concat", [{"random_shuffle": True, "seed": 5}, {}]), 2))
    want = names(rows(alone(folders[0], random_shuffle=True, seed=5), 2))
    assert found[:A] == want[:A] != sorted(want[:A]) and found[A + B :][:A] == want[A:]


def test_a_shuffled_concatenation_is_a_permutation_of_all(folders: list[str]) -> None:
    one, two = (names(rows(joined(folders, "concat", random_shuffle=True), 2)[i:][: A + B]) for i in (0, A + B))
    assert sorted(one) == sorted(two) and one != two
    assert {n[0] for n in one[:B]} != {n[0] for n in one[-B:]} or len({n[0] for n in one[:B]}) == 2


def test_a_sampler_chooses_among_all(folders: list[str]) -> None:
    found = names(rows(joined(folders, "concat", sampler=[A, 0, A])))
    plain = names(rows(joined(folders, "concat")))
    assert found == [plain[A], plain[0], plain[A]]
    balanced = rows(joined(folders, "concat", sampler=samplers.ClassBalanced(400), label_offsets="disjoint"))
    assert np.bincount([r[1] for r in balanced]).tolist() == [100] * 4


@pytest.mark.parametrize(
    ("offsets", "want"), [(None, {0, 1}), ("disjoint", {0, 1, 2, 3}), ([10, 20], {10, 11, 20, 21})]
)
def test_labels_may_have_offsets(offsets: Any, want: set[int], folders: list[str]) -> None:
    for how in ("concat", "mix"):
        assert {r[1] for r in rows(joined(folders, how, label_offsets=offsets))} == want


# ---- mix ----


def test_proportions_hold_in_every_block(folders: list[str]) -> None:
    found = rows(joined(folders, "mix", weights=[3, 1], length=400))
    parts = np.asarray([r[2] for r in found]).reshape(-1, 4)
    assert (parts.sum(axis=1) == 1).all()
    assert len({tuple(p) for p in parts.tolist()}) == 4, "in a drawn order"


def test_each_part_keeps_its_order_and_is_read_completely(folders: list[str]) -> None:
    shuffled = {"random_shuffle": True, "seed": 5}
    found = rows(joined(folders, "mix", [shuffled, {}], weights=[0.5, 0.5], length=60))
    first = [r[0] for r in found if r[2] == 0]
    assert first == names(rows(alone(folders[0], **shuffled), 3))[: len(first)]
    second = [r[0] for r in found if r[2] == 1]
    plain = names(rows(alone(folders[1])))
    assert second == (plain * 10)[: len(second)]


def test_parts_continue_across_epochs(folders: list[str]) -> None:
    two, one = (rows(joined(folders, "mix", weights=[2, 1], length=n), e) for n, e in ((9, 2), (18, 1)))
    assert names(two) == names(one)
    assert [r[3] for r in two] != [r[3] for r in one], "draws are those of the epoch"


@pytest.mark.parametrize(
    ("length", "weights", "want"),
    [("sum", None, A + B), ("shortest", None, 2 * B), ("longest", None, 2 * A), ("shortest", [0.9, 0.1], 12),
     ("longest", [0.9, 0.1], 40), (7, None, 7)],
)  # fmt: skip
def test_the_length_of_an_epoch(length: Any, weights: Any, want: int, folders: list[str]) -> None:
    found = rows(joined(folders, "mix", weights=weights, length=length))
    assert len(found) == want
    if length == "shortest":
        assert len(set(names(found))) == want
    if length == "longest":
        assert len(set(names(found))) == A + B


def test_parts_of_one_size_have_different_orders(folders: list[str]) -> None:
    found = rows(joined([folders[0]] * 2, "mix", [{"random_shuffle": True}] * 2, length=2 * A))
    assert [r[0] for r in found if r[2] == 0] != [r[0] for r in found if r[2] == 1]


# ---- laws ----

WAYS: list[tuple[str, dict[str, Any]]] = [
    ("concat", {}), ("concat", {"random_shuffle": True}), ("mix", {"weights": [3, 1]}),
    ("mix", {"weights": [0.3, 0.7], "length": "longest"}),
]  # fmt: skip
PARTS = [{"random_shuffle": True}, {"sampler": samplers.Weighted([1, 2, 3, 4], 6)}]


@pytest.mark.parametrize(("how", "more"), WAYS)
def test_batches_and_threads_change_nothing(how: str, more: dict[str, Any], folders: list[str]) -> None:
    want = rows(joined(folders, how, PARTS, **more), 2)
    for settings in ({"batch_size": 1}, {"batch_size": 7, "num_threads": 3}, {"exec_async": False}):
        assert rows(joined(folders, how, PARTS, **more, **settings), 2) == want
    assert len({r[3] for r in want}) == len(want), "a sample that comes again has other draws"


@pytest.mark.parametrize(("how", "more"), WAYS)
def test_shards_partition_the_epoch(how: str, more: dict[str, Any], folders: list[str]) -> None:
    want = rows(joined(folders, how, **more))
    parts = [rows(joined(folders, how, **more, num_shards=3, shard_id=k)) for k in range(3)]
    together = [row for turn in zip(*parts, strict=True) for row in turn]
    assert together[: len(want)] == want


@pytest.mark.parametrize(("how", "more"), WAYS)
def test_restoring_at_every_step(how: str, more: dict[str, Any], folders: list[str]) -> None:
    with joined(folders, how, PARTS, **more) as pipe:
        want = batches(pipe, 2)
    for step in range(len(want)):
        with joined(folders, how, PARTS, **more, prefetch_queue_depth=3) as pipe:
            for _ in range(step):
                if pipe.next("stop") is None:
                    pipe.start_epoch(1)
                    pipe.next("stop")
            state = pipe.get_state()
        with joined(folders, how, PARTS, **more, num_threads=1, exec_async=False) as other:
            other.set_state(state)
            rest = list(itertools.chain.from_iterable(batches(other, 2)))
        expected = list(itertools.chain.from_iterable(want[step:]))
        assert rest[: len(expected)] == expected


def test_two_shards_become_three(folders: list[str]) -> None:
    def shards(count: int, state: Any = None, steps: int = 0) -> tuple[list[Row], Any]:
        parts: list[list[Row]] = []
        for k in range(count):
            with joined(folders, "mix", PARTS, weights=[3, 1], num_shards=count, shard_id=k, batch_size=2) as pipe:
                if state is not None:
                    pipe.set_state(state)
                if steps:
                    parts.append([])
                    for _ in range(steps):
                        delivered = pipe.next("stop")
                        assert delivered is not None
                        parts[-1] += [bytes(x).decode() for x in delivered.outputs[0]]
                    saved = pipe.get_state()
                else:
                    parts.append(names(list(itertools.chain.from_iterable(batches(pipe)))))
                    saved = None
        return [x for turn in zip(*parts, strict=True) for x in turn], saved

    want = names(rows(joined(folders, "mix", PARTS, weights=[3, 1])))
    before, state = shards(2, steps=2)
    after, _ = shards(3, state)
    assert (before + after)[: len(want)] == want


def test_a_state_of_other_parts_is_refused(folders: list[str]) -> None:
    with joined(folders, "mix", weights=[3, 1]) as pipe:
        pipe.run()
        state = pipe.get_state()
    with pytest.raises(StateError, match=r"another graph: node 2, `readers.mix` made at .*, had weights="):
        joined(folders, "mix", weights=[1, 1]).set_state(state)
    with pytest.raises(StateError, match=r"another graph"):
        joined(folders, "mix", [{"random_shuffle": True}, {}], weights=[3, 1]).set_state(state)
    (Path(folders[1]) / "x" / "new.jpg").write_bytes(b"new")
    with pytest.raises(StateError, match=r"another data set: `readers.mix`: it had 15 samples, there are 16"):
        joined(folders, "mix", weights=[3, 1]).set_state(state)


class Plain:
    """Sampler that implements only the required methods."""

    def __iter__(self) -> Any:
        return iter([2, 0])

    def __len__(self) -> int:
        return 2

    def set_epoch(self, epoch: int) -> None:
        """Do nothing: the order is the same in every epoch."""


def test_a_state_of_parts_with_objects_is_valid_in_another_process(folders: list[str]) -> None:
    """A state contains no addresses of objects, so another process accepts it."""
    one, two = (joined(folders, "concat", [{"sampler": Plain()}, {}]).build() for _ in range(2))
    assert one.graph.fingerprint() == two.graph.fingerprint()
    assert one.graph.fingerprint() != joined(folders, "concat", [{"sampler": [2, 0]}, {}]).build().graph.fingerprint()
    with one, two:
        one.run()
        two.set_state(one.get_state())
        assert [bytes(x) for x in two.run()[0]] == [bytes(x) for x in one.run()[0]]


def test_the_graph_survives_json(folders: list[str]) -> None:
    pipe = joined(folders, "mix", weights=[3, 1]).build()
    again = Graph.from_json(pipe.graph.to_json(), find)
    assert again.fingerprint() == pipe.graph.fingerprint()


# ---- errors ----


def test_a_missing_sample_is_replaced_by_a_sample_of_any_part(folders: list[str]) -> None:
    (lost,) = Path(folders[1]).rglob("b0.jpg")

    def substituted(**settings: Any) -> list[Row]:
        pipe = joined(folders, "mix", weights=[1, 1], on_error="replace", error_limit=1.0, **settings)
        with pipe:
            pipe.build()
            if lost.exists():
                lost.unlink()
            delivered = list(itertools.chain.from_iterable(batches(pipe, 2)))
            assert {e.path for e in pipe.errors} == {str(lost)}
            assert {e.action for e in pipe.errors} == {"replaced"}
        return delivered

    lost.touch()
    one = substituted()
    assert "b0" not in names(one)
    assert all(n.startswith("ab"[part]) for n, _, part, _ in one), "label and part are the substitute's"
    lost.touch()
    assert substituted(batch_size=3, num_threads=1) == one


@pytest.mark.parametrize(
    ("how", "parts", "more", "text"),
    [
        ("mix", [{"num_shards": 2}, {}], {}, r"expected `num_shards` with `parts`, not in part 0"),
        ("concat", [{}, {"on_error": "skip"}], {}, r"expected `on_error` with `parts`, not in part 1"),
        ("mix", None, {"weights": [1]}, r"a weight for each of 2 parts, got \[1\]"),
        ("mix", None, {"weights": 3}, r"expected a list of numbers as `weights`, got 3"),
        ("mix", None, {"weights": [1, 0]}, r"expected `weights` > 0"),
        ("mix", None, {"length": "short"}, r"expected `length` in"),
        ("mix", None, {"length": 0}, r"expected `length` in"),
        ("mix", None, {"label_offsets": [1]}, r"a whole number for each of 2 parts"),
        ("mix", None, {"num_shards": 2, "shard_id": 2}, r"shard_id < num_shards"),
        ("concat", None, {"random_shuffle": True, "sampler": [0]}, r"no `random_shuffle` with it"),
        ("concat", [{"random_shuffle": True}, {}], {"sampler": [0]}, r"parts without a `sampler` or a shuffle"),
        ("mix", [{"sampler": itertools.count()}, {}], {}, r"part 0: expected a `sampler` with a length"),
        ("concat", [{"sampler": [99]}, {}], {}, r"part 0: expected `sampler` to give numbers from 0 to 10, got 99"),
    ],
)
def test_readers_that_cannot_be_joined(
    how: str, parts: Any, more: dict[str, Any], text: str, folders: list[str]
) -> None:
    with pytest.raises(ArgumentError, match=text) as error:
        joined(folders, how, parts, **more).build()
    assert f"`readers.{how}`: " in str(error.value) and "test_joined_readers.py" in str(error.value)


@pytest.mark.parametrize("parts", [[], ["a"], [np.zeros(3)]])
def test_parts_that_are_no_readers(parts: Any) -> None:
    @pipeline_def(batch_size=1, num_threads=1)
    def wrong() -> Any:
        return fn.readers.concat(parts)

    with pytest.raises(ArgumentError, match=r"expected (`parts` to be a list of what readers|at least one reader)"):
        wrong().build()


def test_outputs_of_one_reader_are_no_list_of_readers(folders: list[str]) -> None:
    @pipeline_def(batch_size=1, num_threads=1)
    def concatenated(inner: bool) -> Any:
        one, two = fn.readers.file(file_root=folders[0]), fn.readers.file(file_root=folders[1])
        return fn.readers.concat([one[0], two[0]] if inner else one)[2]

    with pytest.raises(ArgumentError, match="got several outputs of one reader — made at"):
        concatenated(False)
    with concatenated(True) as pipe:
        assert pipe.build().reader_meta().popitem()[1]["epoch_size"] == A + B


def test_other_sources_are_refused() -> None:
    @pipeline_def(batch_size=1, num_threads=1)
    def wrong(node: Any) -> Any:
        return fn.readers.concat([node()])

    with pytest.raises(ArgumentError, match=r"got `external_source` as part 0. Data from Python are joined in Python"):
        wrong(lambda: fn.external_source(lambda: np.zeros((1, 2)))).build()
    with pytest.raises(
        ArgumentError, match=r"expected `parts` to come from readers, got an output of `random.uniform`"
    ):
        wrong(lambda: fn.random.uniform()).build()


def test_a_joined_reader_has_metadata(folders: list[str]) -> None:
    pipe = joined(folders, "mix", weights=[1, 1], length="longest", name="Both", num_shards=2, shard_id=1).build()
    meta = pipe.reader_meta("Both")
    assert meta["epoch_size"] == 2 * A and meta["number_of_shards"] == 2 and meta["shard_id"] == 1
