# SPDX-License-Identifier: Apache-2.0
"""A GPU's JPEG engines: finding NVIDIA's nvJPEG, which drives them, and opening it when a pipeline asks for them."""

from __future__ import annotations

from ..contract.errors import DeviceError
from ..native import _native

# Kernels that put the engines' pictures where they belong, and compare some with the exact decoder's.
SOURCES = tuple((f"stoker_nvjpeg_{name}", '#include "nvjpeg_place.cuh"\n') for name in ("place", "compare"))
_HINT = (
    'The engines are those of A100, H100, H200 and newer GPUs; without `gpu_backend="nvjpeg_hardware"` no library is '
    "needed, and the pixels are exact"
)


def find_library() -> str:
    """The path of nvJPEG's library: of the package nvidia-nvjpeg, of a CUDA toolkit, or where the loader finds it.

    Raises:
        DeviceError: it is nowhere.
    """
    try:
        from cuda.pathfinder import DynamicLibNotFoundError, load_nvidia_dynamic_lib
    except ImportError:
        return "libnvjpeg.so.13"  # the loader may know it
    try:
        return load_nvidia_dynamic_lib("nvjpeg").abs_path or "libnvjpeg.so.13"
    except (DynamicLibNotFoundError, RuntimeError) as error:
        raise DeviceError(
            f"expected nvJPEG's library for the GPU's JPEG engines, got: {error}. It is the extra `nvjpeg`: "
            f"`pip install 'nvidia-nvjpeg>=13,<14'`. {_HINT}"
        ) from error


def open_engines(device: _native.gpu.Device, account: _native.gpu.Account, smooth: bool) -> _native.gpu.JpegEngines:
    """The engines of ``device``; DeviceError, with nvJPEG's status, where they cannot be used.

    Args:
        account: where the memory is counted that nvJPEG takes of the device.
        smooth: interpolate chroma that is subsampled, instead of repeating it.
    """
    library = find_library()
    try:
        return _native.gpu.open_engines(device, account, library, smooth)
    except _native.gpu.DeviceFailure as failure:
        raise DeviceError(f"GPU {device.number} ({device.name}): {failure}, of {library}. {_HINT}") from failure
