# SPDX-License-Identifier: Apache-2.0
"""``eager``: immediate calls of operators on arrays, with the same bits as in a pipeline.

``eager.resize(image, size=(224, 224))`` takes one sample (a NumPy array, a DLPack tensor, the bytes of a file) and
returns a NumPy array. A list of samples or a :class:`~stoker.Batch` gives a :class:`~stoker.Batch`. An argument that
may differ per row takes a :class:`~stoker.Batch` of its own. Axes of an image are HWC (a video FHWC) unless the input
is wrapped as ``types.Constant(array, layout="CHW")``. ``eager.video.open`` reads frames of one video,
``eager.stream`` applies operators to a signal that arrives in chunks.

``device="gpu"`` (and ``device_id``) computes on a GPU. Inputs are in host memory or in that of the GPU, results are in
the GPU's memory: objects with DLPack and CUDA's array interface, or a :class:`~stoker.Batch` of them.

Plans are cached: a second call with inputs of the same types costs microseconds. Random operators take ``seed=``. Row
``i`` of a call draws the numbers of row key ``i`` in epoch 0 of a pipeline.
"""

from __future__ import annotations

import importlib
import os
from collections.abc import Callable, Mapping, Sequence
from functools import lru_cache
from typing import TYPE_CHECKING, Any

import numpy as np

from .._import_lock import IMPORT_LOCK
from ..contract.batch import Batch
from ..contract.errors import ArgumentError, DataError, ResourceError, UnsupportedError
from ..contract.feed import GpuArray, to_array
from ..contract.file_path import regular_file
from ..contract.operator import Operator
from ..contract.text import brief, reason_of
from ..contract.types import DType
from ..contract.whole_number import is_seed
from ..native import _native
from . import registry
from .constants import Constant
from .eager_gpu import is_on_gpu, read_for_gpu, take_gpu
from .planned_call import PlannedCall, RowThreads, first_row
from .registry import attribute, find, is_built_in, members

if TYPE_CHECKING:
    from ..executor.run import OpenGpu
    from . import video as video
    from .stream import Stream

_MAX_CACHED_PLANS = 256
_FLOAT64 = (int(DType.FLOAT64), 0, "")
_VECTOR = (int(DType.FLOAT64), 1, "")


@lru_cache(maxsize=_MAX_CACHED_PLANS)
def _prepare(
    name: str, inputs: tuple[Any, ...], fed: tuple[Any, ...], consts: tuple[tuple[str, Any], ...], revision: int,
    gpu: Any = None,
) -> PlannedCall:  # fmt: skip
    """Return a planned call, cached by the arguments, the revision of the registry and the GPU."""
    return PlannedCall(name, inputs, fed, consts, gpu)


if hasattr(os, "register_at_fork"):
    # Another thread of the parent may have been inside a cached plan's engine, so a child creates its own plans.
    os.register_at_fork(after_in_child=_prepare.cache_clear)

_DTYPES: dict[Any, int] = {t.numpy: int(t) for t in DType if t != DType.BFLOAT16}


_UNNAMED = {3: "HWC", 4: "FHWC"}
_CHANNELS = 16  # more are unlikely to be channels, and would only fill the cache of plans


@lru_cache(maxsize=_MAX_CACHED_PLANS)
def _spec_of(dtype: int, rank: int, channels: int, layout: str) -> tuple[Any, ...]:
    """Return the type that decides about a plan: element type, rank, axes, and the number of channels.

    Operators may depend on channels, but not on other extents.

    Args:
        dtype: number of the element type.
        rank: number of axes.
        channels: extent of the axis C of ``layout``; -1 if samples differ in it.
        layout: names of the axes; "" for an image or video with its channels last, or other axes without names.
    """
    at = (layout or _UNNAMED.get(rank, "")).find("C")
    if not 0 <= at < rank or not 0 <= channels <= _CHANNELS:
        return (dtype, rank, layout)
    return (dtype, rank, layout, (*(None,) * at, channels, *(None,) * (rank - at - 1)))


def _spec(x: Any, layout: str = "") -> tuple[Any, ...]:
    """Return the type of an array that decides about a plan."""
    dtype = _DTYPES.get(x.dtype)
    return _typed(int(DType.of(x.dtype)) if dtype is None else dtype, x.shape, layout)


def _typed(dtype: int, shape: tuple[int, ...], layout: str) -> tuple[Any, ...]:
    rank, at = len(shape), layout.find("C")
    return _spec_of(dtype, rank, shape[at] if rank and at < rank else -1, layout)


def _sample(x: Any, name: str) -> tuple[Any, tuple[Any, ...]]:
    """Return the input as an array, with its type."""
    if type(x) is np.ndarray and x.dtype in _DTYPES and x.flags.aligned:
        return x, _spec(x)
    if isinstance(x, Constant):
        return x.value, _spec(x.value, x.layout)
    if isinstance(x, str):
        raise ArgumentError(
            f"`eager.{name}`: expected the bytes of a file or an array, got a string; see `eager.imread`"
        )
    if x is None or isinstance(x, (dict, set)):
        raise ArgumentError(
            f"`eager.{name}`: expected an array, a tensor, bytes or a list of them, got {type(x).__name__}"
        )
    try:
        array = to_array(x)
    except TypeError as error:
        hint = '. Pass `device="gpu"` to compute there' if is_on_gpu(x) else ""
        raise ArgumentError(f"`eager.{name}`: {error}{hint}") from error
    except (ResourceError, MemoryError) as error:
        reason = str(error) or "expected an array that fits into memory"
        raise ResourceError(f"`eager.{name}`: {reason}") from error
    return array, _spec(array)


def batches_of(
    name: str, inputs: Sequence[Any], arguments: dict[str, Any], rows: int, pool: RowThreads | None = None
) -> tuple[Batch, ...]:
    """Call an operator on ``rows`` rows and return its outputs as batches. An input that is no batch serves all rows.

    Args:
        name: name of the operator.
        inputs: batches, arrays, and constants with a layout.
        arguments: arguments by name.
        rows: number of rows.
        pool: threads that divide the rows of a call on the CPU; None: the caller's thread computes them.
    """
    result = _call(name, inputs, arguments, rows, pool)
    return result if isinstance(result, tuple) else (result,)


def _call(
    name: str, inputs: Sequence[Any], arguments: dict[str, Any], least_rows: int | None = None,
    pool: RowThreads | None = None,
) -> Any:  # fmt: skip
    operator = find(name)
    if operator.is_source:
        raise UnsupportedError(f"`eager.{name}`: a source of data belongs into a pipeline; see `pipeline_def`")
    gpu: Any = take_gpu(name, arguments) if "device" in arguments or "device_id" in arguments else None
    if operator.named_inputs:
        inputs = operator.take_named_inputs(inputs, arguments)
    seed = arguments.pop("seed", None)
    if seed is not None:
        if not is_seed(seed):
            text = f"expected a whole number from 0 to 2**64 - 1 as `seed`, got {brief(seed)}"
            raise ArgumentError(f"`eager.{name}`: {text}")
        seed = int(seed)
    rows = _rows(inputs, arguments, name)
    if rows is None:
        rows = least_rows
    data: list[Any] = []
    specs = []
    for x in inputs:
        column, spec = _column(x, rows, name) if gpu is None else _column_for_gpu(x, rows, name, gpu)
        data.append(column)
        specs.append(spec)
    specs = _free_specs(operator, arguments, inputs, specs)
    fed, consts = _bind(operator, arguments, rows, data)
    if seed is None:
        seed = int.from_bytes(os.urandom(8), "little") >> 1 if operator.draws else 0
    prepared = (
        _prepare(name, tuple(specs), fed, consts, registry.revision, gpu)
        if not consts or _is_hashable(consts)
        else PlannedCall(name, tuple(specs), fed, consts, gpu)
    )
    if rows is None:
        result = prepared.run_one(data, seed) if gpu is None else None
        if result is not None:
            return result
        outputs = prepared.run_many(data, 1, seed)
        return first_row(outputs[0]) if len(outputs) == 1 else tuple(map(first_row, outputs))
    return _batches(prepared.run_many(data, rows, seed, pool), prepared.types)


def _batches(outputs: list[Any], types: list[tuple[Any, str, str]]) -> Any:
    """Return the outputs of a call as a batch, or several as a tuple of batches."""
    if len(types) == 1:  # by far the most frequent case, without a comprehension's call
        dtype, layout, device = types[0]
        return Batch(outputs[0], dtype, layout, None, None, device)
    return tuple(
        Batch(o, dtype, layout, None, None, device) for o, (dtype, layout, device) in zip(outputs, types, strict=True)
    )


def _is_hashable(x: object) -> bool:
    try:
        hash(x)
    except TypeError:
        return False
    return True


def _bind(
    operator: type[Operator], arguments: Mapping[str, Any], rows: int | None, data: list[Any]
) -> tuple[tuple[Any, ...], tuple[Any, ...]]:
    """Return the fed arguments (name, type) and the constants. Columns of fed arguments are appended to ``data``."""
    known = operator.all_arguments()
    fed: list[Any] = []
    consts: list[tuple[str, Any]] = []
    for key, value in arguments.items():
        argument = known.get(key)
        if value is None:
            continue
        # A list given to an operator on batches has one element per row: it stays a constant, as in a pipeline.
        may_feed = operator.scope == "row" or isinstance(value, Batch)
        if argument is not None and argument.per_row and may_feed and not isinstance(value, (str, bool)):
            column, spec = _argument(value, argument, rows, operator.name, key)
            if column is not None:
                data.append(column)
                fed.append((key, spec))
                continue
        consts.append((key, tuple(value) if isinstance(value, list) else value))
    return tuple(fed), tuple(consts)


def _rows(inputs: Sequence[Any], arguments: dict[str, Any], name: str) -> int | None:
    """Return the number of rows of the call; None for one sample."""
    # Loops instead of comprehensions, which cost a call each.
    batches: list[Any] = []
    for x in inputs:
        if isinstance(x, (list, tuple, Batch)):
            batches.append(x)
    for v in arguments.values():
        if isinstance(v, Batch):
            batches.append(v)
    if not batches:
        return None
    rows = len(batches[0])
    if len(batches) > 1 and len(counts := {*map(len, batches)}) > 1:
        raise ArgumentError(f"`eager.{name}`: expected batches of one size, got {sorted(counts)}")
    return rows


def _free_specs(
    operator: type[Operator], arguments: dict[str, Any], inputs: Sequence[Any], specs: list[Any]
) -> list[Any]:
    """Return the types of a call, without channels if a row is empty and its output has another shape than planned."""
    if operator.takes_empty_rows(arguments) and any(map(_has_empty_row, inputs)):
        return [spec[:3] for spec in specs]
    return specs


def _has_empty_row(x: Any) -> bool:
    """Return whether a row of an input has an axis without elements."""
    rows = _rows_of(x) if isinstance(x, (list, tuple, Batch)) else x.value if isinstance(x, Constant) else x
    return any(0 in np.shape(row) for row in rows) if isinstance(rows, list) else 0 in getattr(rows, "shape", ())


def _column(x: Any, rows: int | None, name: str) -> tuple[Any, tuple[Any, ...]]:
    if not isinstance(x, (list, tuple, Batch)):
        return _sample(x, name)
    layout = x.layout if isinstance(x, Batch) else ""
    read = _native.array_rows(x if type(x) is list else _rows_of(x), np.ndarray, _DTYPES)
    if read is not None:
        return read, _spec_of(*read.facts(layout.find("C") if layout else -1), layout)
    samples = [_sample(v, name) for v in x]
    specs = {_spec(v, layout) for v, _ in samples} if layout else {s for _, s in samples}
    kinds = {s[:3] for s in specs}
    if len(kinds) != 1:
        raise ArgumentError(f"`eager.{name}`: expected samples of one type and rank, got {len(kinds)} kinds")
    return [v for v, _ in samples], specs.pop() if len(specs) == 1 else kinds.pop()


def _column_for_gpu(x: Any, rows: int | None, name: str, gpu: OpenGpu) -> tuple[Any, tuple[Any, ...]]:
    """Return an input of a call on a GPU, whose arrays may be in host memory or in that of the GPU, and its type."""
    try:
        found = read_for_gpu(x, gpu)
    except DataError as error:
        raise ArgumentError(f"`eager.{name}`: {error}") from error
    if found is None:
        return _column(x, rows, name)
    arrays, layout = found
    specs = {_spec_of_gpu_array(a, layout) for a in (arrays if isinstance(arrays, list) else [arrays])}
    kinds = {s[:3] for s in specs}
    if len(kinds) != 1:
        raise ArgumentError(f"`eager.{name}`: expected samples of one type and rank, got {len(kinds)} kinds")
    return arrays, specs.pop() if len(specs) == 1 else kinds.pop()


def _spec_of_gpu_array(x: GpuArray, layout: str) -> tuple[Any, ...]:
    return _typed(int(x.dtype), x.shape, layout)


def _rows_of(x: list[Any] | tuple[Any, ...] | Batch) -> Any:
    """Return the rows as a list, or as one array if they are one."""
    if isinstance(x, Batch) and x.is_dense:
        return x.whole
    return x if type(x) is list else list(x)


def _argument(value: Any, argument: Any, rows: int | None, name: str, key: str) -> tuple[Any, Any]:
    """Return a numeric argument as fed data, so that other values share the plan; None if it must be constant."""
    if isinstance(value, float) or (type(value) is int and -(1 << 63) <= value < 1 << 64):
        return float(value), _FLOAT64
    if argument.kind in ("int", "float"):
        numbers = _native.numbers_of(value)
        if numbers is not None:
            return numbers, (*_VECTOR, (len(numbers),))
    if isinstance(value, Batch):
        arrays = [to_array(v) for v in value]
        if not arrays:
            raise ArgumentError(f"`eager.{name}`: argument `{key}`: expected a value per row, got a batch without rows")
        known = {a.shape for a in arrays}
        spec = (int(value.dtype), arrays[0].ndim, "")
        return arrays, (*spec, known.pop()) if len(known) == 1 else spec
    if argument.kind not in ("int", "float"):
        return None, None
    try:
        array = np.asarray(value)
    except Exception as error:  # a foreign `__array__` may raise anything, and NumPy refuses ragged lists
        text = f"expected numbers, got {brief(value)}: {reason_of(error)}"
        raise ArgumentError(f"`eager.{name}`: argument `{key}`: {text}") from error
    if array.dtype.kind not in "iufb" or array.dtype.itemsize > 8:
        raise ArgumentError(f"`eager.{name}`: argument `{key}`: expected numbers, got {brief(value)}")
    try:
        array = array.astype(np.float64)
    except (MemoryError, ValueError):  # NumPy's ValueError: more bytes than an address has
        text = f"expected numbers that fit into memory, got an array of shape {array.shape}"
        raise ResourceError(f"`eager.{name}`: argument `{key}`: {text}") from None
    return array, (_FLOAT64[0], array.ndim, "", array.shape)


def _get(name: str) -> Any:
    return attribute("eager", name, _get, _make_function)


def _make_function(name: str) -> Any:
    def function(*inputs: Any, **arguments: Any) -> Any:
        return _call(name, inputs, arguments)

    function.__name__ = function.__qualname__ = name.rsplit(".", 1)[-1]
    function.__doc__ = find(name).__doc__
    function.__module__ = "stoker.eager"
    return function


def imread(path: str | os.PathLike[str], **arguments: Any) -> Any:
    """Read and decode an image file: ``(H, W, C)`` uint8, RGB.

    Args:
        path: path of a regular file.
        **arguments: those of ``decoders.image``.

    Raises:
        OSError: the file cannot be read.
        ArgumentError: the path is none, or that of a pipe or device, which a read may wait for.
        DataError: the file is not an image that can be decoded.
    """
    data = np.fromfile(regular_file(path, "eager.imread"), np.uint8)
    return _call("decoders.image", [data], arguments)


def stream(function: Callable[[Any], Any]) -> Stream:
    """Return a chain of operators that takes a signal in chunks. Its outputs, joined, have the bits of the whole.

    ::

        def features(x):
            x = fn.audio_resample(x, in_rate=44100, out_rate=16000)
            x = fn.spectrogram(fn.preemphasis_filter(x), window_length=400, window_step=160)
            return fn.to_decibels(fn.mel_filter_bank(x, nfilter=80, sample_rate=16000.0), reference=1.0)

        chain = eager.stream(features)
        parts = [chain.push(chunk) for chunk in chunks] + [chain.finish()]
        whole = np.concatenate(parts, chain.axis)

    Chunks may have any size. A stage keeps only the inputs that later outputs need, so memory does not grow with the
    signal. Operators whose results depend on the whole signal are refused: `normalize` by its own mean, `to_decibels`
    without a `reference`, `features.whisper`. Apply them to what the stream gives.

    Args:
        function: function of one node that applies operators of ``fn``, one to the result of the other, with constant
            arguments, and arithmetic with numbers.

    Raises:
        ArgumentError: the function is no such chain.
        UnsupportedError: an operator draws random numbers or has several outputs.
    """
    with IMPORT_LOCK:  # few programs need the module
        from .stream import EagerCalls, make_stream
    return make_stream(function, EagerCalls(_call, batches_of))


_functions: dict[str, Any] = {}  # and groups; only built-in ones


def __getattr__(name: str) -> Any:
    found = _functions.get(name)
    if found is None and name == "video":  # decoders of videos are imported when a program needs them
        with IMPORT_LOCK:
            found = _functions.setdefault(name, importlib.import_module(".video", __package__))
    if found is None:
        found = _get(name)
        if is_built_in(name):
            return _functions.setdefault(name, found)
    return found


def __dir__() -> list[str]:
    return sorted({*members(), "imread", "stream", "video"})
