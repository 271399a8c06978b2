# SPDX-License-Identifier: Apache-2.0
"""A GPU's JPEG engines: finds NVIDIA's nvJPEG, which drives them, and opens it for pipelines that opt in."""

from __future__ import annotations

from ...contract.errors import DeviceError
from ...contract.step import Sources
from ...device.cuda_library import find_cuda_library
from ...native import _native

_PARTS = ("place", "compare")


def sources_for(suffix: str) -> Sources:
    """Return the kernels that copy the engines' pictures to outputs, and compare some with the exact decoder's.

    Args:
        suffix: of the output's element type.
    """
    text = f'#include "device/nvjpeg_place{suffix}.cuh"\n'
    return tuple((f"stoker_nvjpeg_{name}{suffix}", text) for name in _PARTS)


_HINT = (
    'The engines are those of A100, H100, H200 and newer GPUs; without `gpu_backend="nvjpeg_hardware"` no library is '
    "needed, and the pixels are exact"
)


def find_library() -> str:
    """Return the path of nvJPEG's library: from the package nvidia-nvjpeg, a CUDA toolkit, or the loader's paths.

    Raises:
        DeviceError: the library is not found.
    """
    return find_cuda_library(
        "nvjpeg", "libnvjpeg.so.13", "nvJPEG's library for the GPU's JPEG engines",
        f"It is the extra `nvjpeg`: `pip install 'nvidia-nvjpeg>=13,<14'`. {_HINT}",
    )  # fmt: skip


def open_engines(device: _native.gpu.Device, quota: _native.gpu.MemoryQuota, smooth: bool) -> _native.gpu.JpegEngines:
    """Open the engines of ``device``.

    Args:
        quota: accounting of the GPU memory that nvJPEG takes.
        smooth: interpolate subsampled chroma, instead of repeating it.

    Raises:
        DeviceError: the engines cannot be used; the text has nvJPEG's status.
    """
    library = find_library()
    try:
        return _native.gpu.open_engines(device, quota, library, smooth)
    except _native.gpu.DeviceFailure as failure:
        raise DeviceError(f"GPU {device.number} ({device.name}): {failure}, of {library}. {_HINT}") from failure
