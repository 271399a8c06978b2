# SPDX-License-Identifier: Apache-2.0
from collections.abc import Callable, Sequence
from typing import Any, ClassVar, overload

import numpy as np
import numpy.typing as npt

from stoker.native._native import FileTable, Kernel

class DeviceFailure(RuntimeError): ...

class Function:
    @property
    def name(self) -> str: ...

class Module:
    def function(self, name: str, dynamic_shared_bytes: int = 0) -> Function: ...

class MemoryQuota:
    limit: int
    def __init__(self, limit: int) -> None: ...
    @property
    def taken(self) -> int: ...

class FileReads:
    def __init__(self, device: Device, cufile: int, library: str, piece: int, buffers: int) -> None: ...
    @property
    def has_failed(self) -> bool: ...
    def report(self) -> tuple[int, tuple[int, int, int], tuple[int, int, int, int, int], str]: ...

class Device:
    separate_allocations: bool
    @property
    def number(self) -> int: ...
    @property
    def name(self) -> str: ...
    @property
    def architecture(self) -> int: ...
    @property
    def order_stream(self) -> int: ...
    @property
    def free_bytes(self) -> int: ...
    def find(self, name: str) -> Module | None: ...
    def load(self, image: bytes, name: str = ...) -> Module: ...
    def run(self, work: Sequence[tuple[Function, int, int, Sequence[int]]], stream: int | None) -> None: ...

class GpuWithCpuFallback(Kernel):
    cpu_share: float
    def __init__(self, on_gpu: Kernel, on_cpu: Kernel, /) -> None: ...
    @property
    def rows_on_gpu(self) -> int: ...
    @property
    def rows_on_cpu(self) -> int: ...
    @property
    def rows_without_memory(self) -> int: ...
    @property
    def cpu_ns(self) -> int: ...
    @property
    def reasons(self) -> dict[str, int]: ...

class JpegEngines:
    @property
    def count(self) -> int: ...
    @property
    def version(self) -> str: ...
    @property
    def device_bytes(self) -> int: ...
    @property
    def driver_bytes(self) -> int: ...

class OnEngines(Kernel):
    @property
    def rows(self) -> int: ...
    @property
    def reasons(self) -> dict[str, int]: ...
    @property
    def error(self) -> tuple[int, int, int, int]: ...  # rows, values, the sum and the most of their differences

class JpegIndex:
    record_bytes: ClassVar[int]
    @property
    def files(self) -> int: ...
    @property
    def slots(self) -> int: ...
    def packed(self, device: Device, begin: int, end: int, /) -> bytes: ...
    def unpack(self, device: Device, packed: bytes, /) -> int: ...
    @property
    def bytes(self) -> int: ...
    @property
    def rows_read(self) -> int: ...
    @property
    def rows_in_part(self) -> int: ...
    @property
    def rows_wrong(self) -> int: ...

def jpeg_index(device: Device, limit_bytes: int, /) -> JpegIndex: ...
def open_engines(device: Device, quota: MemoryQuota, library: str, smooth: bool, /) -> JpegEngines: ...
def on_engines(
    exact: GpuWithCpuFallback,
    engines: JpegEngines,
    kernels: Sequence[Function],
    suffix: str,
    part: float,
    adjust: bool,
    format: int,
    /,
) -> OnEngines: ...
def exchange(x: object, device: Device, /) -> tuple[int, tuple[int, ...], tuple[int, ...], int, int, Any] | None: ...
def place_of(x: object, /) -> tuple[int, int] | None: ...
def row_table(rows: Sequence[DeviceArray], stream: int) -> Any: ...
def upload(device: Device, array: Any, dtype: int) -> DeviceArray: ...
def wrap(
    device: Device, address: int, dtype: int, shape: Sequence[int], owner: Any, stream: int | None
) -> DeviceArray: ...
def wait_for(device: Device, stream: int) -> None: ...

class Stream:
    def __init__(self, device: Device) -> None: ...
    @property
    def handle(self) -> int: ...

def stack(rows: Sequence[DeviceArray]) -> DeviceArray: ...
def read_dlpack(capsule: Any, /) -> tuple[int, tuple[int, ...], tuple[int, ...], int, int, Any]: ...
def open_cuda(number: int, multiprocessors: int = 0) -> Device: ...
def close_idle() -> bool: ...
def set_idle_seconds(seconds: float) -> None: ...
def end_idle() -> None: ...
def open_null() -> Device: ...
def is_null_device_current() -> bool: ...
def set_null_driver_bytes(bytes: int) -> None: ...
def count_cuda() -> int: ...

class BatchExchange:
    """Arrays of whole batches for a library whose work runs on streams of its own; ``stream`` is a batch's."""

    def stack(self, stream: int, rows: Sequence[DeviceArray]) -> DeviceArray:
        """Return a copy of rows of one shape and type, made in order with the stream's work. Its reader may keep it."""
    def order(self, stream: int, other: int) -> None:
        """Make later work of the stream `other` wait for the batch's work so far."""
    def split(self, stream: int, array: Any, rows: Sequence[DeviceArray]) -> None:
        """Copy an array (a DLPack capsule) to rows, in order with the stream's work, and keep it until then."""

class TieredFunction:
    """Function of a stage that an interpreter replaces until it is compiled.

    ``replace(tiered, limit)`` is called once for each of the ascending ``limits``, by a thread of the engine, when the
    interpreter has computed more than ``limit`` elements; only for the largest one of those that a batch exceeds. It
    begins to load or compile the function and returns; :meth:`set_compiled` ends the interpretation.
    """

    def __init__(
        self, interpreter: Function, limits: Sequence[int], replace: Callable[[TieredFunction, int], None]
    ) -> None: ...
    @property
    def is_compiled(self) -> bool: ...
    def set_compiled(self, compiled: Function) -> None: ...

class HostCall:
    """Function ``function(stream, rows, exchange)`` that issues work; ``rows`` has (outputs, inputs) of each row.

    The function is called for each batch. It is referenced weakly. It returns None, or the text of an error that fails
    the batch.
    """

    def __init__(
        self,
        device: Device,
        quota: MemoryQuota,
        function: Callable[[int, list[tuple[list[DeviceArray], list[DeviceArray]]], BatchExchange], str | None],
    ) -> None: ...

class ClipMemory:
    def __init__(self, device: Device, quota: MemoryQuota, kept: int) -> None: ...
    def clip(self, extents: tuple[int, int, int], words: bool, planar: bool) -> DeviceArray: ...

class VideoDecoder:
    def __init__(self, device: Device, library: str, codec: int, bits: int) -> None: ...
    def restart(self, header: bytes) -> None: ...
    def feed(self, packet: bytes, number: int, length_bytes: int) -> list[tuple[int, int, int]]:
        """Return the number, height and width of the pictures that come out."""
    def drain(self) -> list[tuple[int, int, int]]: ...
    def convert(
        self,
        index: int,
        weights: tuple[int, ...],
        order: int,
        turns: int,
        planar: bool,
        function: Function,
        clip: DeviceArray,
        frame: int,
    ) -> None: ...
    def close(self) -> None: ...
    def finish(self) -> None: ...

class VideoPackets:
    """Packets of a file that are contiguous bytes, and its frames.

    ``disposable`` is the rule of `disposable.DisposableRule`.
    """

    def __init__(
        self,
        pos: npt.NDArray[np.int64],
        size: npt.NDArray[np.int64],
        flags: npt.NDArray[np.uint8],
        order: npt.NDArray[np.int64],
        sync: npt.NDArray[np.int64],
        header: bytes,
        length_bytes: int,
        disposable: tuple[int, int, int],
    ) -> None: ...

class VideoReading:
    """Frames that are decoded without the GIL.

    ``from_start``: key packets are none. ``end``: the frame after the last one of the read before, or 0. ``frames``:
    numbers of the frames of each clip, -1 for those that are not written. A clip that is None is not decoded.
    """

    def __init__(
        self,
        decoder: VideoDecoder,
        packets: VideoPackets,
        memory: npt.NDArray[np.uint8] | None,
        descriptor: int,
        position: tuple[int, int, int, int, bool, list[int]],
        from_start: bool,
        end: int,
        frames: Sequence[npt.NDArray[np.int64]],
        clips: Sequence[DeviceArray | None],
        weights: tuple[int, ...],
        order: int,
        turns: int,
        words: bool,
        planar: bool,
        function: Function,
        size: tuple[int, int],
    ) -> None: ...
    def run(self, packets: int) -> int:
        """Decode some packets. Return 0: all frames are issued; 1: call it again; 2: the frames cannot be read so."""
    @property
    def position(self) -> tuple[int, int, int, int, bool, list[int]]:
        """Return (start, next, last, last key, is drained, skipped) of the decoder."""
    @property
    def end(self) -> int:
        """Return the frame after the last one of this read."""

def is_disposable(rule: tuple[int, int, int], packet: bytes) -> bool: ...
def write_frame(clip: DeviceArray, frame: int, bytes: Any) -> None: ...

class DeviceArray:
    @property
    def shape(self) -> tuple[int, ...]: ...
    @property
    def dtype(self) -> int: ...
    @property
    def pointer(self) -> int: ...
    @property
    def device_id(self) -> int: ...
    @property
    def device(self) -> Device: ...
    def row(self, i: int) -> DeviceArray: ...
    def first(self, rows: int) -> DeviceArray: ...
    def to_host(self) -> bytes: ...
    def view(self, dtype: int, shape: Sequence[int]) -> DeviceArray: ...
    def copy_to(self, address: int, stream: int | None, wait: bool) -> None: ...
    def _repr_html_(self) -> str: ...
    def __dlpack__(self, stream: int | None = None, **kwargs: Any) -> Any: ...
    def __dlpack_device__(self) -> tuple[int, int]: ...
    @property
    def __cuda_array_interface__(self) -> dict[str, Any]: ...

# ---- kernels: written by tools/kernel_stubs.py ----

@overload
def decode(
    functions: Sequence[Function],
    adjust: bool,
    format: int,
    scale_log2: int,
    max_scan_pixels: int,
    index: JpegIndex | None,
    /,
) -> GpuWithCpuFallback:
    """A window of an encoded image. The CPU's kernel makes what this one leaves.

    Args:
        functions: the kernels of device/jpeg.cuh
        adjust: whether Exif's orientation is applied
        format: a jpeg::Format
        scale_log2: images are 1 / 2^scale_log2 as wide and high
        max_scan_pixels: the most pixels times scans of many scans; 0: no limit
        index: index of known files
    """

@overload
def decode(
    functions: Sequence[Function],
    adjust: bool,
    format: int,
    scale_log2: int,
    max_scan_pixels: int,
    table: FileTable,
    reader: int,
    index: JpegIndex,
    /,
) -> GpuWithCpuFallback:
    """A window of an encoded image, of which only a part may be there.

    Args:
        functions: the kernels of device/jpeg.cuh
        adjust: whether Exif's orientation is applied
        format: a jpeg::Format
        scale_log2: images are 1 / 2^scale_log2 as wide and high
        max_scan_pixels: the most pixels times scans of many scans; 0: no limit
        table: the files
        reader: the column of the batch's indices
        index: index of known files
    """

def host_call(call: HostCall, inputs: int, outputs: int, /) -> Kernel:
    """A step whose work is issued by a function, for the whole batch.

    Args:
        call: the function
        inputs: how many
        outputs: how many
    """

@overload
def own(passes: Sequence[tuple[Function, int, int]], inputs: int, outputs: int, numbers: int, /) -> Kernel:
    """An operator's own kernel. A step's last numbers are the blocks of each pass for a row, the bytes of shared memory
    of passes that have some, then the bytes of device memory that a row needs between passes.

    Args:
        passes: (function, threads of a block, the most shared bytes), launched one after the other
        inputs: how many
        outputs: how many
        numbers: all of the step's, per row
    """

@overload
def own(
    passes: Sequence[tuple[Function, int, int]], like: Kernel, inputs: int, outputs: int, numbers: int, /
) -> Kernel:
    """An operator's own kernel, with the tensors of its CPU kernel.

    Args:
        passes: (function, threads of a block, the most shared bytes), launched one after the other
        like: the CPU kernel, which checks the step and its rows
        inputs: how many
        outputs: how many
        numbers: all of the step's, per row
    """

def own_with_fault(
    passes: Sequence[tuple[Function, int, int]], like: Kernel, inputs: int, outputs: int, numbers: int, fault: bytes, /
) -> Kernel:
    """An operator's own kernel that may fail rows.

    Args:
        passes: (function, threads of a block, the most shared bytes), launched one after the other
        like: the CPU kernel, which checks the step and its rows
        inputs: how many
        outputs: how many
        numbers: all of the step's, per row
        fault: error of rows that fail
    """

def own_with_program(
    passes: Sequence[tuple[Function, int, int]],
    like: Kernel,
    input_count: int,
    output_count: int,
    numbers: int,
    extents: Sequence[int],
    code: Sequence[tuple[int, int, int, int, int, int, int, int, int, int, int]],
    channels: int,
    in_dtypes: Sequence[int],
    out_dtypes: Sequence[int],
    uniforms: Sequence[int],
    inputs: Sequence[Sequence[tuple[int, int, int, int, int, Sequence[int]]]],
    outputs: Sequence[Sequence[tuple[int, int, int, int, int, Sequence[int]]]],
    coordinates: Sequence[int],
    reads: Sequence[tuple[int, int]],
    /,
) -> Kernel:
    """An operator's own kernel, whose pixel program computes the last inputs of its CPU kernel.

    Args:
        passes: (function, threads of a block, the most shared bytes), launched one after the other
        like: the CPU kernel, which checks the step and its rows
        input_count: of the step, the program's last
        output_count: of the step
        numbers: the kernel's, before those of the program
        extents: parameters with the extents of the computed inputs
        code: the pixel program's instructions
        channels: of the program; 0: it is flat
        in_dtypes: element types of the inputs
        out_dtypes: element types of the outputs
        uniforms: numbers of parameters
        inputs: per input, the view that takes it to the iteration space
        outputs: per output, the view that takes its memory there
        coordinates: axes of the iteration space, whose coordinates are the program's last inputs
        reads: (uniform, type) in the order of the generated code
    """

def pool_rows(functions: Sequence[Function], /) -> Kernel:
    """The averages of a batch, from those of its rows.

    Args:
        functions: stoker_pool_rows
    """

def read_header(table: FileTable, reader: int, index: JpegIndex, /) -> Kernel:
    """A file, or its header if the index knows the file.

    Args:
        table: the files
        reader: the column of the batch's indices
        index: index of known files
    """

def read_window(
    table: FileTable, reader: int, adjust: bool, format: int, scale_log2: int, index: JpegIndex, /
) -> Kernel:
    """A file, or its header and what a window needs.

    Args:
        table: the files
        reader: the column of the batch's indices
        adjust: whether Exif's orientation is applied
        format: a jpeg::Format
        scale_log2: images are 1 / 2^scale_log2 as wide and high
        index: index of known files
    """

def recipe(functions: Sequence[Function], outputs: int, /) -> Kernel:
    """A row by the steps of its own recipe.

    Args:
        functions: stoker_recipe
        outputs: how many
    """

@overload
def stage(
    code: Sequence[tuple[int, int, int, int, int, int, int, int, int, int, int]],
    channels: int,
    in_dtypes: Sequence[int],
    out_dtypes: Sequence[int],
    uniforms: Sequence[int],
    inputs: Sequence[Sequence[tuple[int, int, int, int, int, Sequence[int]]]],
    outputs: Sequence[Sequence[tuple[int, int, int, int, int, Sequence[int]]]],
    coordinates: Sequence[int],
    tiered: TieredFunction,
    reads: Sequence[tuple[int, int]],
    /,
) -> Kernel:
    """A stage without an interpolator that is interpreted until its kernel is compiled.

    Args:
        code: the pixel program's instructions
        channels: of the program; 0: it is flat
        in_dtypes: element types of the inputs
        out_dtypes: element types of the outputs
        uniforms: numbers of parameters
        inputs: per input, the view that takes it to the iteration space
        outputs: per output, the view that takes its memory there
        coordinates: axes of the iteration space, whose coordinates are the program's last inputs
        tiered: the interpreter, and later the stage's own kernel
        reads: (uniform, type) in the order of the generated code
    """

@overload
def stage(
    interpolator: int,
    interpolator_params: Sequence[int],
    code: Sequence[tuple[int, int, int, int, int, int, int, int, int, int, int]],
    channels: int,
    in_dtypes: Sequence[int],
    out_dtypes: Sequence[int],
    uniforms: Sequence[int],
    inputs: Sequence[Sequence[tuple[int, int, int, int, int, Sequence[int]]]],
    outputs: Sequence[Sequence[tuple[int, int, int, int, int, Sequence[int]]]],
    coordinates: Sequence[int],
    functions: Sequence[Function],
    reads: Sequence[tuple[int, int]],
    /,
) -> Kernel:
    """A stage by its compiled kernels.

    Args:
        interpolator: kind of interpolator
        interpolator_params: numbers of parameters
        code: the pixel program's instructions
        channels: of the program; 0: it is flat
        in_dtypes: element types of the inputs
        out_dtypes: element types of the outputs
        uniforms: numbers of parameters
        inputs: per input, the view that takes it to the iteration space
        outputs: per output, the view that takes its memory there
        coordinates: axes of the iteration space, whose coordinates are the program's last inputs
        functions: the stage's own kernel, then the interpolator's
        reads: (uniform, type) in the order of the generated code
    """

def check_constants(name: str, constants: Sequence[object], /) -> None:
    """Raise TypeError unless the kernel `name` accepts `constants`."""

def list_constructors() -> list[tuple[str, str, str, tuple[tuple[str, str, str], ...]]]:
    """List (name, doc, class, ((parameter, type, doc), ...)) of every constructor."""
