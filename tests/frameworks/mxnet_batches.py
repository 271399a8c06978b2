# SPDX-License-Identifier: Apache-2.0
"""``stoker.mxnet`` with MXNet 1.9.1, which is archived and runs with NumPy 1: `make test-mxnet`."""

from __future__ import annotations

import ctypes
import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest

np.bool = np.bool_  # MXNet uses this name, which NumPy 1.24 removed
import mxnet as mx
from mxnet import autograd, gluon

from stoker import ArgumentError, DataError, fn, pipeline_def, types
from stoker.mxnet import Loader
from tests.frameworks.batches import DTYPES, expected, ragged, run_page, typed
from tests.idle_clock import HANG_S
from tests.photographs import write_photographs
from tests.run.pipelines import files_of, training

ROWS = 17
ABSENT = (types.BOOL, types.UINT16, types.UINT32, types.UINT64, types.INT16, types.BFLOAT16)
pytestmark = pytest.mark.leaks("MXNet's threads outlive the tests")


@pytest.fixture(scope="module")
def files(jpegs: Path) -> list[str]:
    return files_of(jpegs)[:ROWS]


def address(array: Any) -> int:
    """Return the address of an array's memory, as MXNet's C interface reports it."""
    found = ctypes.c_void_p()
    mx.base.check_call(mx.base._LIB.MXNDArrayGetData(array.handle, ctypes.byref(found)))
    return int(found.value or 0)


@pytest.mark.parametrize("dtype", [d for d in DTYPES if d not in ABSENT], ids=str)
def test_types_and_values(dtype: Any) -> None:
    with typed(dtype) as pipe:
        got = next(iter(Loader(pipe, size=1)))
        assert isinstance(got, mx.nd.NDArray) and got.dtype == dtype.numpy and got.shape == (4, 3, 5)
        np.testing.assert_array_equal(got.asnumpy(), expected(dtype))


@pytest.mark.parametrize("dtype", ABSENT, ids=str)
def test_types_that_mxnet_lacks_are_refused(dtype: Any) -> None:
    with typed(dtype) as pipe, pytest.raises(ArgumentError, match=rf"that MXNet has, got an output of {dtype}. Add"):
        next(iter(Loader(pipe, size=1)))


def test_batches_share_the_engines_memory_and_stay(files: list[str]) -> None:
    with training(files) as pipe, training(files) as plain:
        kept = [images.asnumpy().copy() for images, _ in Loader(pipe)]
        arrays = [images for images, _ in Loader(plain)]
        assert len([b for _ in range(4) for b in Loader(plain)]) == 16  # later batches use other memory
        for first, second in zip(kept, arrays, strict=True):
            np.testing.assert_array_equal(first, second.asnumpy())
    with training(files) as pipe:
        delivered = pipe.next("stop")
        images, _ = Loader(pipe)._arrays(delivered, pipe.execution.plan)
        assert address(images) == delivered.outputs[0].ctypes.data


def test_work_that_mxnet_has_queued_keeps_the_memory(files: list[str]) -> None:
    """MXNet's operators run on its own threads, after the script has dropped a batch."""
    with training(files, size=128) as pipe, training(files, size=128) as plain:
        sums = []
        for images, _ in Loader(pipe):
            sums.append(images.sum(axis=(1, 2, 3)))
            del images
        for got, (images, _) in zip(sums, Loader(plain), strict=True):
            np.testing.assert_array_equal(got.asnumpy(), images.sum(axis=(1, 2, 3)).asnumpy())


def test_labels_are_int64_and_outputs_have_names(files: list[str]) -> None:
    with training(files, shuffle=False) as pipe:
        labels = np.concatenate([b["label"].asnumpy() for b in Loader(pipe, ["image", "label"])])
        assert labels.dtype == np.int64 and labels.tolist() == list(range(ROWS))


def test_rows_of_different_shapes_are_lists() -> None:
    with ragged() as pipe:
        rows = next(iter(Loader(pipe)))
        assert [r.shape for r in rows] == [(2, 3, 4), (1, 5, 4), (3, 1, 4)]
        np.testing.assert_array_equal(rows[1].asnumpy().reshape(-1), np.arange(20))


def test_outputs_without_elements_are_refused() -> None:
    @pipeline_def(batch_size=2, num_threads=1, device_id=None)
    def empty() -> Any:
        return fn.external_source(source=lambda: [np.ones((0, 4), np.float32)] * 2, dtype=types.FLOAT, ndim=2)

    with empty() as pipe, pytest.raises(DataError, match=r"\(2, 0, 4\)"):
        next(iter(Loader(pipe, size=1)))


def test_a_state_continues_in_the_middle(files: list[str]) -> None:
    with training(files) as pipe, training(files) as other:
        loader = Loader(pipe)
        whole = [labels.asnumpy().tolist() for _, labels in loader]
        loader.set_epoch(0)
        next(iter(loader))
        rest = Loader(other)
        rest.load_state_dict(json.loads(json.dumps(loader.state_dict())))
        assert [labels.asnumpy().tolist() for _, labels in rest] == whole[1:]


def test_a_model_trains(files: list[str]) -> None:
    model = gluon.nn.Dense(ROWS)
    model.initialize()
    trainer = gluon.Trainer(model.collect_params(), "sgd", {"learning_rate": 1e-3})
    loss = gluon.loss.SoftmaxCrossEntropyLoss()
    with training(files) as pipe:
        for images, labels in Loader(pipe):
            with autograd.record():
                value = loss(model(images), labels)
            value.backward()
            trainer.step(len(labels))
        assert np.isfinite(value.mean().asscalar())


def test_without_the_name_that_numpy_removed_the_import_says_what_to_do() -> None:
    done = subprocess.run(
        [sys.executable, "-c", "import stoker.mxnet"], capture_output=True, text=True, timeout=HANG_S, check=False
    )
    assert done.returncode == 1
    assert "ImportError: `stoker.mxnet`: expected MXNet 1.9.1 with NumPy 1" in done.stderr
    assert "numpy.bool = numpy.bool_" in done.stderr


def test_the_guide(tmp_path: Path) -> None:
    run_page("mxnet", write_photographs(tmp_path / "photographs", per_class=16))
