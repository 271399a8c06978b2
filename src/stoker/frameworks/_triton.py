# SPDX-License-Identifier: Apache-2.0
"""Triton Inference Server: a pipeline as a model of the Python backend, and as a function of PyTriton."""

from __future__ import annotations

import json
import os
import re
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from ..contract.errors import ArgumentError, StokerError, UnsupportedError
from ..contract.file_path import as_path
from ..contract.text import brief
from ..contract.types import DType
from ..contract.whole_number import as_whole_number
from ..frontends.endpoint import Endpoint, Tensor
from ..frontends.pipeline import Pipeline

_TYPES = {
    DType.BOOL: "BOOL", DType.UINT8: "UINT8", DType.UINT16: "UINT16", DType.UINT32: "UINT32", DType.UINT64: "UINT64",
    DType.INT8: "INT8", DType.INT16: "INT16", DType.INT32: "INT32", DType.INT64: "INT64", DType.FLOAT16: "FP16",
    DType.FLOAT: "FP32", DType.FLOAT64: "FP64",
}  # fmt: skip
_FILE = "pipeline.json"
_FORMAT = 1
_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9_.-]*")
_MODEL = '''"""Model of Triton's Python backend, written by `stoker triton-export`."""

from stoker.triton import model

TritonPythonModel = model(__file__)
'''


def export(
    pipeline: Pipeline,
    folder: str | os.PathLike[str],
    name: str,
    output_map: Sequence[str] | None = None,
    *,
    version: int = 1,
    instances: int = 1,
    max_queue_delay_us: int = 0,
) -> Path:
    """Write a model of Triton's Python backend: ``folder/name/config.pbtxt`` and ``folder/name/version/``.

    The server needs the `stoker` package in the Python of its backend, and nothing else of this project. Triton joins
    waiting requests to batches of at most the pipeline's `batch_size`. Inputs of bytes (uint8 with one axis) are
    ``TYPE_STRING`` with one element, so that requests of unlike lengths share a batch. A request that fails gets an
    error of its own.

    Args:
        pipeline: the pipeline, as :class:`~stoker.serve.Endpoint` takes it; functions in Python cannot be exported.
        folder: the model repository; it is made if it is missing.
        name: name of the model: letters, digits, ``_``, ``-`` and ``.``.
        output_map: names of the outputs; by default "output_0" and so on.
        version: version of the model, at least 1.
        instances: number of processes that run the model.
        max_queue_delay_us: microseconds that Triton waits for further requests of a batch.

    Returns:
        The model's folder.

    Raises:
        ArgumentError: an argument is invalid, or the folder has a model of this name and version.
        UnsupportedError: Triton lacks a type, an output is on a GPU, or the pipeline has functions in Python.
        OSError: the files cannot be written.
    """
    path = as_path(folder)
    if path is None:
        raise ArgumentError(f"`export`: expected a folder, got {brief(folder)}")
    if not isinstance(name, str) or not _NAME.fullmatch(name):
        raise ArgumentError(f"`export`: expected a name of letters, digits, `_`, `-` and `.`, got {brief(name)}")
    counts = {"version": version, "instances": instances, "max_queue_delay_us": max_queue_delay_us}
    for key, value in counts.items():
        count = as_whole_number(value)
        if count is None or not (key != "max_queue_delay_us") <= count < 1 << 31:
            raise ArgumentError(f"`export`: expected a whole number as `{key}`, got {brief(value)}")
    endpoint = Endpoint(pipeline, output_map)
    graph = json.loads(pipeline.serialize())
    if '"$": "import"' in json.dumps(graph):
        raise UnsupportedError(
            "`export`: expected a pipeline without functions in Python, which a server would have to import, got one"
        )
    if endpoint.on_gpu:
        raise UnsupportedError(
            "`export`: expected outputs in host memory, got one on a GPU. Return `x.cpu()`, or run the pipeline on the "
            "CPU: Triton copies inputs of the next model to its device"
        )
    text = _config(endpoint, name, instances, max_queue_delay_us)
    model = Path(os.fsdecode(path)) / name
    own = model / str(version)
    if own.exists():
        raise ArgumentError(f"`export`: expected a new version of the model {name}, got {version}, which exists")
    own.mkdir(parents=True)
    saved = {
        "format": _FORMAT,
        "batch_size": pipeline.batch_size,
        "seed": pipeline.seed,
        "outputs": [t.name for t in endpoint.outputs],
        "graph": graph,
    }
    (own / _FILE).write_text(json.dumps(saved, indent=1) + "\n", encoding="utf-8")
    (own / "model.py").write_text(_MODEL, encoding="utf-8")
    (model / "config.pbtxt").write_text(text, encoding="utf-8")
    return model


def _config(endpoint: Endpoint, name: str, instances: int, delay: int) -> str:
    """Return the text of ``config.pbtxt``."""
    tensors = [
        ("input", [_tensor(t, "TYPE_STRING" if _is_text(t) else _type(t)) for t in endpoint.inputs]),
        ("output", [_tensor(t, _type(t)) for t in endpoint.outputs]),
    ]
    return "\n".join(
        [
            f'name: "{name}"',
            'backend: "python"',
            f"max_batch_size: {endpoint.pipeline.batch_size}",
            *(f"{key} [\n" + ",\n".join(items) + "\n]" for key, items in tensors),
            f"instance_group [ {{ count: {instances} kind: KIND_CPU }} ]",
            f"dynamic_batching {{ {f'max_queue_delay_microseconds: {delay} ' if delay else ''}}}",
            "",
        ]
    )


def _tensor(t: Tensor, kind: str) -> str:
    sizes = (1,) if kind == "TYPE_STRING" else tuple(-1 if n is None else n for n in t.shape)
    dims = ", ".join(map(str, sizes or (1,)))  # Triton has no scalars: a number has one element
    return f'  {{ name: "{t.name}" data_type: {kind} dims: [ {dims} ] }}'


def _is_text(t: Tensor) -> bool:
    """Return whether an input takes the bytes of a file."""
    return t.dtype == DType.UINT8 and len(t.shape) == 1


def _type(t: Tensor) -> str:
    if t.dtype not in _TYPES:
        raise UnsupportedError(
            f"`export`: expected types that Triton's Python backend has, got {t.dtype} for {brief(t.name)}. Cast it in "
            "the pipeline, as with `fn.cast(x, dtype=types.FLOAT16)`"
        )
    return f"TYPE_{_TYPES[t.dtype]}"


# ---- in the server ----


def model(file: str) -> type:
    """Return the class of a model that :func:`export` wrote, for its ``model.py``.

    The parameters ``num_threads`` and ``device_id`` of the model's configuration are those of the pipeline.

    Args:
        file: path of ``model.py``.
    """
    folder = Path(file).parent

    class TritonPythonModel:
        """Model of Triton's Python backend."""

        def initialize(self, args: dict[str, Any]) -> None:
            """Load the pipeline.

            Args:
                args: Triton's description of the instance.
            """
            import triton_python_backend_utils as backend

            self._backend = backend
            self._endpoint = load(folder, json.loads(args["model_config"]).get("parameters", {}))

        def execute(self, requests: list[Any]) -> list[Any]:
            """Answer requests.

            Args:
                requests: requests of one or several rows each.
            """
            return _execute(self._backend, self._endpoint, requests)

        def finalize(self) -> None:
            """Stop the pipeline."""
            self._endpoint.close()

    return TritonPythonModel


def load(folder: Path, parameters: dict[str, Any]) -> Endpoint:
    """Return the endpoint of a model's version.

    Args:
        folder: the version's folder.
        parameters: the model's parameters, as Triton's configuration has them.

    Raises:
        ArgumentError: the file is no model of this version of the format, or a parameter is no number.
    """
    saved = json.loads((folder / _FILE).read_text(encoding="utf-8"))
    if not isinstance(saved, dict) or saved.get("format") != _FORMAT:
        raise ArgumentError(f"{folder / _FILE}: expected a model of format {_FORMAT}; export the pipeline again")
    settings: dict[str, Any] = {"batch_size": saved["batch_size"], "seed": saved["seed"]}
    for key in ("num_threads", "device_id"):
        if key in parameters:
            text = parameters[key]["string_value"]
            if not str(text).isdecimal():
                raise ArgumentError(f"expected a whole number as the model's parameter {key!r}, got {brief(text)}")
            settings[key] = int(text)
    pipeline = Pipeline.deserialize(json.dumps(saved["graph"]), **settings)
    return Endpoint(pipeline, saved["outputs"])


def _execute(backend: Any, endpoint: Endpoint, requests: list[Any]) -> list[Any]:
    """Answer all requests together. A request may have several rows; if one fails, the request does."""
    rows: list[Any] = []
    spans: list[Any] = []
    for request in requests:
        try:
            own = _rows_of(backend, endpoint, request)
        except StokerError as error:
            spans.append(error)
            continue
        spans.append((len(rows), len(rows) + len(own)))
        rows += own
    results = endpoint(rows)
    return [_response(backend, endpoint, results, span) for span in spans]


def _rows_of(backend: Any, endpoint: Endpoint, request: Any) -> list[dict[str, Any]]:
    columns = {}
    for t in endpoint.inputs:
        array = backend.get_input_tensor_by_name(request, t.name).as_numpy()
        has_one = _is_text(t) or not t.shape  # a file, or a number
        columns[t.name] = [row[0] for row in array.reshape(len(array), 1)] if has_one else list(array)
    counts = {len(column) for column in columns.values()}
    if len(counts) != 1:
        raise ArgumentError(f"expected inputs of one number of rows, got {sorted(counts)}")
    return [dict(zip(columns, row, strict=True)) for row in zip(*columns.values(), strict=True)]


def _response(backend: Any, endpoint: Endpoint, results: list[Any], span: Any) -> Any:
    own = [] if isinstance(span, StokerError) else results[span[0] : span[1]]
    error = span if isinstance(span, StokerError) else next((r for r in own if isinstance(r, Exception)), None)
    if error is not None:
        return backend.InferenceResponse(error=backend.TritonError(str(error)))
    tensors = []
    for t in endpoint.outputs:
        values = [result[t.name] for result in own]
        shapes = sorted({tuple(v.shape) for v in values})
        if len(shapes) > 1:
            text = f"expected rows of one shape in a request for {t.name}, got {shapes[0]} and {shapes[-1]}"
            return backend.InferenceResponse(error=backend.TritonError(f"{text}. Send them as separate requests"))
        tensors.append(_in_triton(backend, t, values))
    return backend.InferenceResponse(tensors)


def _in_triton(backend: Any, t: Tensor, values: list[Any]) -> Any:
    array = _joined(values)
    return backend.Tensor(t.name, array.reshape(len(values), 1) if array.ndim == 1 else array)


def _joined(rows: list[Any]) -> np.ndarray:
    """Return rows of one shape as an array; without a copy if they are neighbours in the memory of one batch."""
    first = rows[0]
    base, size = first.base, first.nbytes
    if base is None or not size or not all(x.base is base and x.flags.c_contiguous for x in rows):
        return np.stack(rows)
    begin = _address(first)
    if any(_address(x) != begin + i * size or x.dtype != first.dtype for i, x in enumerate(rows)):
        return np.stack(rows)
    return np.lib.stride_tricks.as_strided(first, (len(rows), *first.shape), (size, *first.strides))


def _address(array: np.ndarray) -> int:
    return int(array.__array_interface__["data"][0])


# ---- PyTriton and DALI's decorator ----


def bind(triton: Any, name: str, endpoint: Endpoint, **options: Any) -> None:
    """Bind an endpoint to a PyTriton server: ``bind(triton, "classify", endpoint)``.

    PyTriton refuses a whole batch if a request of it fails; the exported model (:func:`export`) answers per request.

    Args:
        triton: a ``pytriton.triton.Triton``.
        name: name of the model.
        endpoint: the endpoint; its pipeline's `batch_size` is the largest batch.
        **options: further arguments of ``Triton.bind``.
    """
    from pytriton.decorators import batch
    from pytriton.model_config import DynamicBatcher, ModelConfig
    from pytriton.model_config import Tensor as Described

    def described(t: Tensor) -> Any:
        if _is_text(t):
            return Described(name=t.name, dtype=bytes, shape=(1,))
        return Described(name=t.name, dtype=t.dtype.numpy.type, shape=tuple(-1 if n is None else n for n in t.shape))

    texts = {t.name for t in endpoint.inputs if _is_text(t)}

    def answer(**columns: Any) -> dict[str, Any]:
        count = len(next(iter(columns.values())))
        rows = [{k: c[i][0] if k in texts else c[i] for k, c in columns.items()} for i in range(count)]
        results = endpoint(rows)
        for result in results:
            if isinstance(result, Exception):
                raise result
        return {t.name: _joined([_named(endpoint, r)[t.name] for r in results]) for t in endpoint.outputs}

    triton.bind(
        model_name=name, infer_func=batch(answer), inputs=[described(t) for t in endpoint.inputs],
        outputs=[described(t) for t in endpoint.outputs],
        config=ModelConfig(max_batch_size=endpoint.pipeline.batch_size, batcher=DynamicBatcher()), **options,
    )  # fmt: skip


def _named(endpoint: Endpoint, result: Any) -> dict[str, Any]:
    if isinstance(result, dict):
        return result
    values = result if isinstance(result, tuple) else (result,)
    return {t.name: v for t, v in zip(endpoint.outputs, values, strict=True)}


def autoserialize(function: Callable[..., Any]) -> Callable[..., Any]:
    """Mark the pipeline function of a file that ``stoker triton-export`` is to export (DALI's decorator).

    Args:
        function: a ``@pipeline_def`` function without required arguments.
    """
    if not callable(function):
        raise ArgumentError(f"`autoserialize`: expected a pipeline function, got {brief(function)}")
    function._is_autoserialize = True  # type: ignore[attr-defined]
    return function
