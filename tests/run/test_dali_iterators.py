# SPDX-License-Identifier: Apache-2.0
"""DALI's PyTorch iterators, and a pipeline as a torch data set, with real tensors and real worker processes."""

from __future__ import annotations

import json
import sys
from collections.abc import Iterator
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import pytest

torch = pytest.importorskip("torch", exc_type=ModuleNotFoundError)

from stoker import ArgumentError, DataError, Pipeline, StateError, fn, pipeline_def  # noqa: E402
from stoker.dali import pipeline_def as dali_pipeline_def  # noqa: E402
from stoker.dali.plugin.base_iterator import LastBatchPolicy  # noqa: E402
from stoker.dali.plugin.pytorch import (  # noqa: E402
    DALIClassificationIterator,
    DALIGenericIterator,
    DALIRaggedIterator,
    feed_ndarray,
)
from stoker.torch import Dataset, Loader  # noqa: E402

FILL, DROP, PARTIAL = LastBatchPolicy.FILL, LastBatchPolicy.DROP, LastBatchPolicy.PARTIAL


@pytest.fixture(scope="module")
def files(jpegs: Path) -> list[str]:
    return sorted(str(p) for p in jpegs.rglob("*.jpg"))[:7]


@dali_pipeline_def(batch_size=2, num_threads=1, seed=3)
def reading(files: list[str], **reader: Any) -> Any:
    """Return the number of the file, twice."""
    _, label = fn.readers.file(files=files, labels=list(range(1, len(files) + 1)), name="Reader", **reader)
    return fn.cast(label, dtype="float32"), label


@dali_pipeline_def(batch_size=2, num_threads=1)
def counting(rows: int, step: int = 1) -> Any:
    def source(info: Any) -> Any:
        if info.idx_in_epoch >= rows:
            raise StopIteration
        return np.int32([step * info.idx_in_epoch])

    return fn.external_source(source, batch=False)


def labels(iterator: Any, pipe: int = 0, name: str = "label") -> list[list[int]]:
    return [step[pipe][name].flatten().tolist() for step in iterator]


# The docstrings of DALI's iterators give these for 7 rows. Without padding, Stoker's epochs start at the first row.
@pytest.mark.parametrize(("policy", "last", "count"), [(FILL, [7, 1], 4), (PARTIAL, [7], 4), (DROP, [5, 6], 3)])
def test_last_batches_of_a_reader(files: list[str], policy: Any, last: list[int], count: int) -> None:
    iterator = DALIClassificationIterator(reading(files), reader_name="Reader", last_batch_policy=policy)
    assert len(iterator) == count
    assert iterator.size == 7
    for _ in range(2):
        epoch = labels(iterator)
        assert epoch[0] == [1, 2] and epoch[-1] == last and len(epoch) == count
        with pytest.raises(StopIteration):
            next(iterator)  # until the reset
        iterator.reset()
    iterator._pipes[0].close()


@pytest.mark.parametrize("auto_reset", [True, "yes"])
def test_auto_reset(files: list[str], auto_reset: Any) -> None:
    iterator = DALIClassificationIterator(reading(files), reader_name="Reader", auto_reset=auto_reset)
    assert [len(labels(iterator)) for _ in range(3)] == [4, 4, 4]
    iterator._pipes[0].close()


def test_epochs_by_size() -> None:
    wanted = {FILL: [[0, 1], [2, 3], [4, 5]], PARTIAL: [[0, 1], [2, 3], [4]], DROP: [[0, 1], [2, 3]]}
    for policy, batches in wanted.items():
        iterator = DALIGenericIterator(counting(100), ["n"], size=5, last_batch_policy=policy, auto_reset=True)
        assert len(iterator) == len(batches)
        assert labels(iterator, name="n") == batches
        assert labels(iterator, name="n") == batches  # a source without a reader starts again
        iterator._pipes[0].close()


# Results of DALI 2.4.
SEAMLESS = {
    (FILL, False): [[[1, 2], [3, 4], [5, 6], [7, 1]], [[2, 3], [4, 5], [6, 7]], [[1, 2], [3, 4], [5, 6], [7, 1]]],
    (FILL, True): [
        [[1, 2], [3, 4], [5, 6], [7, 1]],
        [[2, 3], [4, 5], [6, 7], [1, 2]],
        [[3, 4], [5, 6], [7, 1], [2, 3]],
    ],
    (DROP, False): [[[1, 2], [3, 4], [5, 6]], [[2, 3], [4, 5], [6, 7]], [[3, 4], [5, 6], [7, 1]]],
    (DROP, True): [[[1, 2], [3, 4], [5, 6]], [[2, 3], [4, 5], [6, 7]], [[3, 4], [5, 6], [7, 1]]],
    (PARTIAL, False): [[[1, 2], [3, 4], [5, 6], [7]], [[2, 3], [4, 5], [6, 7], [1]], [[3, 4], [5, 6], [7, 1], [2]]],
    (PARTIAL, True): [[[1, 2], [3, 4], [5, 6], [7]], [[2, 3], [4, 5], [6, 7], [1]], [[3, 4], [5, 6], [7, 1], [2]]],
}


@pytest.mark.parametrize(("policy", "padded"), SEAMLESS, ids=lambda x: getattr(x, "name", str(x)))
def test_epochs_by_size_continue_in_the_readers_stream(files: list[str], policy: Any, padded: bool) -> None:
    iterator = DALIClassificationIterator(
        reading(files), size=7, last_batch_policy=policy, last_batch_padded=padded, auto_reset=True
    )
    assert [labels(iterator) for _ in range(3)] == SEAMLESS[policy, padded]
    iterator._pipes[0].close()


@pytest.mark.parametrize(("policy", "last"), [(FILL, [7, 7]), (PARTIAL, [7]), (DROP, [5, 6])])
def test_a_reader_that_pads(files: list[str], policy: Any, last: list[int]) -> None:
    pipe = reading(files, pad_last_batch=True)
    iterator = DALIClassificationIterator(pipe, reader_name="Reader", last_batch_policy=policy, auto_reset=True)
    for _ in range(2):
        epoch = labels(iterator)
        assert epoch[0] == [1, 2] and epoch[-1] == last
    pipe.close()


def test_epochs_until_the_source_ends() -> None:
    iterator = DALIGenericIterator([counting(5)], ["n"])
    with pytest.raises(TypeError, match="the length of an epoch is not known"):
        len(iterator)
    assert labels(iterator, name="n") == [[0, 1], [2, 3], [4]]
    iterator.reset()
    assert iterator.next()[0]["n"].tolist() == [[0], [1]]
    with pytest.warns(RuntimeWarning, match="the epoch is not over; the call is ignored"):
        iterator.reset()
    assert iterator.next()[0]["n"].tolist() == [[2], [3]]
    iterator._pipes[0].close()


def test_several_pipelines() -> None:
    pipes = [counting(100), counting(100, step=10)]
    iterator = DALIGenericIterator(pipes, ["n"], size=7, last_batch_policy=PARTIAL, auto_reset=True)
    assert len(iterator) == 2
    steps = [[x["n"].flatten().tolist() for x in step] for step in iterator]
    assert steps == [[[0, 1], [0, 10]], [[2, 3], [20]]]
    five = DALIGenericIterator(pipes, ["n"], size=5, last_batch_policy=PARTIAL)
    assert [len(step) for step in five] == [2, 1]  # the second pipeline has no row left
    uneven = DALIGenericIterator([counting(4), counting(2)], ["n"])
    next(uneven)
    with pytest.raises(DataError, match="equally long, got one that ends earlier: pipeline 1 of 2"):
        next(uneven)
    for pipe in [*pipes, *uneven._pipes]:
        pipe.close()


def test_shards_have_equal_numbers_of_batches(files: list[str]) -> None:
    for policy in (FILL, DROP):
        pipes = [reading(files, shard_id=i, num_shards=2) for i in range(2)]
        iterator = DALIClassificationIterator(pipes, reader_name="Reader", last_batch_policy=policy)
        steps = list(iterator)
        assert len(steps) == len(iterator) and all(len(s) == 2 for s in steps)
        for pipe in pipes:
            pipe.close()


@pytest.mark.parametrize("pads", [False, True])
def test_partial_delivers_every_row_once(files: list[str], pads: bool) -> None:
    """Seven rows over two shards. Batches of one row let one shard end before the other."""
    for batch_size in (1, 2):
        pipes = [reading(files, shard_id=i, num_shards=2, pad_last_batch=pads, batch_size=batch_size) for i in range(2)]
        iterator = DALIClassificationIterator(pipes, reader_name="Reader", last_batch_policy=PARTIAL, auto_reset=True)
        for _ in range(3):
            assert (len(iterator), iterator.size) == (4 // batch_size, 7)
            steps = list(iterator)
            assert len(steps) == 4 // batch_size
            assert [len(step) for step in steps] == ([2, 2, 2, 1] if batch_size == 1 else [2, 2])
            assert sorted(int(x) for step in steps for d in step for x in d["label"]) == list(range(1, 8))
        for pipe in pipes:
            pipe.close()


@dali_pipeline_def(batch_size=3, num_threads=1)
def ragged() -> Any:
    rows = [np.float32([1, 2]), np.float32([3]), np.float32([4, 5, 6])]
    return fn.external_source(lambda i: rows), fn.external_source(lambda i: np.arange(3))


def test_ragged_outputs() -> None:
    names, kinds = ["x", "n"], [DALIRaggedIterator.SPARSE_LIST_TAG, DALIRaggedIterator.DENSE_TAG]
    pipe = ragged()
    step = next(DALIRaggedIterator(pipe, names, output_types=kinds))[0]
    assert [r.tolist() for r in step["x"]] == [[1, 2], [3], [4, 5, 6]] and step["n"].tolist() == [0, 1, 2]
    coo = next(DALIRaggedIterator(pipe, names, output_types=["sparse_coo", "dense"]))[0]["x"]
    assert coo.to_dense().tolist() == [[1, 2, 0], [3, 0, 0], [4, 5, 6]]
    for kind in (DALIRaggedIterator, DALIGenericIterator):
        with pytest.raises(DataError, match="expected rows of one shape in 'x'"):
            next(kind(pipe, names))
    with pytest.raises(ArgumentError, match="in `output_types`"):
        DALIRaggedIterator(pipe, names, output_types=["dense", "spare"])
    pipe.close()


@pytest.mark.skipif(
    not getattr(sys, "_is_gil_enabled", lambda: True)(),
    reason="torch's nested tensors import triton, which switches the GIL on",
)
def test_nested_tensors() -> None:
    loader = Loader(ragged(), ragged="nested", size=1)
    (nested, _), *_ = list(loader)
    assert nested.is_nested and [r.tolist() for r in nested.unbind()] == [[1, 2], [3], [4, 5, 6]]
    loader.close()


def test_states(files: list[str]) -> None:
    iterator = DALIClassificationIterator(reading(files), reader_name="Reader", last_batch_policy=PARTIAL)
    next(iterator)
    state, text = json.loads(json.dumps(iterator.state_dict())), iterator.checkpoints()[0]
    rest = labels(iterator)
    other = DALIClassificationIterator(reading(files), reader_name="Reader", last_batch_policy=PARTIAL)
    other.load_state_dict(state)
    third = DALIClassificationIterator(reading(files, checkpoint=text), reader_name="Reader", last_batch_policy=PARTIAL)
    assert labels(other) == labels(third) == rest == [[3, 4], [5, 6], [7]]
    for i in (iterator, other, third):
        i._pipes[0].close()


def test_feed_ndarray() -> None:
    pipe = counting(4)
    out = torch.zeros((2, 1), dtype=torch.int32)
    assert feed_ndarray(pipe.run()[0], out) is out and out.tolist() == [[0], [1]]
    with pytest.raises(ArgumentError, match="shape"):
        feed_ndarray(pipe.run()[0].as_tensor(), torch.zeros(3))
    pipe.close()


@pytest.mark.parametrize(
    ("arguments", "text"),
    [
        ({"output_map": ["a"]}, "one name of its own for each of 2 outputs"),
        ({"output_map": ["a", "a"]}, "one name of its own"),
        ({"reader_name": "Reader", "size": 5}, "neither `size` nor `last_batch_padded`"),
        ({"reader_name": "Raeder"}, "did you mean `Reader`"),
        ({"last_batch_policy": "fill"}, "expected a LastBatchPolicy"),
        ({"last_batch_policy": PARTIAL}, "expected `reader_name` or `size`"),
        ({"auto_reset": "often"}, '"yes" or "no"'),
        ({"pipelines": 5}, "expected pipelines, got int"),
    ],
)  # fmt: skip
def test_wrong_arguments(files: list[str], arguments: dict[str, Any], text: str) -> None:
    pipe = reading(files)
    with pytest.raises(ArgumentError, match=text):
        DALIGenericIterator(**{"pipelines": pipe, "output_map": ["a", "b"], **arguments})
    pipe.close()


def test_the_old_name_of_the_policy(files: list[str]) -> None:
    pipe = reading(files)
    with pytest.warns(DeprecationWarning, match="use `last_batch_policy`"):
        iterator = DALIClassificationIterator(pipe, reader_name="Reader", fill_last_batch=False)
    assert labels(iterator)[-1] == [7]
    pipe.close()


# ---- skipped rows ----

BAD = (1, 3)


@dali_pipeline_def(batch_size=2, num_threads=1, seed=3, on_error="skip", error_limit=1.0)
def skipping(files: list[str], **reader: Any) -> Any:
    """Return the size of the file and its number. The files ``BAD`` are missing."""
    data, label = fn.readers.file(files=files, labels=list(range(len(files))), name="Reader", **reader)
    return fn.shapes(data), label


@pytest.fixture(scope="module")
def gaps(files: list[str]) -> list[str]:
    return [f"{name}.gone" if n in BAD else name for n, name in enumerate(files)]


@pytest.mark.parametrize(
    ("policy", "wanted"),
    [(FILL, [[0], [2], [4, 5], [6, 0]]), (PARTIAL, [[0], [2], [4, 5], [6]]), (DROP, [[0], [2], [4, 5]])],
)
def test_skipped_rows_are_not_the_end_of_an_epoch(gaps: list[str], policy: Any, wanted: list[list[int]]) -> None:
    iterator = DALIClassificationIterator(
        skipping(gaps), reader_name="Reader", last_batch_policy=policy, auto_reset=True
    )
    for _ in range(2):
        assert labels(iterator) == wanted
        assert len(iterator) == len(wanted)
    iterator._pipes[0].close()


def test_skipped_rows_count_for_the_size(gaps: list[str]) -> None:
    for size, wanted in ((3, [[0], [2]]), (4, [[0], [2]]), (5, [[0], [2], [4]])):
        iterator = DALIClassificationIterator(skipping(gaps), size=size, last_batch_policy=PARTIAL)
        assert labels(iterator) == wanted
        iterator._pipes[0].close()
    first = [f"{gaps[1]}", gaps[0], gaps[2]]  # the first of a batch of three is skipped, and the last is dropped
    iterator = DALIClassificationIterator(skipping(first, batch_size=3), size=2, last_batch_policy=PARTIAL)
    assert labels(iterator) == [[1]]
    iterator._pipes[0].close()


def test_skipped_rows_of_several_pipelines(gaps: list[str]) -> None:
    def pipes() -> list[Any]:
        return [skipping(gaps, num_shards=2, shard_id=k, uneven_ranks=True) for k in range(2)]

    created = pipes()
    iterator = DALIGenericIterator(created, ["size", "label"], reader_name="Reader", last_batch_policy=DROP)
    steps = [[step["label"].flatten().tolist() for step in steps] for steps in iterator]
    assert steps == [[[0, 2], []], [[4, 6], [5, 0]]]
    for pipe in created:
        pipe.close()


def test_a_batch_without_rows(gaps: list[str]) -> None:
    @dali_pipeline_def(batch_size=2, num_threads=1, on_error="skip", error_limit=1.0)
    def whole(files: list[str]) -> Any:
        data, label = fn.readers.file(files=files, name="Reader")
        return fn.decoders.image(data), label

    bad = [gaps[n] for n in BAD]
    for tag in (None, "dense", "sparse_list", "sparse_coo"):
        pipe = whole(bad)
        if tag is None:
            iterator: Any = DALIClassificationIterator(pipe, reader_name="Reader")
        else:
            iterator = DALIRaggedIterator(pipe, ["data", "label"], reader_name="Reader", output_types=[tag, "dense"])
        ((batch,),) = list(iterator)
        assert len(batch["data"]) == len(batch["label"]) == 0
        pipe.close()


def test_a_state_after_skipped_rows(gaps: list[str]) -> None:
    iterator = DALIClassificationIterator(skipping(gaps), reader_name="Reader", last_batch_policy=PARTIAL)
    next(iterator)
    state = json.loads(json.dumps(iterator.state_dict()))
    other = DALIClassificationIterator(skipping(gaps, num_threads=2), reader_name="Reader", last_batch_policy=PARTIAL)
    other.load_state_dict(state)
    assert labels(other) == labels(iterator) == [[2], [4, 5], [6]]
    for one in (iterator, other):
        one._pipes[0].close()


# ---- a pipeline as a torch data set ----


@pipeline_def(batch_size=2, num_threads=1, seed=3)
def sharded(files: list[str], shard_id: int, num_shards: int) -> Any:
    _, label = fn.readers.file(files=files, labels=list(range(len(files))), shard_id=shard_id, num_shards=num_shards)
    return label


def test_a_dataset_in_this_process(files: list[str]) -> None:
    data = Dataset(sharded(files, 0, 1), ["label"])
    loader = torch.utils.data.DataLoader(data, batch_size=None)
    for _ in range(2):
        assert [x["label"].tolist() for x in loader] == [[0, 1], [2, 3], [4, 5], [6]]
    assert len(data) == len(loader) == 4
    data.close()


@pytest.mark.leaks("torch closes the pipes to its worker processes some time later")
def test_a_dataset_in_worker_processes(files: list[str]) -> None:
    data = Dataset(lambda shard, shards: sharded(files, shard, shards))
    loading = partial(torch.utils.data.DataLoader, batch_size=None, num_workers=2, multiprocessing_context="fork")
    loader = loading(data)
    for epoch in range(2):
        data.set_epoch(epoch)
        batches = [x.tolist() for x in loader]
        assert sorted({x for b in batches for x in b}) == list(range(7))
        assert len(batches) == 4  # two per worker, in turn
    with pytest.raises(TypeError, match="depends on the number of workers"):
        len(data)
    wrong = loading(Dataset(sharded(files, 0, 1)))
    with pytest.raises(ArgumentError, match="a function `define"):
        list(wrong)
    with pytest.raises(ArgumentError, match="expected a Pipeline or a function"):
        Dataset(5)


def test_a_dataset_of_a_pipeline_that_ends_with_its_source() -> None:
    def rows() -> Iterator[Any]:
        yield from (np.int64([i]) for i in range(3))

    pipe = Pipeline(2, 1)
    with pipe:
        pipe.set_outputs(fn.external_source(rows, batch=False))
    data = Dataset(pipe)
    assert [x.tolist() for x in data] == [[0, 1], [2]]
    data.close()


@pytest.mark.parametrize(
    "state", [None, [], {}, {"pipelines": []}, {"pipelines": 1, "rows": 0}, {"pipelines": [{}], "rows": 0}]
)
@pytest.mark.parametrize("dali", [True, False])
def test_invalid_states_are_refused(state: Any, dali: bool) -> None:
    @pipeline_def(batch_size=2, num_threads=1)
    def numbers() -> Any:
        return fn.random.uniform(shape=[2])

    iterator: Any = DALIGenericIterator([numbers()], ["x"], size=4) if dali else Loader(numbers())
    with pytest.raises(StateError, match="state"):
        iterator.load_state_dict(state)
