# SPDX-License-Identifier: Apache-2.0
"""``stoker.paddle`` with Paddle on the CPU: `make test-paddle`."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import paddle
import pytest

from stoker import ArgumentError, types
from stoker.paddle import Loader
from tests.frameworks.batches import DTYPES, check_same_training, expected, ragged, run_page, typed
from tests.photographs import write_photographs
from tests.run.pipelines import files_of, training

ROWS = 17
ABSENT = (types.UINT16, types.UINT32, types.UINT64)


@pytest.fixture(scope="module", autouse=True)
def _paddle_threads() -> None:
    """Start Paddle's threads, which outlive the tests."""
    paddle.ones([2, 2]).matmul(paddle.ones([2, 2])).numpy()


@pytest.fixture(scope="module")
def files(jpegs: Path) -> list[str]:
    return files_of(jpegs)[:ROWS]


@pytest.mark.parametrize("dtype", [d for d in DTYPES if d not in ABSENT], ids=str)
def test_types_and_values(dtype: Any) -> None:
    with typed(dtype) as pipe:
        got = next(iter(Loader(pipe, size=1)))
        assert str(got.dtype) == f"paddle.{dtype}" and got.shape == [4, 3, 5]
        np.testing.assert_array_equal(got.astype("float64").numpy(), expected(dtype))


@pytest.mark.parametrize("dtype", ABSENT, ids=str)
def test_types_that_paddle_lacks_are_refused(dtype: Any) -> None:
    with typed(dtype) as pipe, pytest.raises(ArgumentError, match=rf"got an output of {dtype}. Add `fn.cast"):
        next(iter(Loader(pipe, size=1)))


def test_batches_share_the_engines_memory_and_stay(files: list[str]) -> None:
    with training(files) as pipe, training(files) as plain:
        kept = [images.numpy().copy() for images, _ in Loader(pipe)]
        tensors = [images for images, _ in Loader(plain)]
        assert len([b for _ in range(4) for b in Loader(plain)]) == 16  # later batches use other memory
        for first, second in zip(kept, tensors, strict=True):
            np.testing.assert_array_equal(first, second.numpy())
    with training(files) as pipe:
        delivered = pipe.next("stop")
        images, _ = Loader(pipe)._arrays(delivered, pipe.execution.plan)
        assert images.data_ptr() == delivered.outputs[0].ctypes.data


def test_labels_are_int64_and_outputs_have_names(files: list[str]) -> None:
    with training(files, shuffle=False) as pipe:
        batches = list(Loader(pipe, ["image", "label"]))
        labels = np.concatenate([b["label"].numpy() for b in batches])
        assert labels.dtype == np.int64 and labels.tolist() == list(range(ROWS))


def test_rows_of_different_shapes_are_lists() -> None:
    with ragged() as pipe:
        rows = next(iter(Loader(pipe)))
        assert [r.shape for r in rows] == [[2, 3, 4], [1, 5, 4], [3, 1, 4]]
        np.testing.assert_array_equal(rows[1].numpy().reshape(-1), np.arange(20))


def test_a_state_continues_in_the_middle(files: list[str]) -> None:
    with training(files) as pipe, training(files) as other:
        loader = Loader(pipe)
        whole = [labels.tolist() for _, labels in loader]
        loader.set_epoch(0)
        next(iter(loader))
        rest = Loader(other)
        rest.load_state_dict(json.loads(json.dumps(loader.state_dict())))
        assert [labels.tolist() for _, labels in rest] == whole[1:]


def test_a_model_trains(files: list[str]) -> None:
    model = paddle.nn.Sequential(paddle.nn.Flatten(), paddle.nn.Linear(3 * 16 * 16, ROWS))
    optimizer = paddle.optimizer.SGD(1e-3, parameters=model.parameters())
    with training(files) as pipe:
        for images, labels in Loader(pipe):
            loss = paddle.nn.functional.cross_entropy(model(images), labels)
            loss.backward()
            optimizer.step()
            optimizer.clear_grad()
        assert np.isfinite(float(loss))


def test_the_same_training_as_in_numpy(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    check_same_training("paddle", tmp_path, monkeypatch)


def test_the_guide(tmp_path: Path) -> None:
    run_page("paddle", write_photographs(tmp_path / "photographs", per_class=16))


# ---- DALI's iterators ----


def dali_pipeline(files: list[str], **options: Any) -> Any:
    from stoker.dali import fn, pipeline_def

    @pipeline_def(batch_size=5, num_threads=2, device_id=None, seed=7)
    def pipe(device_id: int = 0, shard_id: int = 0, num_shards: int = 1) -> Any:
        jpegs, labels = fn.readers.file(files=files, name="Reader", shard_id=shard_id, num_shards=num_shards)
        images = fn.resize(fn.decoders.image(jpegs), size=(8, 8))
        return images, labels

    return pipe(**options)


def test_dalis_iterators(files: list[str]) -> None:
    from stoker.dali.plugin.paddle import DALIClassificationIterator, DALIGenericIterator, LastBatchPolicy, feed_ndarray

    pipes = [dali_pipeline(files, shard_id=i, num_shards=2) for i in range(2)]
    for policy, rows in ((LastBatchPolicy.FILL, 20), (LastBatchPolicy.PARTIAL, ROWS), (LastBatchPolicy.DROP, 10)):
        iterator = DALIGenericIterator(pipes, ["x", "y"], reader_name="Reader", last_batch_policy=policy)
        parts = [part for batch in iterator for part in batch]
        assert sum(part["y"].shape[0] for part in parts) == rows
        assert all(part["x"].shape[1:] == [8, 8, 3] for part in parts)
        iterator.reset()
    (batch,) = next(DALIClassificationIterator(pipes[0], reader_name="Reader"))
    assert set(batch) == {"data", "label"} and str(batch["label"].dtype) == "paddle.int32"
    (images, _) = pipes[1].run()
    target = paddle.zeros([5, 8, 8, 3], dtype="uint8")
    feed_ndarray(images, target)
    np.testing.assert_array_equal(target.numpy(), images.as_array())
    with pytest.raises(ArgumentError, match="shape"):
        feed_ndarray(images, paddle.zeros([1], dtype="uint8"))
    for pipe in pipes:
        pipe.close()
