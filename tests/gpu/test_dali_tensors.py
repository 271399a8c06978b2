# SPDX-License-Identifier: Apache-2.0
"""Tensors of ``stoker.dali`` in a GPU's memory: from and to torch, and copies."""

from __future__ import annotations

import ctypes
from typing import Any

import numpy as np
import pytest
import torch

from stoker import ArgumentError
from stoker.dali import fn, pipeline_def, types
from stoker.dali.backend import TensorCPU, TensorGPU, TensorListCPU, TensorListGPU

IMAGE = np.arange(2 * 300 * 400 * 3, dtype=np.int64).astype(np.uint8).reshape(2, 300, 400, 3)


def values(tensor: Any) -> Any:
    """Return a copy of the elements in host memory."""
    return np.asarray(tensor.as_cpu())


@pytest.mark.parametrize("exported", [lambda x: x, lambda x: x.__dlpack__(stream=1)], ids=["tensor", "capsule"])
def test_torchs_memory_is_shared_after_the_work_that_writes_it(exported: Any) -> None:
    stream = torch.cuda.Stream()
    with torch.cuda.stream(stream):
        x = torch.zeros(64, 1024, 1024, device="cuda")
        for _ in range(20):
            x += 1
        if exported(x) is not x:
            stream.synchronize()  # a capsule does not have the stream of its producer
        tensor = TensorGPU(exported(x), "HWC")
    assert (tensor.data_ptr(), tensor.dtype, tensor.layout()) == (x.data_ptr(), types.FLOAT, "HWC")
    assert (values(tensor) == 20).all()
    torch.from_dlpack(tensor)[0, 0, 0] = 7
    assert float(x[0, 0, 0]) == 7


def test_copies_between_host_and_gpu() -> None:
    rows = TensorListCPU(IMAGE, "HWC")._as_gpu()
    np.testing.assert_array_equal(values(rows), IMAGE)
    assert torch.from_dlpack(rows.as_tensor()).is_cuda
    assert rows.as_reshaped_tensor([600, 1200]).data_ptr() == rows.data_ptr()
    ragged = TensorListCPU([IMAGE[0], IMAGE[1, :100].copy()], "HWC")._as_gpu()
    np.testing.assert_array_equal(values(ragged[1]), IMAGE[1, :100])


@pytest.mark.parametrize("non_blocking", [False, True])
def test_a_copy_is_ordered_with_a_stream(non_blocking: bool) -> None:
    tensor, stream = TensorCPU(IMAGE)._as_gpu(), torch.cuda.Stream()
    with torch.cuda.stream(stream):
        for _ in range(20):
            to = torch.zeros(IMAGE.shape, dtype=torch.uint8, device="cuda")  # work before the copy
            tensor.copy_to_external(ctypes.c_void_p(to.data_ptr()), stream, non_blocking)
            after = to.clone()
            np.testing.assert_array_equal(after.cpu().numpy(), IMAGE)
    whole = torch.zeros(IMAGE.shape, dtype=torch.uint8, device="cuda")
    torch.cuda.synchronize()
    TensorListGPU([tensor]).copy_to_external(whole.data_ptr())
    np.testing.assert_array_equal(whole.cpu().numpy(), IMAGE)


def test_lists_of_tensors() -> None:
    first, second = (torch.from_numpy(x).cuda() for x in IMAGE)
    same = TensorListGPU.from_dlpack_list([first, second], "HWC")
    np.testing.assert_array_equal(values(same), IMAGE)
    ragged = TensorListGPU([first, second[:10].contiguous()])
    assert ragged.shape() == [(300, 400, 3), (10, 400, 3)]
    np.testing.assert_array_equal(values(TensorListGPU.broadcast(same[1], 3)), np.stack([IMAGE[1]] * 3))
    with pytest.raises(ArgumentError, match="contiguous"):
        TensorGPU(first[:, ::2])


def test_outputs_of_pipelines_change_in_place() -> None:
    @pipeline_def(batch_size=2, num_threads=1, device_id=0)
    def pipe() -> Any:
        return fn.external_source(source=lambda: list(IMAGE), layout="HWC").gpu() + types.Constant(1, dtype=types.UINT8)

    running = pipe()
    running.build()
    (output,) = running.run()
    output.reinterpret(types.INT8)
    row = output[1]
    assert not row.squeeze()
    np.testing.assert_array_equal(values(row), (IMAGE[1] + np.uint8(1)).view(np.int8))
    running.close()
