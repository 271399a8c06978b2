# SPDX-License-Identifier: Apache-2.0
"""Samplers in pipelines: repeated samples are separate rows, however the pipeline runs; states; ranks."""

from __future__ import annotations

from typing import Any

import pytest

from stoker import ArgumentError, StateError, fn, pipeline_def, samplers
from stoker.contract.reader import Shards
from stoker.readers.order import PermutedOrder
from tests.unit.test_samplers import Backwards


@pipeline_def(batch_size=4, num_threads=2, seed=7)
def drawing(files: list[str], labels: list[int] | None = None, **reader: Any) -> Any:
    _, numbers = fn.readers.file(files=files, labels=labels, **reader)
    return numbers, fn.random.uniform(range=[0.0, 1.0])


NAMES = [f"{n}.jpg" for n in range(6)]


def rows(pipe: Any, count: int) -> list[tuple[int, float]]:
    found: list[tuple[int, float]] = []
    with pipe:
        while len(found) < count:
            labels, drawn = pipe.run()
            found += [(int(a[0]), float(b)) for a, b in zip(labels, drawn, strict=True)]
    return found[:count]


@pytest.fixture(autouse=True)
def _here(tmp_path: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    for name in NAMES:
        (tmp_path / name).write_bytes(b"x")


@pytest.mark.parametrize(
    "sampler",
    [samplers.Weighted([1, 1, 8, 0, 0, 0]), samplers.ClassBalanced(num_samples=8), [1, 1, 2, 5, 5, 5]],
    ids=["weighted", "balanced", "list"],
)
def test_repeated_samples_have_different_augmentations(sampler: Any) -> None:
    labels = [0, 0, 0, 0, 0, 1]
    taken = rows(drawing(NAMES, labels, sampler=sampler), 24)
    assert len({drawn for _, drawn in taken}) == 24, "no two draws are equal"
    for shape in ({"batch_size": 1}, {"batch_size": 7, "num_threads": 3}, {"batch_size": 3, "exec_async": False}):
        assert rows(drawing(NAMES, labels, sampler=sampler, **shape), 24) == taken


def test_a_sampler_of_the_same_samples_gives_the_same_rows() -> None:
    assert rows(drawing(NAMES, sampler=range(6)), 6) == rows(drawing(NAMES), 6)
    assert rows(drawing(NAMES, sampler=samplers.Shuffled()), 18) == rows(drawing(NAMES, random_shuffle=True), 18)


def test_data_sets_one_after_the_other_and_mixed() -> None:
    """Concatenated data sets equal concatenated lists."""
    first, second = NAMES[:2], NAMES[2:]
    assert [n for n, _ in rows(drawing(first + second), 6)] == list(range(6))
    mixed = samplers.Mixed([2, 4], [1, 1], 8)
    taken = [n for n, _ in rows(drawing(first + second, sampler=mixed), 16)]
    assert [sum(n < 2 for n in taken[at : at + 2]) for at in range(0, 16, 2)] == [1] * 8
    with drawing(NAMES, sampler=mixed) as pipe:
        pipe.run()
        state = pipe.get_state(elastic=True)
    other = drawing(NAMES, sampler=mixed, batch_size=3)
    other.set_state(state)
    assert [n for n, _ in rows(other, 12)] == taken[4:]


def test_states() -> None:
    for sampler in (samplers.Weighted([1, 2, 3, 4, 5, 6]), samplers.ClassBalanced(), [3, 3, 0, 1, 5]):
        whole = rows(drawing(NAMES, sampler=sampler), 20)
        with drawing(NAMES, sampler=sampler) as pipe:
            pipe.run()
            pipe.run()
            state = pipe.get_state()
        other = drawing(NAMES, sampler=sampler, batch_size=3)
        other.set_state(state)
        assert rows(other, 12) == whole[8:20]
        changed = r"node 0, `readers.file` made at .*, had sampler="
        other = drawing(NAMES, sampler=samplers.Weighted([6, 5, 4, 3, 2, 1])).build()
        with other, pytest.raises(StateError, match=changed):
            other.set_state(state)


def test_orders_that_cannot_be_resumed() -> None:
    for source in (Backwards(6), iter(range(6))):
        with drawing(NAMES, sampler=source) as pipe:
            pipe.run()
            with pytest.raises(
                StateError, match=r"`readers.file`: expected an order that can be entered anywhere.*made at"
            ):
                pipe.get_state()


def test_ranks_share_a_sampler() -> None:
    whole = rows(drawing(NAMES, sampler=samplers.Weighted(range(6))), 12)
    parts = [
        rows(drawing(NAMES, sampler=samplers.Weighted(range(6)), num_shards=2, shard_id=s, stick_to_shard=True), 6)
        for s in range(2)
    ]
    assert [parts[k % 2][k // 2] for k in range(12)] == whole


class EveryOther(samplers.Sampler):
    """Custom sampler class."""

    def __repr__(self) -> str:
        return "EveryOther()"

    def bind(self, size: int, labels: Any, shards: Shards, seed: int | None) -> Any:
        return PermutedOrder(size // 2, True, seed)


def test_a_custom_class() -> None:
    assert {n for n, _ in rows(drawing(NAMES, sampler=EveryOther()), 9)} == {0, 1, 2}


def test_a_class_without_bind_is_refused_where_it_is_made() -> None:
    class WithoutBind(samplers.Sampler):
        pass

    with pytest.raises(TypeError, match="bind"):
        WithoutBind()  # type: ignore[abstract]


def test_two_orders_are_refused() -> None:
    with pytest.raises(ArgumentError, match="`sampler` says the order"):
        drawing(NAMES, sampler=[1], random_shuffle=True)
