# SPDX-License-Identifier: Apache-2.0
"""JPEG codec of one pipeline: its kernels, its index of files, and the GPU's JPEG engines (opt-in)."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

from ...contract.codec import Codec, CodecGpu, CodecKernel
from ...contract.step import Native, OnEngines, Sources
from ...contract.types import DType
from ...native import _native
from .engines import open_engines
from .engines import sources_for as engine_sources_for
from .index_folder import IndexFolder
from .report import Engines, FileIndexReport, JpegReport

# Suffixes of kernels that write pixels, by the type of their elements: bytes, or these scaled to a wider type.
SUFFIXES = {DType.UINT8: "", DType.UINT16: "_u16", DType.FLOAT: "_f32"}


def sources_for(dtype: DType) -> Sources:
    """Return the decoder's CUDA C++ for pixels of a type. Kernels that take long to compile come first."""
    pixels = f"jpeg_pixels{SUFFIXES[dtype]}"
    return (
        ("stoker_jpeg_entropy", '#include "device/jpeg_entropy.cuh"\n'),
        *(
            (f"stoker_jpeg_{name}", '#include "device/jpeg_spread.cuh"\n')
            for name in ("prepare", "guess", "synchronise", "write")
        ),
        ("stoker_jpeg_transform", '#include "device/jpeg_transform.cuh"\n'),
        (f"stoker_{pixels}", f'#include "device/{pixels}.cuh"\n'),
        *((f"stoker_jpeg_{name}", '#include "device/jpeg_begin.cuh"\n') for name in ("unstuff", "clear")),
    )


# CPU kernels that read files in parts, with the help of the index.
_READS_IN_PARTS = {"read_header": _native.gpu.read_header, "read_window": _native.gpu.read_window}


class Jpeg(Codec, name="jpeg"):
    """JPEG decoding on the CPU and on a GPU, with the same bits. Other image files are left to Python.

    Options:
        index_bytes: GPU memory for an index of files, within the run's memory limit; 0: no index.
        index_path: folder in which the index outlives the process; None: no folder.

    Attributes:
        index: data about files for GPU decoders, in case the files come again; None: no index.
    """

    def __init__(self, gpu: CodecGpu | None, options: Mapping[str, Any]) -> None:
        super().__init__(gpu, options)
        self.index: _native.gpu.JpegIndex | None = None
        self._folder: IndexFolder | None = None
        self._engines: dict[bool, _native.gpu.JpegEngines] = {}
        limit_bytes, path = options.get("index_bytes", 0), options.get("index_path")
        if gpu is None or not limit_bytes:
            return
        self.index = _native.gpu.jpeg_index(gpu.device, limit_bytes)
        gpu.quota.limit -= limit_bytes
        if path is not None:
            self._folder = IndexFolder(path, self.index, gpu.device)
            self._folder.load()

    @property
    def keeps_index(self) -> bool:
        return self.index is not None

    def host_kernel(self, body: Native) -> CodecKernel:
        if body.kernel in _READS_IN_PARTS:
            make: Any = _READS_IN_PARTS[body.kernel]
            # A window's constants are the reader's and the decoder's. Reading does not need the decoder's last one, the
            # limit of scans.
            attrs = body.attrs[:-1] if body.kernel == "read_window" else body.attrs
            return CodecKernel(self.name, make(*attrs, self.index))
        return CodecKernel(self.name, getattr(_native.kernels, body.kernel)(*body.attrs))

    def gpu_kernel(
        self, body: Native, in_types: Sequence[DType], out_types: Sequence[DType]
    ) -> Callable[[], CodecKernel]:
        assert self.gpu is not None
        dtype = out_types[0]
        functions = self.gpu.functions(sources_for(dtype))
        wanted = body.gpu.kernel if body.gpu else None
        on_engines = self._on_engines(self.gpu, body, wanted, dtype) if isinstance(wanted, OnEngines) else None

        def create() -> CodecKernel:
            make: Any = _native.gpu.decode  # decodes a whole file or parts of one
            exact: _native.gpu.GpuWithCpuFallback = make(functions(), *body.attrs, self.index)
            return CodecKernel(self.name, exact if on_engines is None else on_engines(exact), exact)

        return create

    def _on_engines(
        self, gpu: CodecGpu, body: Native, wanted: OnEngines, dtype: DType
    ) -> Callable[[_native.gpu.GpuWithCpuFallback], _native.gpu.OnEngines]:
        """Begin to compile the kernels for the engines' pictures. Return a function that adds the engines to an exact
        decoder.

        Args:
            dtype: element type of the output.

        Raises:
            DeviceError: the GPU has no engines.
        """
        if wanted.smooth not in self._engines:
            self._engines[wanted.smooth] = open_engines(gpu.device, gpu.quota, wanted.smooth)
        suffix = SUFFIXES[dtype]
        functions = gpu.functions(engine_sources_for(suffix))
        adjust, output_type, *_ = body.attrs

        def create(exact: _native.gpu.GpuWithCpuFallback) -> _native.gpu.OnEngines:
            engines = self._engines[wanted.smooth]
            return _native.gpu.on_engines(exact, engines, functions(), suffix, wanted.part, adjust, output_type)

        return create

    def report(self, kernels: Sequence[CodecKernel]) -> JpegReport:
        on_engines = [k.kernel for k in kernels if isinstance(k.kernel, _native.gpu.OnEngines)]
        known = FileIndexReport.of(self.index) if self.index is not None else None
        engines = Engines.of(on_engines, self.engines_memory) if on_engines else None
        return JpegReport(known, engines)

    @property
    def engines_memory(self) -> tuple[int, int]:
        """Return the GPU memory for the engines in bytes: requested by the library, and taken by the driver for it."""
        opened = self._engines.values()
        return sum(e.device_bytes for e in opened), sum(e.driver_bytes for e in opened)

    def close(self) -> None:
        if self._folder is not None:
            self._folder.save()
