# SPDX-License-Identifier: Apache-2.0
"""Reads of large files into a GPU's memory: by NVIDIA's cuFile if the user opts in, else through bounce buffers."""

from __future__ import annotations

import os

from ..contract.errors import DeviceError
from ..native import _native
from ..settings import gpu_direct_storage
from .cuda_library import find_cuda_library

# Page-locked buffers of a read: while one is copied, the file system fills another one.
PIECE_BYTES = 4 << 20
BUFFERS = 2

_DRIVER = "/proc/driver/nvidia-fs/stats"  # exists where NVIDIA's driver for GPUDirect Storage is loaded
_HINT = "With STOKER_GDS=off files go through page-locked memory"
_OFF, _AUTO, _ON = range(3)


def find_library() -> str:
    """Return the path of cuFile's library: from the package nvidia-cufile, a CUDA toolkit, or the loader's paths.

    Raises:
        DeviceError: the library is not found.
    """
    return find_cuda_library(
        "cufile", "libcufile.so.0", "cuFile's library for GPUDirect Storage",
        f"It is the extra `gds`: `pip install 'nvidia-cufile>=1.15'`. {_HINT}",
    )  # fmt: skip


def open_file_reads(device: _native.gpu.Device) -> _native.gpu.FileReads:
    """Open reads of files into the memory of ``device``.

    Raises:
        DeviceError: STOKER_GDS is "on", or "auto" and the system has the driver, and cuFile cannot be used.
        ValueError: STOKER_GDS has another value than off, auto and on.
    """
    wanted = gpu_direct_storage()
    if wanted == "off" or (wanted == "auto" and not os.path.exists(_DRIVER)):
        return _native.gpu.FileReads(device, _OFF, "", PIECE_BYTES, BUFFERS)
    library = find_library()
    try:
        return _native.gpu.FileReads(device, _ON if wanted == "on" else _AUTO, library, PIECE_BYTES, BUFFERS)
    except _native.gpu.DeviceFailure as failure:
        raise DeviceError(f"GPU {device.number} ({device.name}): {failure}, of {library}. {_HINT}") from failure
