# SPDX-License-Identifier: Apache-2.0
"""Search for NVIDIA's optional libraries, which are opened at run time."""

from __future__ import annotations

from ..contract.errors import DeviceError


def find_cuda_library(name: str, file: str, what: str, way_out: str) -> str:
    """Return the path of a library: from NVIDIA's Python package of it, a CUDA toolkit, or the loader's paths.

    Args:
        name: name of the library for ``cuda.pathfinder``, such as "nvjpeg".
        file: file name for the loader, which may find it where ``cuda.pathfinder`` is not installed.
        what: the library and its purpose, for the error.
        way_out: the package to install, and what works without it.

    Raises:
        DeviceError: the library is not found.
    """
    try:
        from cuda.pathfinder import DynamicLibNotFoundError, load_nvidia_dynamic_lib
    except ImportError:
        return file
    try:
        return load_nvidia_dynamic_lib(name).abs_path or file
    except (DynamicLibNotFoundError, RuntimeError) as error:
        raise DeviceError(f"expected {what}, got: {error}. {way_out}") from error
