# SPDX-License-Identifier: Apache-2.0
"""A GPU that is open: the native device, and the kernels of plans on it."""

from __future__ import annotations

import os
from collections.abc import Callable, Sequence
from typing import Any

from ..contract.errors import DeviceError, UnsupportedError
from ..contract.step import Native, OnEngines, OwnKernel, Stage
from ..contract.types import DType
from ..native import _native
from ..settings import default_threads
from .compilations import Compilations
from .compile import compile_kernels
from .engines import SOURCES as ENGINE_SOURCES
from .engines import open_engines
from .generate import generate
from .index_folder import IndexFolder
from .own import own_sources

Kernels = Sequence[tuple[str, str]]  # names, and the sources that have them

# The CUDA C++ of native kernels, by their constructors' names. What takes long to compile comes first.
SOURCES: dict[str, Kernels] = {
    "decode": (
        ("stoker_jpeg_entropy", '#include "jpeg_entropy.cuh"\n'),
        *((f"stoker_jpeg_{name}", '#include "jpeg_transform.cuh"\n') for name in ("clear", "transform")),
        ("stoker_jpeg_pixels", '#include "jpeg_pixels.cuh"\n'),
        ("stoker_jpeg_unstuff", '#include "jpeg_unstuff.cuh"\n'),
    ),
    "recipe": (("stoker_recipe", '#include "recipe.cuh"\n'),),
}


class Gpu:
    """A GPU for plans and runs; see ``graph.plan.KernelsOnGpu`` and ``executor.run.OpenGpu``.

    Attributes:
        device: the device, as the run loop uses it.
        account: what has been taken of its memory, and the most that may be, by runs and by libraries that they call.
        decoders: those of the plans made for it; they count the rows that each device decoded, and know why.
        on_engines: decoders of theirs that give rows to the GPU's JPEG engines.
        jpeg_index: what JPEG decoders keep about files that may come again; None: nothing. Set before plans are made.
    """

    def __init__(self, device: _native.gpu.Device, memory_limit: int) -> None:
        self.device = device
        self.account = _native.gpu.Account(memory_limit)
        self.decoders: list[_native.gpu.Either] = []
        self.on_engines: list[_native.gpu.OnEngines] = []
        self.jpeg_index: _native.gpu.JpegIndex | None = None
        self._index_folder: IndexFolder | None = None
        self._modules: dict[str, _native.gpu.Module] = {}
        self._engines: dict[bool, _native.gpu.JpegEngines] = {}
        self._compilations = Compilations(self.compiled, default_threads())

    @staticmethod
    def open(number: int, memory_limit: int | None = None) -> Gpu:
        """Open CUDA device ``number``; DeviceError says what is missing."""
        try:
            device = _native.gpu.open_cuda(number)
        except _native.gpu.DeviceFailure as failure:
            raise DeviceError(f"GPU {number} cannot be used: {failure}") from failure
        return Gpu(device, 2**64 - 1 if memory_limit is None else memory_limit)

    def keep_jpeg_index(self, limit_bytes: int, path: str | os.PathLike[str] | None = None) -> None:
        """Let JPEG decoders keep up to ``limit_bytes``, of the memory that runs may take, about their files.

        What is in the folder ``path`` is known from the beginning; :meth:`save_jpeg_index` adds what is new.
        """
        self.jpeg_index = _native.gpu.jpeg_index(self.device, limit_bytes)
        self.account.limit -= limit_bytes
        if path is not None:
            self._index_folder = IndexFolder(path, self.jpeg_index, self.device)
            self._index_folder.load()

    def save_jpeg_index(self) -> None:
        """Write what is known of files to its folder, if there is one; after the runs have ended."""
        if self._index_folder is not None:
            self._index_folder.save()

    def stage(self, body: Stage, arguments: tuple[Any, ...], *, planar: bool) -> Callable[[], Any]:
        """Begin to compile a stage; ``arguments`` are those of ``kernels.stage``. What is returned gives its kernel."""
        _, _, code, channels, in_types, out_types, *_ = arguments
        kind = body.sampler.kind if body.sampler else ""
        source = generate(code, _native.pixel_ops(), channels, in_types, out_types, kind, planar=planar)
        functions = self._functions((*source.samplers, ("stoker_stage", source.stage)))

        def made() -> Any:
            *sampler, stage = functions()
            everything: tuple[Any, ...] = (*arguments, [stage, *sampler], list(source.uniforms))
            return _native.kernels.gpu_stage(*everything)

        return made

    def load(self, source: str) -> _native.gpu.Module:
        """The compiled kernels of ``source`` (CUDA C++), loaded once."""
        module = self._modules.get(source)
        if module is None:
            module = self._modules[source] = self.device.load(self._compilations.result(source))
        return module

    def compiled(self, source: str) -> bytes:
        """What the device loads for ``source``. Threads call it, each with another source."""
        return compile_kernels(source, self.device.architecture)

    def _functions(self, kernels: Kernels) -> Callable[[], list[_native.gpu.Function]]:
        for _, source in kernels:
            self._compilations.begin(source)
        return lambda: [self.load(source).function(name) for name, source in kernels]

    @property
    def engines_memory(self) -> tuple[int, int]:
        """Bytes of the GPU's that the engines' library has asked for, and that the driver has taken for it."""
        opened = self._engines.values()
        return sum(e.device_bytes for e in opened), sum(e.driver_bytes for e in opened)

    @property
    def knows_files(self) -> bool:
        """Whether JPEG decoders keep what they find out about their files."""
        return self.jpeg_index is not None

    def beside(self, body: Native) -> Callable[[], Any]:
        """A step on the CPU that uses what the decoders know."""
        return lambda: getattr(_native.gpu, body.kernel)(*body.attrs, self.jpeg_index)

    def native(self, body: Native, in_types: Sequence[DType], out_types: Sequence[DType]) -> Callable[[], Any]:
        """Begin to compile a step whose ``gpu`` trait is set. What is returned gives its kernel."""
        if isinstance(body.gpu, OwnKernel):
            passes = self._functions(own_sources(body.gpu, in_types, out_types))
            numbers = len(in_types), len(out_types), len(body.params)
            return lambda: _native.gpu.own(passes(), *numbers)
        if body.kernel not in SOURCES:
            raise UnsupportedError(f"this build has no `{body.kernel}` for GPUs")
        functions = self._functions(SOURCES[body.kernel])
        beside = self._with_engines(body, body.gpu) if isinstance(body.gpu, OnEngines) else None

        def made() -> Any:
            index = (self.jpeg_index,) if body.kernel == "decode" else ()
            kernel = getattr(_native.gpu, body.kernel)(functions(), *body.attrs, *index)
            if isinstance(kernel, _native.gpu.Either):
                self.decoders.append(kernel)
            return kernel if beside is None else beside(kernel)

        return made

    def _with_engines(self, body: Native, wanted: OnEngines) -> Callable[[_native.gpu.Either], _native.gpu.OnEngines]:
        """Begin to compile what the engines' pictures need; DeviceError without engines. Gives the kernel with both."""
        if wanted.smooth not in self._engines:
            self._engines[wanted.smooth] = open_engines(self.device, self.account, wanted.smooth)
        functions = self._functions(ENGINE_SOURCES)
        adjust, output_type, _ = body.attrs

        def made(exact: _native.gpu.Either) -> _native.gpu.OnEngines:
            engines = self._engines[wanted.smooth]
            kernel = _native.gpu.on_engines(exact, engines, functions(), wanted.part, adjust, output_type)
            self.on_engines.append(kernel)
            return kernel

        return made
