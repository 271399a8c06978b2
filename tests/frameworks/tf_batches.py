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
from tests.frameworks.batches import DTYPES, check_same_training, expected, ragged, run_page, typed
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


def test_the_same_training_as_in_numpy(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    check_same_training("tf", tmp_path, monkeypatch)


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


def of_inputs(batch_size: int = 4, **options: Any) -> Any:
    """Return a pipeline of two sources that are fed, and of random numbers."""
    from stoker.dali import fn, pipeline_def

    @pipeline_def(batch_size=batch_size, num_threads=2, device_id=None, seed=7)
    def pipe() -> Any:
        images = fn.external_source(name="images", **options)
        numbers = fn.external_source(name="numbers")
        flipped = fn.flip(images, horizontal=fn.random.coin_flip())
        return flipped, numbers

    return pipe()


def rows_of(count: int) -> Any:
    return np.arange(count * 6 * 4 * 3, dtype=np.float32).reshape(count, 6, 4, 3)


OF_INPUTS: dict[str, Any] = {"batch_size": 4, "output_dtypes": (tf.float32, tf.int64)}


def test_dalis_dataset_of_rows_and_of_batches() -> None:
    from stoker.dali.plugin.tf import dataset_inputs_compatible_tensorflow, experimental

    assert dataset_inputs_compatible_tensorflow()
    images, numbers = rows_of(10), np.arange(10, dtype=np.int64)
    by_rows = {
        "images": experimental.Input(tf.data.Dataset.from_tensor_slices(images), layout="HWC"),
        "numbers": tf.data.Dataset.from_tensor_slices(numbers),
    }
    by_batches = {
        "images": experimental.Input(tf.data.Dataset.from_tensor_slices(images).batch(4), layout="HWC", batch=True),
        "numbers": experimental.Input(tf.data.Dataset.from_tensor_slices(numbers).batch(4), batch=True),
    }
    found = []
    for inputs in (by_rows, by_batches):
        with of_inputs() as pipe, of_inputs() as plain:
            data = experimental.DALIDatasetWithInputs(pipe, input_datasets=inputs, **OF_INPUTS)
            first = [(x.numpy(), y.numpy()) for x, y in data]
            for other in (iter(data), data):  # an iteration that is left, and a whole one
                again = [(x.numpy(), y.numpy()) for x, y in (other if other is data else [next(other)])]
                for (x, y), (x_again, y_again) in zip(first, again, strict=False):
                    np.testing.assert_array_equal(x, x_again)
                    np.testing.assert_array_equal(y, y_again)
            assert len(again) == len(first)
            for start, (x, y) in zip(range(0, 10, 4), first, strict=False):
                plain.feed_input("images", images[start : start + 4], "HWC")
                plain.feed_input("numbers", numbers[start : start + 4])
                want_x, want_y = plain.run()
                np.testing.assert_array_equal(x, want_x.as_array())
                np.testing.assert_array_equal(y, want_y.as_array())
            found.append([len(y) for _, y in first])
    assert found == [[4, 4], [4, 4, 2]], "rows that do not fill a batch are left out, batches are not"


def test_dalis_dataset_of_files_and_of_rows_of_different_shapes(files: list[str]) -> None:
    from stoker.dali import fn, pipeline_def
    from stoker.dali.plugin.tf.experimental import DALIDatasetWithInputs

    @pipeline_def(batch_size=4, num_threads=2, device_id=None)
    def pipe() -> Any:
        return fn.resize(fn.decoders.image(fn.external_source(name="files")), size=(8, 8))

    with pipe() as made:
        texts = tf.data.Dataset.from_tensor_slices(files).map(tf.io.read_file)
        data = DALIDatasetWithInputs(made, tf.uint8, (4, 8, 8, 3), batch_size=4, input_datasets={"files": texts})
        batches = list(data)
        assert [x.shape.as_list() for x in batches] == [[4, 8, 8, 3]] * (ROWS // 4)
        with pipe() as plain:
            plain.feed_input("files", [Path(f).read_bytes() for f in files[:4]])
            np.testing.assert_array_equal(batches[0], plain.run()[0].as_array())


def test_dalis_dataset_with_a_source_of_the_pipeline() -> None:
    from stoker.dali import fn, pipeline_def
    from stoker.dali.plugin.tf.experimental import DALIDatasetWithInputs

    @pipeline_def(batch_size=2, num_threads=1, device_id=None)
    def pipe() -> Any:
        own = fn.external_source(source=lambda info: np.int64(info.idx_in_epoch), batch=False)
        return fn.external_source(name="x"), own

    with pipe() as made:
        numbers = tf.data.Dataset.range(7)
        data = DALIDatasetWithInputs(made, (tf.int64, tf.int64), batch_size=2, input_datasets={"x": numbers})
        for _ in range(2):
            assert [(x.numpy().tolist(), y.numpy().tolist()) for x, y in data] == [([i, i + 1],) * 2 for i in (0, 2, 4)]


@pytest.mark.parametrize(
    ("inputs", "text"),
    [
        (None, r"for each `external_source` without `source`"),
        ({"images": tf.data.Dataset.range(3)}, r"got \['images'\]"),
        ({"images": tf.data.Dataset.range(3), "numbers": [1]}, "whose elements are single tensors"),
        ({"images": tf.data.Dataset.range(3), "numbers": tf.data.Dataset.zip((tf.data.Dataset.range(3),))}, "single"),
        ([1], "a dict of names"),
    ],
)
def test_wrong_inputs_of_dalis_dataset(inputs: Any, text: str) -> None:
    from stoker.dali.plugin.tf.experimental import DALIDatasetWithInputs

    with of_inputs() as pipe, pytest.raises(ArgumentError, match=text):
        DALIDatasetWithInputs(pipe, input_datasets=inputs, **OF_INPUTS)


def test_inputs_of_the_plain_dataset_are_refused() -> None:
    from stoker import UnsupportedError
    from stoker.dali.plugin.tf import DALIDataset

    with of_inputs() as pipe, pytest.raises(UnsupportedError, match=r"experimental\.DALIDatasetWithInputs"):
        DALIDataset(pipe, input_datasets={"images": tf.data.Dataset.range(3)}, **OF_INPUTS)


# ---- DALI's operator ----


@pipeline_def(batch_size=4, num_threads=1, device_id=None, seed=7)
def counted() -> Any:
    """Return numbers that differ in every batch, as rows of one shape."""
    return fn.random.uniform(range=(0.0, 1.0), shape=[3]), fn.random.uniform(range=(0.0, 9.0), dtype=types.INT32)


COUNTED: dict[str, Any] = {"shapes": [(4, 3), ()], "dtypes": [tf.float32, tf.int32], "batch_size": 4}


def plain_batches(count: int) -> list[list[Any]]:
    with counted() as pipe:
        return [[x.as_array() for x in pipe.run()] for _ in range(count)]


@pytest.mark.parametrize("way", ["eager", "function", "session"])
def test_dalis_operator(way: str) -> None:
    from stoker.dali.plugin.tf import DALIIterator

    with counted() as pipe:
        if way == "eager":
            found = [[x.numpy() for x in DALIIterator()(pipe, **COUNTED)] for _ in range(3)]
        elif way == "function":
            step = tf.function(lambda: DALIIterator()(pipe, **COUNTED))
            found = [[x.numpy() for x in step()] for _ in range(3)]
        else:
            with tf.Graph().as_default():
                tensors = DALIIterator()(pipe, **COUNTED)
                assert tensors[0].shape.as_list() == [4, 3]
                with tf.compat.v1.Session() as session:
                    found = [session.run(tensors) for _ in range(3)]
    for got, want in zip(found, plain_batches(3), strict=True):
        for x, y in zip(got, want, strict=True):
            np.testing.assert_array_equal(x, y)


def test_dalis_operator_of_a_text() -> None:
    from stoker.dali.plugin.tf import DALIIterator, DALIRawIterator, serialize_pipeline

    with counted() as pipe:
        text = serialize_pipeline(pipe)
    by_wrapper = [DALIIterator()(serialized_pipeline=text, **COUNTED) for _ in range(2)]
    raw = DALIRawIterator()(serialized_pipeline=text, **COUNTED)  # eager calls with one text continue
    for got, again in zip([*by_wrapper, raw], by_wrapper, strict=False):
        assert got[0].shape == again[0].shape == (4, 3)
    assert not np.array_equal(by_wrapper[0][0], by_wrapper[1][0])


def test_sparse_outputs_of_dalis_operator() -> None:
    from stoker.dali.plugin.tf import DALIIterator, DALIRawIterator

    with ragged(rank=2) as pipe, ragged(rank=2) as plain:
        (sparse,) = DALIIterator()(pipe, sparse=[True], shapes=[(3, 1)], dtypes=[tf.float32])
        rows = list(plain.run()[0])
        dense = tf.sparse.to_dense(sparse).numpy()
        assert dense.shape == (3, 5, 4)
        for got, row in zip(dense, rows, strict=True):
            np.testing.assert_array_equal(got[: len(row)], row)
            assert not got[len(row) :].any()
        indices, values, extents = DALIRawIterator()(
            serialized_pipeline=numbered_text(),
            sparse=[True],
            shapes=[(2, 1)] * 3,
            dtypes=[tf.int64, tf.int32, tf.int64],
        )
        assert indices.numpy().tolist() == [[0], [1]] and extents.numpy().tolist() == [2] and len(values) == 2


def numbered_text() -> str:
    @pipeline_def(batch_size=2, num_threads=1, device_id=None)
    def numbers() -> Any:
        return fn.random.uniform(range=(0.0, 9.0), dtype=types.INT32)

    with numbers() as pipe:
        return pipe.serialize()


def test_the_end_of_a_source_ends_dalis_operator() -> None:
    from stoker.dali.plugin.tf import DALIIterator

    with ragged() as pipe:
        for _ in range(2):
            DALIIterator()(pipe, sparse=[True], dtypes=[tf.float32])
        with pytest.raises(tf.errors.OutOfRangeError, match="source has ended"):
            DALIIterator()(pipe, sparse=[True], dtypes=[tf.float32])


@pytest.mark.parametrize(
    ("options", "text"),
    [
        ({"batch_size": 3}, "batch size 4, got 3"),
        ({"dtypes": [tf.float32]}, "each of 2 outputs"),
        ({"dtypes": [tf.float32, tf.uint8]}, "expected uint8 as in the declared types"),
        ({"shapes": [(4, 5), ()]}, r"of the shape \(4, 5\)"),
        ({"other": 1}, "unknown argument `other`"),
        ({"pipeline": 3}, "expected a Pipeline"),
        ({"serialized_pipeline": "x"}, "either `pipeline` or"),
    ],
)
def test_what_dalis_operator_refuses(options: dict[str, Any], text: str) -> None:
    from stoker.dali.plugin.tf import DALIIterator

    with counted() as pipe, pytest.raises(ArgumentError, match=text):
        DALIIterator()(**{"pipeline": pipe, **COUNTED, **options})


def test_rows_of_different_shapes_need_a_sparse_output_of_dalis_operator() -> None:
    from stoker.dali.plugin.tf import DALIIterator, dataset_options

    with ragged() as pipe, pytest.raises(DataError, match="or make it `sparse`"):
        DALIIterator()(pipe, dtypes=[tf.float32])
    assert dataset_options().autotune.enabled is False
