# SPDX-License-Identifier: Apache-2.0
"""``stoker.tf`` with TensorFlow on the CPU: `make test-tf`."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import tensorflow as tf

from stoker import ArgumentError, DataError, fn, pipeline_def, types
from stoker.tf import Loader, dataset
from tests.frameworks.batches import DTYPES, expected, ragged, run_page, typed
from tests.photographs import write_photographs
from tests.run.pipelines import files_of, training

ROWS = 17
pytestmark = pytest.mark.leaks("TensorFlow's threads outlive the tests")


@pytest.fixture(scope="module")
def files(jpegs: Path) -> list[str]:
    return files_of(jpegs)[:ROWS]


@pytest.mark.parametrize("dtype", DTYPES, ids=str)
def test_types_and_values(dtype: Any) -> None:
    with typed(dtype) as pipe:
        got = next(iter(Loader(pipe, size=1)))
        assert got.dtype.name == str(dtype) and got.shape == (4, 3, 5)
        np.testing.assert_array_equal(tf.cast(got, tf.float64), expected(dtype))
        spec = dataset(pipe, size=1).element_spec
        assert spec.dtype.name == str(dtype) and spec.shape.as_list() == [None, 3, 5]


def test_batches_share_the_engines_memory_and_stay(files: list[str]) -> None:
    with training(files) as pipe, training(files) as plain:
        kept = [images.numpy() for images, _ in Loader(pipe)]
        tensors = [images for images, _ in Loader(plain)]
        assert len([b for _ in range(4) for b in Loader(plain)]) == 16  # later batches use other memory
        for first, second in zip(kept, tensors, strict=True):
            np.testing.assert_array_equal(first, second)
    with training(files) as pipe:
        delivered = pipe.next("stop")
        images, _ = Loader(pipe)._arrays(delivered, pipe.execution.plan)
        assert _address(images) == delivered.outputs[0].ctypes.data


def _address(tensor: Any) -> int:
    class Capsule:
        def __dlpack__(self, **_: Any) -> Any:
            return tf.experimental.dlpack.to_dlpack(tensor)

        def __dlpack_device__(self) -> tuple[int, int]:
            return 1, 0

    return int(np.from_dlpack(Capsule()).ctypes.data)


def test_a_dataset_is_one_epoch_per_loop(files: list[str]) -> None:
    with training(files) as pipe, training(files) as plain:
        data, loader = dataset(pipe, ["x", "y"]), Loader(plain, ["x", "y"])
        assert data.element_spec["x"].shape.as_list() == [None, 3, 16, 16] and data.element_spec["y"].dtype == tf.int64
        for _ in range(2):
            for got, want in zip(data, loader, strict=True):
                np.testing.assert_array_equal(got["x"], want["x"])
                np.testing.assert_array_equal(got["y"], want["y"])


def test_keras_trains_on_a_dataset(files: list[str]) -> None:
    with training(files) as pipe:
        model = tf.keras.Sequential([tf.keras.layers.Flatten(), tf.keras.layers.Dense(ROWS)])
        model.compile("sgd", tf.keras.losses.SparseCategoricalCrossentropy(from_logits=True))
        history = model.fit(dataset(pipe), epochs=2, shuffle=False, verbose=0)
        assert len(history.history["loss"]) == 2 and pipe.execution.mark.epoch == 1
    with training(files) as pipe:
        assert int(dataset(pipe, last_batch_policy="drop").cardinality()) == 3


def test_a_function_of_tensorflow_loops_over_a_dataset(files: list[str]) -> None:
    with training(files, shuffle=False) as pipe:
        data = dataset(pipe)

        @tf.function
        def total() -> Any:
            result = tf.constant(0, tf.int64)
            for _, labels in data:
                result += tf.reduce_sum(labels)
            return result

        assert int(total()) == sum(range(ROWS))


def test_a_state_is_that_of_the_last_taken_batch(files: list[str]) -> None:
    with training(files) as pipe, training(files) as other:
        loader = Loader(pipe)
        whole = [labels.numpy().tolist() for _, labels in loader]
        loader.set_epoch(0)
        batches = iter(dataset(loader))
        next(batches), next(batches)
        state = json.loads(json.dumps(loader.state_dict()))
        del batches
        rest = Loader(other)
        rest.load_state_dict(state)
        assert [labels.numpy().tolist() for _, labels in dataset(rest)] == whole[2:]


@pytest.mark.parametrize("rank", [1, 2, 3])
def test_ragged_rows(rank: int) -> None:
    with ragged(rank) as pipe, ragged(rank) as plain:
        want = [np.asarray(r) for r in plain.run()[0]]
        for batch in (next(iter(Loader(pipe))), next(iter(dataset(pipe)))):
            assert isinstance(batch, tf.RaggedTensor) and batch.ragged_rank == max(1, rank - 1)
            for row, array in zip(batch, want, strict=True):
                dense = row.to_tensor() if isinstance(row, tf.RaggedTensor) else row
                np.testing.assert_array_equal(dense, array)


def test_rows_that_happen_to_agree_keep_the_structure() -> None:
    @pipeline_def(batch_size=2, num_threads=1, device_id=None)
    def equal() -> Any:
        return fn.external_source(source=lambda: [np.ones((2, 3), np.float32)] * 2, dtype=types.FLOAT, ndim=2)

    with equal() as pipe:
        batch = next(iter(dataset(pipe, size=1)))
        assert isinstance(batch, tf.RaggedTensor) and batch.shape.as_list() == [2, None, 3]


def test_rows_that_a_ragged_tensor_cannot_hold_are_refused() -> None:
    @pipeline_def(batch_size=2, num_threads=1, device_id=None)
    def odd() -> Any:
        rows = [np.ones((2, 3), np.float32), np.ones((2, 4), np.float32)]
        return fn.external_source(source=lambda: rows, dtype=types.FLOAT, ndim=2)

    with odd() as pipe, pytest.raises(DataError, match=r"\[3, 4\]"):
        next(iter(Loader(pipe, size=1)))


def test_unknown_types_are_refused() -> None:
    @pipeline_def(batch_size=2, num_threads=1, device_id=None)
    def unknown() -> Any:
        return fn.external_source(source=lambda: [np.ones((2, 3), np.float32)] * 2)

    with unknown() as pipe, pytest.raises(ArgumentError, match="before the first batch"):
        dataset(pipe, size=1)


@pytest.mark.parametrize("data", [None, 3, "x", [1]])
def test_wrong_arguments(data: Any) -> None:
    with pytest.raises(ArgumentError, match="expected a Pipeline or a Loader"):
        dataset(data)


def test_an_error_of_a_row_reaches_the_loop(files: list[str], tmp_path: Path) -> None:
    bad = tmp_path / "bad.jpg"
    bad.write_bytes(Path(files[0]).read_bytes()[:300])

    with training([*files[:6], str(bad)], shuffle=False) as pipe, pytest.raises(tf.errors.OpError, match=r"bad\.jpg"):
        list(dataset(pipe))


def test_the_guide(tmp_path: Path) -> None:
    run_page("tensorflow", write_photographs(tmp_path / "photographs", per_class=16))


# ---- DALI's iterators ----


def dali_pipeline(files: list[str], **options: Any) -> Any:
    from stoker.dali import fn, pipeline_def

    @pipeline_def(batch_size=5, num_threads=2, device_id=None, seed=7)
    def pipe(device_id: int = 0, shard_id: int = 0, num_shards: int = 1) -> Any:
        jpegs, labels = fn.readers.file(files=files, name="Reader", shard_id=shard_id, num_shards=num_shards)
        images = fn.resize(fn.decoders.image(jpegs), size=(8, 8))
        return images, labels

    return pipe(**options)


def test_dalis_dataset(files: list[str]) -> None:
    from stoker.dali.plugin.tf import DALIDataset

    with dali_pipeline(files) as pipe:
        data = DALIDataset(
            pipeline=pipe, batch_size=5, output_shapes=((5, 8, 8, 3), (5, 1)), output_dtypes=(tf.uint8, tf.int32)
        )
        batches = list(data.take(5))  # beyond the epoch of 17 rows
        assert [x.shape.as_list() for x, _ in batches] == [[5, 8, 8, 3]] * 5
        rows = np.concatenate([y.numpy() for _, y in batches]).reshape(-1)
        assert rows.tolist() == [i % ROWS for i in range(25)]


@pytest.mark.parametrize(
    ("options", "text"),
    [
        ({"output_dtypes": tf.uint8}, "each of 2 outputs"),
        ({"batch_size": 3}, "batch size 5"),
        ({"other": 1}, "unknown argument `other`"),
        ({"pipeline": 3}, "expected a Pipeline"),
    ],
)
def test_what_dalis_dataset_refuses(files: list[str], options: dict[str, Any], text: str) -> None:
    from stoker.dali.plugin.tf import DALIDataset

    with dali_pipeline(files) as pipe:
        known = {"pipeline": pipe, "batch_size": 5, "output_dtypes": (tf.uint8, tf.int32)}
        with pytest.raises(ArgumentError, match=text):
            DALIDataset(**{**known, **options})
        wrong = DALIDataset(pipe, (tf.float32, tf.int32), batch_size=5)
        with pytest.raises(tf.errors.OpError, match="expected float32"):
            next(iter(wrong))
