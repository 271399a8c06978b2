# SPDX-License-Identifier: Apache-2.0
"""Bad samples: raised, replaced or skipped, always with the same rows, and all of them listed."""

from __future__ import annotations

import functools
import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch

from stoker import ArgumentError, DataError, Pipeline, UnsupportedError, fn, pipeline_def, samplers
from stoker.executor.flight import SuppliedMemory
from stoker.torch import Loader
from tests.run import pipelines
from tests.run.pipelines import files_of, labels_of, rows_of, stream

COUNT = 24
BAD = (3, 4, 17)


@pytest.fixture(scope="module")
def folder(jpegs: Path, tmp_path_factory: pytest.TempPathFactory) -> list[str]:
    """Create photographs. Of ``BAD``, one is truncated, one is no image, and one is missing."""
    root = tmp_path_factory.mktemp("bad")
    good = files_of(jpegs)
    names = []
    for n in range(COUNT):
        path = root / f"{n:02}.jpg"
        data = Path(good[n % len(good)]).read_bytes()
        if n == BAD[0]:
            data = data[: len(data) // 2]
        if n == BAD[1]:
            data = b"this is no photograph"
        if n != BAD[2]:
            path.write_bytes(data)
        names.append(str(path))
    return names


REPLACING: dict[str, Any] = {"on_error": "replace", "error_limit": 0.5}
training = functools.partial(pipelines.training, **REPLACING)
whole = functools.partial(pipelines.decoding, **REPLACING)


SHAPES: list[dict[str, Any]] = [
    {},
    {"batch_size": 1, "num_threads": 1, "prefetch_queue_depth": 1},
    {"batch_size": 7, "num_threads": 3, "prefetch_queue_depth": 4},
    {"batch_size": 24, "exec_async": False},
]


@pytest.mark.parametrize("make", [training, whole])
@pytest.mark.parametrize("shape", SHAPES, ids=str)
def test_replaced_rows_do_not_depend_on_the_run(make: Any, shape: dict[str, Any], folder: list[str]) -> None:
    expected = stream(make(folder), 2 * COUNT)[: 2 * COUNT]
    assert stream(make(folder, **shape), 2 * COUNT)[: 2 * COUNT] == expected


def test_a_replaced_row_is_one_other_sample_in_all_outputs(folder: list[str]) -> None:
    with whole(folder) as pipe:
        labels, images = [], []
        while (delivered := pipe.next()) is not None:
            labels += labels_of(delivered.outputs)
            images += [np.array(x) for x in delivered.outputs[0]]
            assert delivered.rows.keys.tolist() == list(range(len(labels) - len(delivered.rows), len(labels)))
        errors = pipe.errors
    assert len(labels) == COUNT, "batches are whole"
    assert [n for n, label in enumerate(labels) if label != n] == list(BAD)
    assert [(e.index, e.action, e.substitute) for e in errors] == [(n, "replaced", labels[n]) for n in BAD]
    assert [e.path for e in errors] == [folder[n] for n in BAD]
    assert [e.offset for e in errors] == [Path(folder[BAD[0]]).stat().st_size, None, None]
    assert "end before the image is complete" in errors[0].reason
    assert "expected an image that Pillow can read" in errors[1].reason
    assert "No such file or directory" in errors[2].reason
    for n in BAD:  # image and label belong together
        assert np.array_equal(images[n], images[labels[n]])


def test_substitutes_follow_from_the_row_key(folder: list[str]) -> None:
    """Substitutes in an epoch are the same for any shard and any number of shards."""

    def replaced(**reader: Any) -> dict[int, int | None]:
        with training(folder, **reader) as pipe:
            while pipe.next() is not None:
                pass
            return {e.key: e.substitute for e in pipe.errors}

    alone = replaced()
    assert set(alone) == set(BAD)
    together = {}
    for shard in range(3):
        together.update(replaced(num_shards=3, shard_id=shard))
    assert together == alone


@pytest.mark.parametrize("policy", ["replace", "skip"])
def test_every_state_restores_the_rest(policy: str, folder: list[str]) -> None:
    rows, states = [], []
    with training(folder, on_error=policy) as pipe:
        states.append((0, pipe.get_state()))
        while (delivered := pipe.next()) is not None:
            rows += rows_of(delivered.outputs)
            states.append((len(rows), json.loads(json.dumps(pipe.get_state()))))
    assert len(rows) == (COUNT if policy == "replace" else COUNT - len(BAD))
    for taken, state in states:
        with training(folder, on_error=policy, batch_size=3, prefetch_queue_depth=3) as pipe:
            pipe.set_state(state)
            rest = []
            while (delivered := pipe.next()) is not None:
                rest += rows_of(delivered.outputs)
        assert rest == rows[taken:]


# ---- skip ----


@pytest.mark.parametrize("shape", SHAPES[:3], ids=str)
def test_skipped_rows_are_left_out_and_listed(shape: dict[str, Any], folder: list[str]) -> None:
    with whole(folder, on_error="skip", **shape) as pipe:
        labels, first, size = [], 0, pipe.batch_size
        while (delivered := pipe.next()) is not None:
            images, numbers = pipe.execution.batches(delivered)
            missing = [n for n in BAD if first <= n < first + delivered.asked]
            assert [first + r for r in images.skipped] == missing
            assert len(images) == len(numbers) == len(images.keys) == delivered.asked - len(missing)
            assert images.keys.tolist() == labels_of([numbers])
            labels += labels_of([numbers])
            first += size
        assert [e.index for e in pipe.errors] == list(BAD)
        assert {e.action for e in pipe.errors} == {"skipped"}
    assert labels == [n for n in range(COUNT) if n not in BAD]


def test_a_batch_may_become_empty(folder: list[str]) -> None:
    for make in (whole, training):
        reader = {"sampler": [3, 4]} if make is whole else {}
        files = folder if make is whole else [folder[3], folder[4]]
        with make(files, on_error="skip", error_limit=1, batch_size=2, **reader) as pipe:
            images, labels = pipe.run()
            assert len(images) == len(labels) == 0
            assert images.skipped == (0, 1)
    assert images.as_array().shape == (0, 3, 16, 16)


def test_several_ranks_must_agree(folder: list[str]) -> None:
    with pytest.raises(ArgumentError, match=r"expected \"replace\" or \"raise\" where 2 shards .* uneven_ranks=True"):
        whole(folder, on_error="skip", num_shards=2).build()
    lengths = []
    for shard in range(2):
        with whole(folder, on_error="skip", num_shards=2, shard_id=shard, uneven_ranks=True) as pipe:
            lengths.append(0)
            while pipe.next() is not None:
                lengths[-1] += 1
    assert lengths == [3, 3], "the number of batches stays equal"


# ---- raise ----


def test_raise_is_the_default_and_is_listed(folder: list[str]) -> None:
    with whole(folder, on_error="raise", error_limit=None) as pipe:
        with pytest.raises(DataError, match=r"03\.jpg"):
            pipe.run()
        assert labels_of(pipe.run()) == [5, 6, 7, 8, 9]
        assert [(e.index, e.action) for e in pipe.errors] == [(3, "raised")]


def test_a_node_may_override_the_policy(folder: list[str]) -> None:
    @pipeline_def(batch_size=6, num_threads=2, seed=7, error_limit=1.0)
    def mixed(reading: str | None, decoding: str | None) -> Any:
        jpegs, labels = fn.readers.file(files=folder, on_error=reading)
        return fn.decoders.image(jpegs, on_error=decoding), labels

    with mixed("skip", "replace") as pipe:
        labels = [x for _ in range(4) for x in labels_of(pipe.run())]
        assert [(e.index, e.action) for e in pipe.errors] == [(3, "replaced"), (4, "replaced"), (17, "skipped")]
    assert len(labels) == COUNT - 1
    with mixed(None, "skip") as pipe:
        for _ in range(2):
            pipe.run()
        with pytest.raises(DataError, match="No such file"):
            pipe.run()
    with pytest.raises(ArgumentError, match="expected one of 'raise', 'replace', 'skip'"):
        mixed("ignore", None)


# ---- the limit ----


def test_too_many_bad_rows_stop_the_pipeline(folder: list[str]) -> None:
    with whole(folder, error_limit=None) as pipe:  # 1 % of 24 rows, rounded up: one
        with pytest.raises(DataError, match=r"at most 0.01 of the rows to fail, got 2 bad ones .* epoch 0.*04.jpg"):
            pipe.run()
        assert labels_of(pipe.run()) == [5, 6, 7, 8, 9], "the pipeline stays usable"
    with whole(folder, error_limit=0.1) as pipe:  # 2.4, rounded up: three, counted per epoch
        for _ in range(15):
            pipe.run()
    with whole(folder, error_limit=0.1) as pipe:
        for _ in range(3):
            pipe.run()
        state = pipe.get_state()
        assert state["bad"] == [0, 2]
    with whole(folder, error_limit=0.05) as pipe:
        pipe.set_state(state)
        with pytest.raises(DataError, match="got 3 bad ones"):
            pipe.run()


def test_a_dead_disk_is_an_error(folder: list[str]) -> None:
    gone = [f"{name}.gone" for name in folder]
    with training(gone, error_limit=1.0) as pipe, pytest.raises(DataError, match="16 substitutes for it failed too"):
        pipe.run()


def test_skip_has_a_limit_if_one_is_set(folder: list[str]) -> None:
    pipe = whole(folder, on_error="skip", error_limit=0.05, batch_size=COUNT)
    with pipe, pytest.raises(DataError, match="got 3 bad ones"):
        pipe.run()


@pytest.mark.parametrize("wrong", [-0.1, 1.1, "1%", True])
def test_limits_are_shares(wrong: Any, folder: list[str]) -> None:
    with pytest.raises(ArgumentError, match="expected a number from 0 to 1 as `error_limit`"):
        whole(folder, error_limit=wrong)
    with pytest.raises(ArgumentError, match="expected `on_error` to be one of raise, replace, skip, got 'retry'"):
        whole(folder, on_error="retry")


# ---- Python functions ----


def numbers_of(pipe: Pipeline, batches: int) -> list[list[int]]:
    return [np.asarray(pipe.run()[0].as_array()).reshape(-1).tolist() for _ in range(batches)]


def refuse_seven(x: Any) -> Any:
    if int(x[0]) == 7:
        raise ValueError("seven is not wanted")
    return x


@pipeline_def(batch_size=5, num_threads=2, seed=3, error_limit=0.5)
def with_python(files: list[str], function: Callable[[Any], Any] = refuse_seven) -> Any:
    _, labels = fn.readers.file(files=files)
    return fn.python_function(labels, function=function)


@pytest.mark.parametrize("depth", [1, 3])
def test_a_function_that_raises(depth: int, folder: list[str]) -> None:
    with with_python(folder, on_error="replace", prefetch_queue_depth=depth) as pipe:
        replaced = numbers_of(pipe, 2)
        assert [(e.index, e.action, e.reason) for e in pipe.errors] == [
            (7, "replaced", "ValueError: seven is not wanted")
        ]
        assert replaced[1][2] == pipe.errors[0].substitute
    with with_python(folder, on_error="skip", prefetch_queue_depth=depth) as pipe:
        assert numbers_of(pipe, 2) == [[0, 1, 2, 3, 4], [5, 6, 8, 9]]
    with with_python(folder, prefetch_queue_depth=depth) as pipe:
        numbers_of(pipe, 1)
        with pytest.raises(DataError, match="seven is not wanted"):
            pipe.run()


def test_a_bad_row_of_the_first_batch_while_types_are_inferred(folder: list[str]) -> None:
    """The types of a Python function come from the good rows of the first batch."""
    calls: list[int] = []

    def doubled(image: Any, label: Any) -> Any:
        calls.append(int(label[0]))
        return image[:4, :4].astype(np.int32) * 2, label

    @pipeline_def(batch_size=6, num_threads=2, seed=3, error_limit=0.5, on_error="replace")
    def define() -> Any:
        jpegs, labels = fn.readers.file(files=folder)
        return fn.python_function(fn.decoders.image(jpegs), labels, function=doubled, num_outputs=2)

    with define() as pipe:
        images, labels = pipe.run()
        assert images.as_array().shape[:3] == (6, 4, 4)
        numbers = labels_of([labels])
        assert [n for n in numbers if n not in BAD] == numbers
        assert calls[:4] == [0, 1, 2, 5], "every good row once"
        assert set(numbers[3:5]) <= set(calls[4:]), "and the substitutes"
    with define(on_error="raise") as pipe, pytest.raises(DataError, match=r"03\.jpg"):
        pipe.run()


# ---- rows that depend on each other ----


@pipeline_def(batch_size=6, num_threads=2, seed=3, error_limit=0.5, on_error="replace")
def mixing(files: list[str]) -> Any:
    jpegs, labels = fn.readers.file(files=files)
    images = fn.resize(fn.decoders.image(jpegs), size=(8, 8))
    order = fn.batch_permutation()
    return images, fn.permute_batch(images, indices=order), labels, fn.permute_batch(labels, indices=order)


def test_a_batch_whose_rows_depend_on_each_other_is_computed_again(folder: list[str]) -> None:
    with mixing(folder) as pipe:
        images, mixed, labels, others = (np.asarray(x.as_array()) for x in pipe.run())
        errors = pipe.errors
    assert [e.index for e in errors] == [3, 4]
    flat = labels.reshape(-1).tolist()
    assert flat[:3] == [0, 1, 2] and flat[5] == 5
    assert [e.substitute for e in errors] == flat[3:5]
    assert sorted(others.reshape(-1).tolist()) == sorted(flat), "the others see the substitutes"
    for image, label in zip(mixed, others.reshape(-1), strict=True):
        assert np.array_equal(image, images[flat.index(int(label))])


# ---- refusals ----


def test_replace_needs_other_samples() -> None:
    @pipeline_def(batch_size=2, num_threads=1, on_error="replace")
    def sourced() -> Any:
        return fn.external_source(source=[np.zeros((2, 3), np.uint8)]) * 1

    with pytest.raises(UnsupportedError, match='got "replace" with data that the caller gives'):
        sourced().build()


def test_replace_and_state(folder: list[str]) -> None:
    @pipeline_def(batch_size=2, num_threads=1, on_error="replace")
    def counting() -> Any:
        return fn.test_count(fn.readers.file(files=folder)[1])

    with pytest.raises(UnsupportedError, match="stateful operator `test_count`"):
        counting().build()


# ---- the loader ----


@pytest.mark.parametrize("policy", ["replace", "skip"])
@pytest.mark.parametrize("make", [training, whole])
def test_a_loader(policy: str, make: Any, folder: list[str]) -> None:
    loader = Loader(make(folder, on_error=policy), last_batch_policy="drop")
    sizes, labels = [], []
    for x, y in loader:
        sizes.append(len(x))
        assert len(x) == len(y)
        assert isinstance(x, list) or x.dtype == torch.float32
        labels += y.tolist()
    loader.close()
    assert len(sizes) == len(loader) == 4, "a batch that is short because of bad rows does not end the epoch"
    if policy == "replace":
        assert sum(sizes) == 20
    elif make is whole:
        assert sizes == [3, 5, 5, 4]
    assert not set(labels) & set(BAD)


@pytest.mark.parametrize("policy", ["replace", "skip"])
def test_memory_of_the_consumer(policy: str, folder: list[str]) -> None:
    """Rows in supplied memory, such as pinned tensors, are replaced and skipped in place."""
    expected = []
    with training(folder, on_error=policy) as pipe:
        while (delivered := pipe.next()) is not None:
            expected.append(np.array(delivered.outputs[0]))
    tensors: list[Any] = []

    def allocate(output: int, planned: Any, rows: int) -> Any:
        if output:
            return None
        tensors.append(torch.full((rows, *planned.shape), float("nan")))
        return SuppliedMemory(tensors[-1].data_ptr(), tensors[-1])

    with training(folder, on_error=policy) as pipe:
        for want in expected:
            delivered = pipe.next(allocate=allocate)
            assert delivered is not None
            got = delivered.outputs[0]
            assert isinstance(got, torch.Tensor)
            assert any(got.data_ptr() == k.data_ptr() for k in tensors)
            assert got.shape == want.shape
            assert got.numpy().tobytes() == want.tobytes()


# ---- samplers and the choice of substitutes ----


def test_a_substitute_comes_from_the_sampler(folder: list[str]) -> None:
    """A substitute never comes from outside the sampler's samples, which may be another split of the data."""
    with whole(folder, sampler=[0, 1, 2, 3, 4, 5], error_limit=1.0) as pipe:
        for _ in range(12):
            assert set(labels_of(pipe.run())) <= {0, 1, 2, 5}
    with whole(folder, sampler=samplers.Weighted([1.0] * 6 + [0.0] * 18), error_limit=1.0) as pipe:
        for _ in range(12):
            assert set(labels_of(pipe.run())) <= {0, 1, 2, 5}
