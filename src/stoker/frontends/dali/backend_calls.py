# SPDX-License-Identifier: Apache-2.0
"""Functions of ``nvidia.dali.backend`` about CUDA, capsules, libraries and versions, under DALI's names."""

from __future__ import annotations

import ctypes
import enum
from typing import Any, NoReturn

from ...contract.errors import UnsupportedError
from ...contract.text import brief
from ...native import _native
from .errors import raises_as_dali

_CAPSULE = b"dltensor"
_DEVICE_OFFSET = 8  # of DLTensor's `device`, whose type comes first, after a pointer


class DLDeviceType(enum.IntEnum):
    """Types of devices in DLPack, with its numbers."""

    kDLCPU = 1
    kDLCUDA = 2
    kDLCUDAHost = 3
    kDLOpenCL = 4
    kDLVulkan = 7
    kDLMetal = 8
    kDLVPI = 9
    kDLROCM = 10
    kDLROCMHost = 11
    kDLExtDev = 12
    kDLCUDAManaged = 13
    kDLOneAPI = 14
    kDLWebGPU = 15
    kDLHexagon = 16
    kDLMAIA = 17


def CheckDLPackCapsule(ptr: Any) -> tuple[bool, bool]:
    """Return whether an object is a DLPack capsule that no library has taken yet, and whether its data are on a GPU.

    Args:
        ptr: the object.
    """
    capsules = ctypes.pythonapi
    is_valid, pointer = capsules.PyCapsule_IsValid, capsules.PyCapsule_GetPointer
    is_valid.argtypes = pointer.argtypes = [ctypes.py_object, ctypes.c_char_p]
    is_valid.restype, pointer.restype = ctypes.c_int, ctypes.c_void_p
    if not is_valid(ptr, _CAPSULE):
        return False, False
    kind = ctypes.c_int32.from_address(pointer(ptr, _CAPSULE) + _DEVICE_OFFSET).value
    return True, kind == DLDeviceType.kDLCUDA


def GetCUDADeviceCount() -> int:
    """Return the number of CUDA GPUs that this process sees."""
    return int(_native.gpu.count_cuda())


def IsDriverInitialized() -> bool:
    """Return whether CUDA's driver is there and has a GPU."""
    return GetCUDADeviceCount() > 0


def GetCudaVersion() -> int:
    """Return the version of CUDA that the driver supports, such as 12040 for 12.4; 0 without a driver.

    DALI returns the version that it was built with. Stoker uses the driver and NVRTC, and was built with no CUDA.
    """
    try:
        driver = ctypes.CDLL("libcuda.so.1")
    except OSError:
        return 0
    version = ctypes.c_int(0)
    return version.value if driver.cuDriverGetVersion(ctypes.byref(version)) == 0 else 0


def GetCufftVersion() -> int:
    """Return -1: Stoker does not use cuFFT. DALI returns -1 where a library is missing."""
    return -1


def GetNppVersion() -> int:
    """Return -1: Stoker does not use NPP. DALI returns -1 where a library is missing."""
    return -1


def GetNvjpegVersion() -> int:
    """Return -1, as DALI 2 does. ``decoders.image`` loads nvJPEG only for the JPEG engines, on request."""
    return -1


def GetNvimgcodecVersion() -> int:
    """Return -1: Stoker does not use nvImageCodec. DALI returns -1 where a library is missing."""
    return -1


def GetOpenCVVersion() -> str:
    """Return an empty text: Stoker does not use OpenCV."""
    return ""


@raises_as_dali
def GetCUDACurrentDevice() -> int:
    """Return the number of the GPU that is current in the imperative mode.

    Raises:
        DeviceError: there is no GPU.
    """
    from .dynamic.devices import Device

    number = Device("gpu").device_id
    assert number is not None
    return number


@raises_as_dali
def GetCUDAStreamDevice(stream: Any) -> int:
    """Return the number of a stream's GPU, or of the current GPU if the stream does not know its own.

    Args:
        stream: an object with ``__cuda_stream__``, a stream of PyTorch's or CuPy's, or a handle.

    Raises:
        DeviceError: there is no GPU.
    """
    from .dynamic.streams import Stream

    number = Stream(stream=stream).device_id
    assert number is not None
    return number


@raises_as_dali
def CUDAStreamSynchronize(stream: Any) -> None:
    """Wait until all work that has been issued to a stream is done.

    Args:
        stream: an object with ``__cuda_stream__``, a stream of PyTorch's or CuPy's, or a handle.

    Raises:
        DeviceError: there is no GPU.
    """
    from .dynamic.streams import Stream

    Stream(stream=stream).synchronize()


def RestrictPinnedMemUsage() -> bool:
    """Return False: pinned memory is not restricted."""
    return False


def LoadDefaultPlugins() -> None:
    """Do nothing: Stoker has no plugins of its own to load."""


@raises_as_dali
def LoadLibrary(lib_path: str, global_symbols: bool = False, allow_fail: bool = False) -> NoReturn:
    """Raise UnsupportedError: a library for DALI cannot be loaded.

    Args:
        lib_path: the library.
        global_symbols: accepted without effect.
        allow_fail: accepted without effect.
    """
    _refuse_library("LoadLibrary", lib_path)


@raises_as_dali
def LoadDirectory(dir_path: str, global_symbols: bool = False, allow_fail: bool = False) -> NoReturn:
    """Raise UnsupportedError: libraries for DALI cannot be loaded.

    Args:
        dir_path: the folder.
        global_symbols: accepted without effect.
        allow_fail: accepted without effect.
    """
    _refuse_library("LoadDirectory", dir_path)


def _refuse_library(name: str, path: str) -> NoReturn:
    raise UnsupportedError(
        f"`{name}`: {brief(path, 400)} holds operators that were compiled for DALI, which are not loaded. Write the "
        "operator in Python (`stoker.Operator`, `stoker.register`) or use `fn.python_function`"
    )


def check_cuda_runtime() -> None:
    """Do nothing: DALI warns of missing CUDA libraries here, and Stoker where a pipeline needs them."""
