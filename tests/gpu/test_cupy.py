# SPDX-License-Identifier: Apache-2.0
"""``stoker.cupy.Loader`` on a GPU, if CuPy is installed."""

from __future__ import annotations

import numpy as np
import pytest

from stoker import ArgumentError, types
from tests.gpu.scaled import BATCHES, ROWS, images, numbered, want

cupy = pytest.importorskip("cupy", reason="the arrays are CuPy's: `pip install cupy-cuda13x`", exc_type=ImportError)


def test_batches_are_right_and_stay() -> None:
    from stoker.cupy import Loader

    with numbered() as pipe, cupy.cuda.Stream(non_blocking=True) as stream:
        kept = list(Loader(pipe, ["image", "on_gpu", "copied"]))
        assert len(kept) == BATCHES
        stream.synchronize()
        for seed, batch in enumerate(kept):
            assert all(isinstance(x, cupy.ndarray) for x in batch.values())
            np.testing.assert_array_equal(cupy.asnumpy(batch["image"]), want(images(seed)))
            for name in ("on_gpu", "copied"):
                assert batch[name].dtype == cupy.int64 and batch[name].tolist() == list(range(seed, seed + ROWS))


def test_batches_share_the_engines_memory() -> None:
    from stoker.cupy import Loader

    with numbered() as pipe:
        delivered = pipe.next("stop")
        image, _, _ = Loader(pipe)._arrays(delivered, pipe.execution.plan)
        assert image.data.ptr == cupy.from_dlpack(delivered.outputs[0]).data.ptr


def test_memory_that_queued_work_reads_is_not_overwritten() -> None:
    """A consumer drops a batch while its work on it is still queued on its stream."""
    from stoker.cupy import Loader

    weight = cupy.ones((4096, 4096), cupy.float32)
    sums = []
    with numbered() as pipe, cupy.cuda.Stream(non_blocking=True):
        for image, _, _ in Loader(pipe):
            for _ in range(4):
                weight = weight @ weight * 1e-4  # the next read is delayed
            sums.append(image.astype(cupy.float64).sum())
            del image
        for seed, got in enumerate(sums):
            assert float(got) == want(images(seed)).astype(np.float64).sum()


def test_bfloat16_is_refused() -> None:
    from stoker.cupy import Loader

    with numbered(types.BFLOAT16) as pipe, pytest.raises(ArgumentError, match="that CuPy has"):
        next(iter(Loader(pipe)))
