# SPDX-License-Identifier: Apache-2.0
"""GPUDirect Storage: finds NVIDIA's cuFile, which reads files into a GPU's memory, and opens it if the user opts in."""

from __future__ import annotations

import os

from ..contract.errors import DeviceError
from ..native import _native
from ..settings import gpu_direct_storage
from .cuda_library import find_cuda_library

_DRIVER = "/proc/driver/nvidia-fs/stats"  # exists where NVIDIA's driver for GPUDirect Storage is loaded
_HINT = "With STOKER_GDS=off files go through page-locked memory"


def find_library() -> str:
    """Return the path of cuFile's library: from the package nvidia-cufile, a CUDA toolkit, or the loader's paths.

    Raises:
        DeviceError: the library is not found.
    """
    return find_cuda_library(
        "cufile", "libcufile.so.0", "cuFile's library for GPUDirect Storage",
        f"It is the extra `gds`: `pip install 'nvidia-cufile>=1.15'`. {_HINT}",
    )  # fmt: skip


def open_file_reads(device: _native.gpu.Device) -> _native.gpu.FileReads | None:
    """Open reads of files into the memory of ``device``; return None if all files are staged.

    Raises:
        DeviceError: STOKER_GDS is "on", or the system has the driver, and cuFile cannot be used.
        ValueError: STOKER_GDS has another value than off, auto and on.
    """
    wanted = gpu_direct_storage()
    if wanted == "off" or (wanted == "auto" and not os.path.exists(_DRIVER)):
        return None
    library = find_library()
    try:
        return _native.gpu.FileReads(device, library, wanted == "on")
    except _native.gpu.DeviceFailure as failure:
        raise DeviceError(f"GPU {device.number} ({device.name}): {failure}, of {library}. {_HINT}") from failure
