# SPDX-License-Identifier: Apache-2.0
"""Open GPU: the native device, and the kernels of plans on it."""

from __future__ import annotations

import atexit
import contextlib
import functools
import itertools
import re
import threading
from collections.abc import Callable, Sequence
from concurrent.futures import CancelledError
from functools import partial
from typing import Any

from ..contract.errors import ArgumentError, DeviceError, ResourceError, UnsupportedError
from ..contract.gpu import StageRows
from ..contract.step import CalledOnHost, Compiled, Native, OwnKernel, Sources, Stage
from ..contract.thread_start import start_thread
from ..contract.types import DType
from ..contract.warning import warn
from ..native import _native
from ..settings import default_threads, gpu_multiprocessors
from .compilation_pool import CompilationPool
from .compile import compile_kernels, is_cached
from .file_reads import open_file_reads
from .generate import ProgramSource, generate, generate_inlined
from .interpreter import INTERPRETER, is_interpretable
from .own import own_sources


class Gpu:
    """Open GPU for plans and runs; see ``contract.gpu.KernelsOnGpu`` and ``executor.run.OpenGpu``.

    Attributes:
        device: the device, as the run loop uses it.
        quota: memory in use and the limit, for runs and the libraries that they call.
        file_reads: reads of large files into the device's memory.
        compiled_first: number of stages of a process that are compiled when their plans are built. Any further stage
            that the interpreter can run is compiled when it has computed `interpreted_elements`: a program with
            thousands of different small expressions would spend all its time in the compiler.
        interpreted_elements: elements that the interpreter computes of a stage before its kernel is compiled.
    """

    compiled_first = 8
    interpreted_elements = 1 << 22
    _new_stages = itertools.count(1)  # of the process, that were neither loaded nor in the cache of compiled kernels

    def __init__(self, device: _native.gpu.Device, memory_limit: int) -> None:
        self.device = device
        self.quota = _native.gpu.MemoryQuota(memory_limit)
        self.file_reads = open_file_reads(device)
        self._modules: dict[str, _native.gpu.Module] = {}
        self._shared: dict[Any, Any] = {}
        self._sharing = threading.Lock()

    @functools.cached_property
    def _compilations(self) -> CompilationPool:
        return CompilationPool(default_threads())

    @staticmethod
    def open(number: int, memory_limit: int | None = None) -> Gpu:
        """Open CUDA device ``number``.

        Raises:
            DeviceError: the device cannot be used; the text says what is missing.
        """
        try:
            device = _native.gpu.open_cuda(number, gpu_multiprocessors())
        except _native.gpu.DeviceFailure as failure:
            raise DeviceError(f"GPU {number} cannot be used: {failure}") from failure
        return Gpu(device, 2**64 - 1 if memory_limit is None else memory_limit)

    def share(self, make: Callable[[Gpu], Any]) -> Any:
        """Return the object that ``make`` has made of this GPU for all operators of its runs. It has a `close`."""
        with self._sharing:
            if make not in self._shared:
                self._shared[make] = make(self)
            return self._shared[make]

    def close_shared(self) -> None:
        """Close what operators share. Later calls of :meth:`share` make other objects."""
        with self._sharing:
            shared, self._shared = self._shared, {}
        for one in shared.values():
            one.close()

    def stage(self, body: Stage, arguments: tuple[Any, ...], rows: StageRows) -> Callable[[], Any]:
        """Begin to compile a stage; ``arguments`` are those of ``kernels.stage``.

        Return a function that waits for the kernel.
        """
        _, _, code, channels, in_types, out_types, *_, coordinates = arguments
        kind = body.interpolator.kind if body.interpolator else ""
        source = generate(
            code, _native.pixel_ops(), channels, in_types, out_types, kind, coordinates=len(coordinates), rows=rows
        )
        if is_interpretable(body, code) and not self._compiles_first(source.stage):
            interpreter = self.functions([INTERPRETER])

            def create_tiered() -> Any:
                [function] = interpreter()
                begin = partial(self._begin_replacing, source.stage)
                tiered = _native.gpu.TieredFunction(function, self.interpreted_elements, begin)
                _, _, *program = arguments  # an interpreted stage has no interpolator
                everything: tuple[Any, ...] = (*program, tiered, list(source.uniforms))
                return _native.gpu.stage(*everything)

            return create_tiered
        functions = self.functions((*source.interpolators, ("stoker_stage", source.stage)))

        def create() -> Any:
            *interpolator, stage = functions()
            everything: tuple[Any, ...] = (*arguments, [stage, *interpolator], list(source.uniforms))
            return _native.gpu.stage(*everything)

        return create

    def _compiles_first(self, source: str) -> bool:
        """Whether a stage's kernel is compiled before the stage runs."""
        return (
            self._loaded(source) is not None or self.is_cached(source) or next(self._new_stages) <= self.compiled_first
        )

    def _begin_replacing(self, source: str, tiered: _native.gpu.TieredFunction) -> None:
        """Begin to compile the kernel of an interpreted stage. A thread of the engine calls this."""
        thread = threading.Thread(target=self._replace, args=(source, tiered), name="stoker-nvrtc")
        try:
            start_thread(thread)
        except ResourceError as error:
            warn(f"a stage remains interpreted, which is slower: {error}", stacklevel=2)

    def _replace(self, source: str, tiered: _native.gpu.TieredFunction) -> None:
        try:
            with contextlib.suppress(CancelledError):  # the process ends
                tiered.set_compiled(self._function("stoker_stage", source, 0))
        except Exception as error:  # noqa: BLE001 - the results are right without the kernel
            warn(f"a stage remains interpreted, which is slower: {error}", stacklevel=2)

    def is_cached(self, source: str) -> bool:
        """Whether the machine code for ``source`` is in the cache on disk."""
        return is_cached(source, self.device.architecture)

    def load(self, source: str) -> _native.gpu.Module:
        """Return the compiled kernels of ``source`` (CUDA C++), loaded once for all pipelines on a GPU."""
        module = self._loaded(source)
        if module is None:
            module = self._modules[source] = self.device.load(self._compilations.result(source, self.compiled), source)
        return module

    def _loaded(self, source: str) -> _native.gpu.Module | None:
        """Return the kernels of ``source`` if they are loaded."""
        module = self._modules.get(source) or self.device.find(source)
        if module is not None:
            self._modules[source] = module
        return module

    def compiled(self, source: str) -> bytes:
        """Return the machine code for ``source``. Threads call this concurrently with different sources."""
        return compile_kernels(source, self.device.architecture)

    def functions(
        self, kernels: Sources, shared_bytes: Sequence[int] | None = None
    ) -> Callable[[], list[_native.gpu.Function]]:
        """Begin to compile kernels.

        Args:
            shared_bytes: maximum of dynamic shared memory that each kernel is launched with; by default none.

        Returns:
            A function that waits for the kernels and returns them in the given order.
        """
        for _, source in kernels:
            if self._loaded(source) is None:
                self._compilations.begin(source, self.compiled)
        most = shared_bytes or [0] * len(kernels)
        return lambda: [self._function(name, source, n) for (name, source), n in zip(kernels, most, strict=True)]

    def _function(self, name: str, source: str, shared_bytes: int) -> _native.gpu.Function:
        try:
            return self.load(source).function(name, shared_bytes)
        except _native.gpu.DeviceFailure as failure:
            needs = f", with up to {shared_bytes} bytes of shared memory for a block" if shared_bytes else ""
            raise DeviceError(f"`{name}` does not run on GPU {self.device.number}{needs}: {failure}") from failure

    def native(
        self, body: Native, in_types: Sequence[DType], out_types: Sequence[DType], program: tuple[Any, ...] = ()
    ) -> Callable[[], Any]:
        """Begin to compile a step with a form for GPUs; ``program`` as in ``KernelsOnGpu.native``.

        Return a function that waits for the kernel.
        """
        form = body.gpu.kernel if body.gpu else None
        if isinstance(form, OwnKernel):
            shared = [p.max_shared_bytes for p in form.passes]
            inlined = _program_source(program) if program else None
            functions = self.functions(own_sources(form, in_types, out_types, inlined), shared)
            functions = _naming_users_lines(form.name, functions) if form.source else functions
            numbers = len(in_types), len(out_types), len(body.params)
            threads = [p.threads for p in form.passes]
            host = getattr(_native.kernels, body.kernel)(*body.attrs)  # checks what the GPU kernel is given
            if inlined is not None:
                rest: tuple[Any, ...] = (host, *numbers, *program, list(inlined.uniforms))
                make_own: Any = _native.gpu.own_with_program
                return lambda: make_own(list(zip(functions(), threads, shared, strict=True)), *rest)
            if form.fault:
                text = form.fault.encode()
                make_failing = _native.gpu.own_with_fault
                return lambda: make_failing(list(zip(functions(), threads, shared, strict=True)), host, *numbers, text)
            return lambda: _native.gpu.own(list(zip(functions(), threads, shared, strict=True)), host, *numbers)
        if isinstance(form, CalledOnHost):
            call = _native.gpu.HostCall(self.device, self.quota, form.function)
            return lambda: _native.gpu.host_call(call, len(in_types), len(out_types))
        if not isinstance(form, Compiled):
            raise UnsupportedError(f"this build has no `{body.kernel}` for GPUs")
        functions = self.functions(form.kernels)
        make: Any = getattr(_native.gpu, body.kernel)
        return lambda: make(functions(), *body.attrs)


def _program_source(program: tuple[Any, ...]) -> ProgramSource:
    """Return the source of a program by its arguments in ``KernelsOnGpu.native``."""
    extents, code, _, in_types, out_types, *_, coordinates = program
    axes = [axis + _LAST_AXES - len(extents) for axis in coordinates]
    framed = len(extents) == _LAST_AXES
    return generate_inlined(code, _native.pixel_ops(), in_types, len(out_types), axes, framed=framed)


_LAST_AXES = 3  # F, H and W (native/shared/own_slot.hpp)
_USERS_ERROR = re.compile(r"^(.*?)\((\d+)\): (?:catastrophic )?error:? (.*)$", re.MULTILINE)
Functions = Callable[[], list[_native.gpu.Function]]


def _naming_users_lines(name: str, functions: Functions) -> Functions:
    """Return ``functions`` with errors of the compiler as errors of the user's source, with its line."""

    def compiled() -> list[_native.gpu.Function]:
        try:
            return functions()
        except RuntimeError as error:
            found = _USERS_ERROR.search(str(error))
            if isinstance(error, DeviceError) or found is None:
                raise
            text = f"{found.group(1)}:{found.group(2)}: {found.group(3)}"
            raise ArgumentError(f"`{name}`: the compiler refused the CUDA source: {text}") from error

    return compiled


atexit.register(_native.gpu.end_idle)  # while the driver still works
