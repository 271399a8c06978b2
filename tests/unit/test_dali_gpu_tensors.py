# SPDX-License-Identifier: Apache-2.0
"""Tensors of ``stoker.dali`` in a GPU's memory, on the null device, whose memory is the host's."""

from __future__ import annotations

import ctypes
from typing import Any

import numpy as np
import pytest

from stoker import ArgumentError, UnsupportedError
from stoker.contract.types import DType
from stoker.dali import types
from stoker.dali.backend import TensorCPU, TensorGPU, TensorListCPU, TensorListGPU
from stoker.frontends.dali import gpu_memory
from stoker.native import _native

IMAGE = np.arange(24, dtype=np.uint8).reshape(2, 1, 4, 3)


@pytest.fixture(autouse=True)
def null(monkeypatch: pytest.MonkeyPatch) -> Any:
    """Use the null device as GPU 0."""
    device = _native.gpu.open_null()
    monkeypatch.setattr(gpu_memory, "open_device", lambda number: device)
    return device


class Foreign:
    """Array of another library: memory with CUDA's array interface."""

    def __init__(self, array: np.ndarray) -> None:
        self.array = array

    @property
    def __cuda_array_interface__(self) -> dict[str, Any]:
        shown = self.array.__array_interface__
        return {"shape": shown["shape"], "typestr": shown["typestr"], "data": shown["data"], "version": 3,
                "strides": shown["strides"], "stream": 1}  # fmt: skip


def values(tensor: Any) -> Any:
    """Return a copy of the elements in host memory."""
    return np.asarray(tensor.as_cpu())


def test_a_copy_in_a_gpus_memory_and_back() -> None:
    tensor = TensorCPU(IMAGE, "FHWC")._as_gpu()
    assert isinstance(tensor, TensorGPU)
    assert (tensor.shape(), tensor.dtype, tensor.ndim) == ([2, 1, 4, 3], types.UINT8, 4)
    assert (tensor.layout(), tensor.stream) == ("FHWC", None)
    assert tensor.data_ptr() != IMAGE.ctypes.data
    np.testing.assert_array_equal(values(tensor), IMAGE)
    assert str(tensor).startswith("TensorGPU(") and 'device="gpu"' in repr(tensor)
    empty = TensorCPU(np.zeros((0, 3), np.float32))._as_gpu()
    assert values(empty).shape == (0, 3)


def test_axes_and_types_change_in_place() -> None:
    tensor = TensorCPU(IMAGE, "FHWC")._as_gpu()
    before = tensor.data_ptr()
    assert not tensor.squeeze(0)
    assert tensor.squeeze()
    assert (tensor.shape(), tensor.layout()) == ([2, 4, 3], "FWC")
    tensor.reinterpret(types.INT8)
    assert (tensor.dtype, tensor.data_ptr()) == (types.INT8, before)
    np.testing.assert_array_equal(values(tensor), IMAGE[:, 0].view(np.int8))
    tensor.set_layout("HWC")
    assert tensor.layout() == "HWC"
    with pytest.raises(ArgumentError, match="expected a type of 1 bytes, got float32 of 4"):
        tensor.reinterpret(types.FLOAT)
    with pytest.raises(ArgumentError, match="expected an axis of a tensor with 3 axes, got 3"):
        tensor.squeeze(3)


@pytest.mark.parametrize("stream", [None, 1, ctypes.c_void_p(1)])
@pytest.mark.parametrize("non_blocking", [False, True])
def test_elements_are_copied_to_an_address(stream: Any, non_blocking: bool) -> None:
    tensor, to = TensorCPU(IMAGE)._as_gpu(), np.zeros_like(IMAGE)
    tensor.copy_to_external(ctypes.c_void_p(to.ctypes.data), stream, non_blocking)
    np.testing.assert_array_equal(to, IMAGE)
    rows = TensorListGPU([TensorCPU(IMAGE[:1])._as_gpu(), tensor])
    together = np.zeros(36, np.uint8)
    rows.copy_to_external(together.ctypes.data, stream, non_blocking)
    np.testing.assert_array_equal(together, [*IMAGE[:1].ravel(), *IMAGE.ravel()])


def test_memory_of_other_libraries_is_shared_and_kept() -> None:
    array = IMAGE.copy()
    tensor = TensorGPU(Foreign(array), "FHWC")
    assert tensor.data_ptr() == array.ctypes.data
    array[0, 0, 0, 0] = 99
    wanted = array.copy()
    again = TensorGPU(tensor)
    assert again.layout() == "FHWC"
    del array, tensor
    np.testing.assert_array_equal(values(again), wanted)


def test_lists_without_rows() -> None:
    made = TensorListCPU(IMAGE, "HWC")._as_gpu()
    row = made[1]
    made.reset()
    for empty in (made, TensorListGPU([]), TensorListGPU(made), TensorListCPU([])._as_gpu()):
        assert (len(empty), empty.shape(), empty.dtype, empty.ndim, empty.layout()) == (0, [], types.NO_TYPE, 0, "")
        assert empty.is_dense_tensor() and empty.data_ptr() == 0
        assert empty.as_cpu().dtype == types.NO_TYPE and "[]," in str(empty)
        with pytest.raises(IndexError):
            empty[0]
    np.testing.assert_array_equal(values(row), IMAGE[1])
    named = TensorListGPU([], "HW", device_id=2)
    assert (TensorListGPU([]).device_id(), named.device_id()) == (0, 2)
    assert (named.ndim, named.layout(), named.dtype) == (2, "HW", types.NO_TYPE)
    typed = TensorListCPU(np.zeros((0, 3), np.float64))._as_gpu()
    assert (len(typed), typed.dtype, typed.ndim, typed.as_tensor().shape()) == (0, types.FLOAT64, 1, [0, 3])


@pytest.mark.parametrize(
    ("made", "text"),
    [
        (lambda: TensorGPU(Foreign(IMAGE[:, :, ::2])), "expected contiguous elements, got strides"),
        (lambda: TensorGPU(Foreign(IMAGE), "HWC"), "expected the names of 4 axes"),
        (lambda: TensorGPU(IMAGE), "in a GPU's memory"),
        (lambda: TensorListGPU([]).as_tensor(), "got an empty list without a type"),
        (lambda: TensorListGPU([]).reinterpret(types.INT8), "got an empty list without a type"),
        (lambda: TensorListGPU(Foreign(np.float32(1).reshape(()))), "rows on its first axis"),
        (lambda: TensorListGPU([Foreign(IMAGE), Foreign(IMAGE[0])]), "rows of one type and rank"),
        (lambda: TensorListGPU.from_dlpack_list([Foreign(IMAGE)]), "expected objects with `__dlpack__`"),
        (lambda: TensorListCPU(IMAGE)._as_gpu().as_reshaped_tensor([5]), "expected a shape of 24 elements"),
        (lambda: TensorListCPU(IMAGE)._as_gpu().as_reshaped_tensor([-2, -12]), "expected a shape of 24 elements"),
        (lambda: TensorListGPU([Foreign(IMAGE[:1]), Foreign(IMAGE)]).as_tensor(), "expected rows of one shape"),
    ],
)
def test_wrong_arguments_are_refused(made: Any, text: str) -> None:
    with pytest.raises(ArgumentError, match=text) as raised:
        made()
    assert isinstance(raised.value, RuntimeError)  # which scripts for DALI catch


def test_lists() -> None:
    rows = TensorListCPU(IMAGE, "HWC")._as_gpu()
    assert isinstance(rows, TensorListGPU)
    assert (len(rows), rows.layout(), rows.dtype, rows.is_dense_tensor()) == (2, "HWC", types.UINT8, True)
    np.testing.assert_array_equal(values(rows), IMAGE)
    np.testing.assert_array_equal(values(rows[1]), IMAGE[1])
    np.testing.assert_array_equal(values(rows.as_tensor()), IMAGE)
    assert rows.as_tensor().layout() == "NHWC"
    flat = rows.as_reshaped_tensor([4, 6])
    assert flat.data_ptr() == rows.data_ptr()
    np.testing.assert_array_equal(values(flat), IMAGE.reshape(4, 6))
    rows.reinterpret(types.INT8)
    np.testing.assert_array_equal(values(rows), IMAGE.view(np.int8))
    copied = TensorListGPU(rows, "CHW")
    assert (copied.layout(), rows.layout()) == ("CHW", "HWC")
    with pytest.raises(UnsupportedError, match="got one in host memory"):
        TensorListGPU(TensorListCPU(IMAGE).batch)


def test_lists_of_tensors_and_arrays() -> None:
    one = TensorCPU(IMAGE[0], "HWC")._as_gpu()
    same = TensorListGPU([one, Foreign(IMAGE[1])])
    assert (same.is_dense_tensor(), same.layout()) == (True, "HWC")
    np.testing.assert_array_equal(values(same), IMAGE)
    ragged = TensorListGPU([Foreign(IMAGE[0]), Foreign(IMAGE[1, :, :2].copy())], "HWC")
    assert (ragged.is_dense_tensor(), ragged.shape()) == (False, [(1, 4, 3), (1, 2, 3)])
    ragged.reinterpret(types.INT8)
    np.testing.assert_array_equal(values(ragged[1]), IMAGE[1, :, :2].view(np.int8))
    whole = TensorListGPU(Foreign(IMAGE), "HWC")
    assert whole.data_ptr() == IMAGE.ctypes.data
    np.testing.assert_array_equal(values(TensorListGPU.broadcast(one, 3)), np.stack([IMAGE[0]] * 3))
    back = TensorListCPU([IMAGE[0], IMAGE[1, :, :2]], "HWC")._as_gpu().as_cpu()
    np.testing.assert_array_equal(back.at(1), IMAGE[1, :, :2])


def test_native_arrays_check_what_they_are_given(null: Any) -> None:
    array = _native.gpu.upload(null, IMAGE, int(DType.UINT8))
    for wrong in (
        lambda: array.view(int(DType.UINT8), [5]),
        lambda: array.view(99, [24]),
        lambda: array.view(int(DType.UINT8), [-4, -6]),
        lambda: array.view(int(DType.UINT8), [1] * 9),
        lambda: array.view(int(DType.UINT8), [2**62, 2**62, 24]),
        lambda: array.copy_to(0, None, True),
        lambda: _native.gpu.upload(null, IMAGE, int(DType.FLOAT)),
        lambda: _native.gpu.wrap(null, 0, int(DType.UINT8), [3], IMAGE, None),
        lambda: _native.gpu.stack([]),
        lambda: _native.gpu.stack([array, array.view(int(DType.UINT8), [24])]),
    ):
        with pytest.raises(ValueError, match="expected"):
            wrong()
