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
from typing import Any, NamedTuple

from ..contract.errors import ArgumentError, DeviceError, ResourceError, UnsupportedError
from ..contract.gpu import StageRows
from ..contract.pixel import Instruction
from ..contract.step import CalledOnHost, Compiled, Native, OwnKernel, Sources, Stage
from ..contract.thread_start import start_thread
from ..contract.types import DType
from ..contract.warning import warn
from ..native import _native
from ..settings import default_threads, gpu_multiprocessors
from .compilation_pool import CompilationPool
from .compile import compile_kernels, is_cached
from .file_reads import open_file_reads
from .generate import ProgramSource, StageSource, generate, generate_inlined, uniforms_of
from .interpreter import INTERPRETER, is_interpretable
from .own import own_sources


class StageKey(NamedTuple):
    """Facts that decide the source of a stage; see :func:`.generate.generate`."""

    code: tuple[Instruction, ...]
    channels: int
    in_types: tuple[int, ...]
    out_types: tuple[int, ...]
    interpolator: str
    coordinates: int
    rows: StageRows


class StageSources:
    """Sources of stages that were loaded or compiled in this process; the oldest are dropped.

    Args:
        most: number of sources that are kept.
    """

    def __init__(self, most: int) -> None:
        self._most = most
        self._sources: dict[StageKey, StageSource] = {}
        self._adding = threading.Lock()

    def find(self, key: StageKey) -> StageSource | None:
        """Return the source of a stage if it was generated."""
        return self._sources.get(key)

    def of(self, key: StageKey) -> StageSource:
        """Return the source of a stage."""
        source = self._sources.get(key)
        if source is None:
            source = generate(
                key.code, _op_codes(), key.channels, key.in_types, key.out_types, key.interpolator,
                coordinates=key.coordinates, rows=key.rows,
            )  # fmt: skip
            with self._adding:
                self._sources[key] = source
                if len(self._sources) > self._most:
                    del self._sources[next(iter(self._sources))]
        return source


_SOURCES = StageSources(512)


@functools.cache
def _op_codes() -> dict[str, int]:
    """Return the numbers of the pixel operations, by name."""
    return dict(_native.pixel_ops())


class Gpu:
    """Open GPU for plans and runs; see ``contract.gpu.KernelsOnGpu`` and ``executor.run.OpenGpu``.

    Attributes:
        device: the device, as the run loop uses it.
        quota: memory in use and the limit, for runs and the libraries that they call.
        file_reads: reads of large files into the device's memory.
        compiled_first: number of stages of a process whose kernels are loaded or compiled when their plans are built.
            The interpreter runs any further stage that it can run: a program with thousands of different small
            expressions would spend all its time in the compiler, and much of it on loading kernels that are cached.
        unloaded_elements: elements that the interpreter computes of a stage before its kernel is loaded from the cache
            on disk, if it is there.
        interpreted_elements: elements that the interpreter computes of a stage before its kernel is compiled.
    """

    compiled_first = 8
    unloaded_elements = 1 << 16
    interpreted_elements = 1 << 22
    _new_stages = itertools.count(1)  # of the process, that were not loaded

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
        key = StageKey(tuple(code), channels, tuple(in_types), tuple(out_types), kind, len(coordinates), rows)
        if is_interpretable(body, code) and not self._compiles_first(key):
            return self._interpreted(key, arguments)
        source = _SOURCES.of(key)
        functions = self.functions((*source.interpolators, ("stoker_stage", source.stage)))

        def create() -> Any:
            *interpolator, stage = functions()
            everything: tuple[Any, ...] = (*arguments, [stage, *interpolator], list(source.uniforms))
            return _native.gpu.stage(*everything)

        return create

    def _interpreted(self, key: StageKey, arguments: tuple[Any, ...]) -> Callable[[], Any]:
        """Begin to compile the interpreter of a stage. Its own source is generated when its kernel is wanted."""
        interpreter = self.functions([INTERPRETER])

        def create_tiered() -> Any:
            [function] = interpreter()
            limits = [self.unloaded_elements, self.interpreted_elements]
            tiered = _native.gpu.TieredFunction(function, limits, partial(self._begin_replacing, key))
            _, _, *program = arguments  # an interpreted stage has no interpolator
            everything: tuple[Any, ...] = (*program, tiered, list(uniforms_of(key.code, _op_codes())))
            return _native.gpu.stage(*everything)

        return create_tiered

    def _compiles_first(self, key: StageKey) -> bool:
        """Whether a stage's kernel is loaded or compiled before the stage runs."""
        source = _SOURCES.find(key)
        if source is not None and self._loaded(source.stage) is not None:
            return True
        return next(self._new_stages) <= self.compiled_first

    def _begin_replacing(self, key: StageKey, tiered: _native.gpu.TieredFunction, limit: int) -> None:
        """Begin to load the kernel of an interpreted stage, or to compile it. A thread of the engine calls this."""
        may_compile = limit >= self.interpreted_elements
        thread = threading.Thread(target=self._replace, args=(key, tiered, may_compile), name="stoker-nvrtc")
        try:
            start_thread(thread)
        except ResourceError as error:
            warn(f"a stage remains interpreted, which is slower: {error}", stacklevel=2)

    def _replace(self, key: StageKey, tiered: _native.gpu.TieredFunction, may_compile: bool) -> None:
        try:
            source = _SOURCES.of(key).stage
            if may_compile or self._loaded(source) is not None or self.is_cached(source):
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
    return generate_inlined(code, _op_codes(), in_types, len(out_types), axes, framed=framed)


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
