# SPDX-License-Identifier: Apache-2.0
"""Hostile calls: every operator and argument in turn, each with a hostile value, eagerly and in pipelines."""

from __future__ import annotations

import contextlib
import importlib.util
import json
import random
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from stoker import Pipeline, eager, fn, math, samplers, tfrecord, types
from stoker.contract.argument import COMMON
from stoker.contract.batch import Batch
from stoker.contract.operator import Operator
from stoker.contract.samples import images
from stoker.contract.text import brief
from stoker.frontends.registry import find, names
from tests.hostile import values

Draw = random.Random
ROWS = 2


@dataclass(frozen=True)
class Case:
    """One call, with a description that names the operator, the argument and the value."""

    text: str
    call: Callable[[], object]


@dataclass(frozen=True)
class Target:
    """One place for a hostile value. ``draw`` returns a case for it."""

    name: str
    draw: Callable[[Draw], Case]


# ---- operators ----


def _function(x: Any) -> Any:
    return np.asarray(x)[..., :1]


def _same(x: Any) -> Any:
    return x


def valid_calls(operator: type[Operator], folder: Path) -> list[dict[str, Any]]:
    """Return arguments of valid calls: the operator's cases, and own ones for operators that have none."""
    files = sorted(map(str, folder.glob("*.jpg")))
    top = folder.parents[1]
    own: dict[str, list[dict[str, Any]]] = {
        "readers.file": [
            {"files": files}, {"files": files, "labels": list(range(len(files)))}, {"file_root": str(folder.parent)},
            {"file_list": str(folder.parents[1] / "list.txt"), "file_root": str(folder.parent)},
            {"files": files, "random_shuffle": True}, {"files": files, "num_shards": 2, "shard_id": 1},
        ],
        "readers.tfrecord": [
            {"path": str(top / "a.tfrecord"), "features": {"image": tfrecord.FixedLenFeature((), tfrecord.string, ""),
                                                           "label": tfrecord.VarLenFeature(tfrecord.int64)}},
            {"path": [str(top / "a.tfrecord")],
             "features": {"label": tfrecord.FixedLenFeature([1], tfrecord.int64, 0)}},
        ],
        "readers.mxnet": [{"path": str(top / "a.rec")}, {"path": [str(top / "a.rec")], "random_shuffle": True}],
        "readers.webdataset": [
            {"paths": str(top / "a.tar"), "ext": "jpg"},
            {"paths": [str(top / "a.tar")], "ext": ["jpg", "cls"], "dtypes": [types.UINT8, types.FLOAT]},
        ],
        "readers.zip": [{"paths": str(top / "a.zip")}, {"paths": [str(top / "a.zip")], "extensions": [".jpg"]}],
        "readers.bagz": [{"paths": str(top / "a.bag")}, {"paths": [str(top / "a.bag")], "random_shuffle": True}],
        "readers.mds": [
            {"path": str(top / "mds"), "columns": ["image", "label"]}, {"path": str(top / "mds"), "columns": "label"},
        ],
        "readers.huggingface": [
            {"source": str(top / "a-hf"), "columns": ["image", "label"]},
            {"source": str(top / "a-hf"), "columns": "label", "random_shuffle": True},
        ],
        "readers.dataset": [
            {"source": [np.zeros(3, np.uint8)] * ROWS}, {"source": [(1, 2.0)] * ROWS, "num_outputs": 2},
            {"source": [{"a": 1, "b": b"b"}] * ROWS, "columns": ["a", "b"]},
        ],
        "readers.parquet": [
            {"paths": str(top / "a.parquet"), "columns": ["image", "label"], "label": "label"},
            {"paths": [str(top / "a.parquet")], "columns": "image", "cache_bytes": 0},
        ],
        "readers.caffe2": [
            {"path": str(top / "caffe2")}, {"path": str(top / "caffe2"), "label_type": 1, "num_labels": 9},
            {"path": str(top / "caffe2"), "label_type": 4, "additional_inputs": 1},
        ],
        "readers.caffe": [
            {"path": str(top / "lmdb")}, {"path": [str(top / "lmdb" / "data.mdb")], "label_available": False},
        ],
        "readers.sequence": [
            {"file_root": str(folder.parent), "sequence_length": 2},
            {"file_root": str(folder.parent), "sequence_length": 1, "step": 2, "stride": 2, "image_type": types.GRAY},
        ],
        "readers.coco": [
            {"file_root": str(folder), "annotations_file": str(top / "a.json"), "polygon_masks": True},
            {"file_root": str(folder), "annotations_file": str(top / "a.json"), "pixelwise_masks": True,
             "images": ["0.jpg"], "image_ids": True},
        ],
        "readers.numpy": [
            {"files": [str(top / "a.npy")], "roi_start": [1, 2], "roi_shape": [2, 3], "roi_axes": [0, 1]},
            {"files": [str(top / "a.npy")], "rel_roi_start": [0.1, 0.2], "rel_roi_end": [0.5, 0.9]},
            {"files": [str(top / "a.npy")], "roi_end": [9, 3], "out_of_bounds_policy": "pad", "fill_value": 3.0},
            {"file_root": str(top), "rel_roi_shape": [0.5]}, {"files": ["a.npy"], "file_root": str(top)},
        ],
        "readers.audio": [
            {"files": [str(top / "a.wav")], "texts": ["a"]}, {"files": ["a.wav"], "file_root": str(top), "labels": [3]},
            {"files": [str(top / "a.wav")], "sample_rate": 4000.0, "downmix": False, "dtype": types.INT16},
        ],
        "readers.video": [
            {"filenames": str(top / "a.mp4"), "sequence_length": 3, "labels": [1], "enable_frame_num": "sequence"},
            {"filenames": [str(top / "a.mp4")], "sequence_length": 4, "stride": 2, "pad_mode": "edge",
             "enable_timestamps": True, "dtype": types.FLOAT},
        ],
        "experimental.readers.video": [
            {"filenames": str(top / "a.mp4"), "sequence_length": 3, "uniform_sample": True},
            {"filenames": str(top / "a.mp4"), "sequence_length": 4, "pad_mode": "constant", "fill_value": [1, 2, 3]},
        ],
        "readers.video_resize": [
            {"filenames": str(top / "a.mp4"), "sequence_length": 3, "size": [8, 9]},
            {"filenames": str(top / "a.mp4"), "sequence_length": 2, "resize_shorter": 7, "dtype": types.FLOAT},
        ],
        "readers.nemo_asr": [
            {"manifest_filepaths": str(top / "speech.json"), "read_idxs": True},
            {"manifest_filepaths": [str(top / "speech.json")], "min_duration": 0.001, "read_text": False},
        ],
        "external_source": [
            {"source": [[np.zeros(3, np.uint8)] * ROWS] * 3}, {"source": lambda: [np.zeros(3, np.uint8)] * ROWS},
            {"source": lambda i: ([1] * ROWS, [2.0] * ROWS), "num_outputs": 2},
            {"source": lambda info: np.zeros((2, 2), np.float32), "batch": False, "dtype": types.FLOAT, "ndim": 2},
        ],
        "python_function": [{"function": _function}, {"function": _function, "num_outputs": 1}],
        "gpu_function": [{"function": _same}, {"function": _same, "fills": True, "output_shapes": _same}],
        "dl_tensor_python_function": [{"function": _same}, {"function": _same, "batch_processing": False}],
        "permute_batch": [{"indices": list(range(ROWS))}],
    }  # fmt: skip
    return own.get(operator.name) or [dict(case) for case in operator.cases] or [{}]


def valid_inputs(operator: type[Operator], case: Mapping[str, Any]) -> list[list[Any]]:
    """Return valid inputs: per input an array per row."""
    rows = operator.case_inputs(case)
    if rows is None:
        rows = images(copies=operator.inputs[0])
    rows = [rows[i % len(rows)] for i in range(ROWS)]
    return [[np.asarray(row[i]) for row in rows] for i in range(len(rows[0]))]


def _walk_operator(name: str, folder: Path) -> Iterator[Target]:
    operator = find(name)
    calls = valid_calls(operator, folder)
    for key, declared in operator.all_arguments().items():
        if key in COMMON and name not in ("resize", "readers.file", "external_source"):
            continue
        yield Target(f"fn.{name}({key})", lambda d, k=key: _constant(d, name, calls, k))  # type: ignore[misc]
        if not operator.is_source:
            yield Target(f"eager.{name}({key})", lambda d, k=key: _eager(d, name, calls, k))  # type: ignore[misc]
        if declared.per_row:
            yield Target(f"fed fn.{name}({key})", lambda d, k=key: _fed(d, name, calls, k))  # type: ignore[misc]
    if operator.inputs[1]:
        for i in range(4):
            yield Target(f"eager.{name} input {i}", lambda d: _eager_input(d, name, calls))
        yield Target(f"fn.{name} input", lambda d: _fed_input(d, name, calls))
        yield Target(f"fn.{name} constant input", lambda d: _constant_input(d, name, calls))


def _with(
    drawn: Draw, name: str, calls: list[dict[str, Any]], key: str
) -> tuple[dict[str, Any], list[list[Any]], str, Callable[[], Any]]:
    """Return a valid call, its inputs, and a hostile value for ``key``. A few calls have two hostile arguments."""
    call = dict(drawn.choice(calls))
    inputs = valid_inputs(find(name), call) if find(name).inputs[1] else []
    text, make = values.argument(drawn, call.get(key))
    others = sorted(set(call) - {key})
    if others and drawn.random() < 0.1:
        other = drawn.choice(others)
        text2, make2 = values.argument(drawn, call[other])
        call[other] = make2()
        text += f", {other}={text2}"
    return call, inputs, text, make


def _call_of(module: Any, name: str) -> Any:
    for part in name.split("."):
        module = getattr(module, part)
    return module


def _pipeline(drawn: Draw, define: Callable[[], Any]) -> None:
    """Build and run a pipeline, twice, and close it."""
    pipe = Pipeline(
        batch_size=ROWS, num_threads=1, seed=1, device_id=None, prefetch_queue_depth=drawn.choice((1, 2)),
        exec_async=drawn.random() < 0.3, on_error=drawn.choice(("raise", "raise", "raise", "skip", "replace")),
    )  # fmt: skip
    try:
        with pipe:
            result = define()
            result = list(result.values()) if isinstance(result, dict) else result
            pipe.set_outputs(*(result if isinstance(result, (list, tuple)) else (result,)))
        # `with` closes a pipeline that runs; this one has not been built yet.
        pipe.run()
        pipe.run()
    except StopIteration:
        pass
    finally:
        pipe.close()


def _sources(columns: list[list[Any]]) -> list[Any]:
    layouts = [{3: "HWC", 4: "FHWC"}.get(np.ndim(c[0])) if _is_image(c[0]) else None for c in columns]
    return [fn.external_source(lambda c=c: c, layout=at) for c, at in zip(columns, layouts, strict=True)]  # type: ignore[misc]


def _is_image(x: Any) -> bool:
    return isinstance(x, np.ndarray) and x.ndim in (3, 4) and x.shape[-1] == 3


def _constant(drawn: Draw, name: str, calls: list[dict[str, Any]], key: str) -> Case:
    call, inputs, text, make = _with(drawn, name, calls, key)

    def run() -> None:
        _pipeline(drawn, lambda: _call_of(fn, name)(*_sources(inputs), **{**call, key: make()}))

    return Case(f"fn.{name}({_short(call)}, {key}={text})", run)


def _eager(drawn: Draw, name: str, calls: list[dict[str, Any]], key: str) -> Case:
    call, inputs, text, make = _with(drawn, name, calls, key)
    batched = drawn.random() < 0.2

    def run() -> None:
        value = make()
        if batched and isinstance(value, np.ndarray) and value.dtype.kind in "biuf" and value.dtype.char != "g":
            value = Batch([value] * ROWS, types.DType.of(value.dtype.newbyteorder("=")))
        _call_of(eager, name)(*(x if batched else x[0] for x in inputs), **{**call, key: value})

    return Case(f"eager.{name}({_short(call)}, {key}={text}){' on a batch' if batched else ''}", run)


def _fed(drawn: Draw, name: str, calls: list[dict[str, Any]], key: str) -> Case:
    call, inputs, text, make = _with(drawn, name, calls, key)

    def run() -> None:

        def define() -> Any:
            value = fn.external_source(lambda: [make()] * ROWS)
            return _call_of(fn, name)(*_sources(inputs), **{**call, key: value})

        _pipeline(drawn, define)

    return Case(f"fn.{name}({_short(call)}, {key}=external_source of {text})", run)


def _hostile_columns(drawn: Draw, name: str, call: Mapping[str, Any]) -> tuple[str, list[list[Any]]]:
    """Return valid inputs, one of which is hostile in one or all rows."""
    columns = valid_inputs(find(name), call) or [[]]
    at = drawn.randrange(len(columns))
    text, make = values.sample(drawn)
    if drawn.random() < 0.5:
        columns[at] = [make() for _ in range(ROWS)]
        return f"input {at} = {text}", columns
    row = drawn.randrange(ROWS)
    columns[at] = list(columns[at]) or [np.zeros((8, 9, 3), np.uint8)] * ROWS
    columns[at][row] = make()
    return f"input {at}, row {row} = {text}", columns


def _eager_input(drawn: Draw, name: str, calls: list[dict[str, Any]]) -> Case:
    call = dict(drawn.choice(calls))
    batched = drawn.random() < 0.3
    empty = batched and drawn.random() < 0.1
    text, columns = _hostile_columns(drawn, name, call)

    def run() -> None:
        rows = [[] if empty else c for c in columns]
        _call_of(eager, name)(*(c if batched else c[0] for c in rows), **call)

    return Case(
        f"eager.{name}({text}{' of none' if empty else ''}{' as a batch' if batched else ''}, {_short(call)})", run
    )


def _fed_input(drawn: Draw, name: str, calls: list[dict[str, Any]]) -> Case:
    call = dict(drawn.choice(calls))
    text, columns = _hostile_columns(drawn, name, call)

    def run() -> None:
        _pipeline(drawn, lambda: _call_of(fn, name)(*_sources(columns), **call))

    return Case(f"fn.{name}(external_source: {text}, {_short(call)})", run)


def _constant_input(drawn: Draw, name: str, calls: list[dict[str, Any]]) -> Case:
    call = dict(drawn.choice(calls))
    text, columns = _hostile_columns(drawn, name, call)

    def run() -> None:
        _pipeline(drawn, lambda: _call_of(fn, name)(*(c[-1] for c in columns), **call))

    return Case(f"fn.{name}({text}, {_short(call)})", run)


def _short(call: Mapping[str, Any]) -> str:
    return ", ".join(f"{k}={brief(v, 40)}" for k, v in call.items())


# ---- pipelines ----

_SETTINGS = (
    "batch_size", "num_threads", "device_id", "seed", "shards", "prefetch_queue_depth", "exec_async", "exec_pipelined",
    "checkpoint", "epoch_reader", "on_error", "error_limit", "uneven_ranks", "py_num_workers", "py_start_method",
    "py_callback_pickler", "passes", "gpu_memory_limit", "max_batch_bytes", "gpu_jpeg_index", "gpu_jpeg_index_path",
    "gpu_decoder_load", "gpu_utilization", "without_gpu", "output_dtype", "output_ndim", "output_layout", "unknown",
)  # fmt: skip


def _reading(folder: Path, **settings: Any) -> Pipeline:
    pipe = Pipeline(**{"batch_size": ROWS, "num_threads": 1, "seed": 1, "device_id": None, **settings})
    with pipe:
        data, label = fn.readers.file(file_root=str(folder.parent), name="reader", random_shuffle=True)
        fed = fn.external_source(name="fed", repeat_last=True)
        pipe.set_outputs(fn.decoders.image(data), label, fed)
    pipe.feed_input("fed", [1, 2])
    return pipe


def _setting(drawn: Draw, folder: Path, key: str) -> Case:
    text, make = values.argument(drawn)

    def run() -> None:
        pipe = Pipeline(
            **{"batch_size": ROWS, "num_threads": 1, "seed": 1, "device_id": None, "exec_async": False, key: make()}
        )
        with pipe:
            data, label = fn.readers.file(file_root=str(folder.parent))
            pipe.set_outputs(data, label, fn.random.uniform(range=(0, 1)))
        try:
            pipe.run()
        finally:
            pipe.close()

    return Case(f"Pipeline({key}={text})", run)


_METHODS: dict[str, Callable[[Pipeline, Any], object]] = {
    "run(**fed)": lambda pipe, x: pipe.run(fed=x),
    "run(**unknown)": lambda pipe, x: pipe.run(unknown=x),
    "feed_input(data)": lambda pipe, x: pipe.feed_input("fed", x),
    "feed_input(rows)": lambda pipe, x: pipe.feed_input("fed", [x, x]),
    "feed_input(name)": lambda pipe, x: pipe.feed_input(x, [1, 2]),
    "feed_input(layout)": lambda pipe, x: pipe.feed_input("fed", [1, 2], layout=x),
    "next(at_end)": lambda pipe, x: pipe.next(x),
    "start_epoch": lambda pipe, x: pipe.start_epoch(x),
    "epoch_size": lambda pipe, x: pipe.epoch_size(x),
    "reader_meta": lambda pipe, x: pipe.reader_meta(x),
    "set_state": lambda pipe, x: pipe.set_state(x),
    "show": lambda pipe, x: pipe.show(x),
    "deserialize": lambda pipe, x: Pipeline.deserialize(x),
    "deserialize(allow)": lambda pipe, x: Pipeline.deserialize(pipe.serialize(), allow=x),
    "set_outputs": lambda pipe, x: pipe.set_outputs(x),
}


def _method(drawn: Draw, folder: Path, key: str) -> Case:
    text, make = values.argument(drawn)

    def run() -> None:
        pipe = _reading(folder, exec_async=drawn.random() < 0.3)
        try:
            _METHODS[key](pipe, make())
            pipe.run()
        finally:
            pipe.close()

    return Case(f"Pipeline.{key} with {text}", run)


def _paths(value: Any, path: tuple[Any, ...] = ()) -> Iterator[tuple[Any, ...]]:
    """Yield the paths of all entries in nested dicts and lists."""
    entries = value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ()
    for key, entry in entries:
        yield (*path, key)
        yield from _paths(entry, (*path, key))


def _replaced(value: Any, path: tuple[Any, ...], new: Any) -> Any:
    if not path:
        return new
    copy = dict(value) if isinstance(value, dict) else list(value)
    copy[path[0]] = _replaced(copy[path[0]], path[1:], new)
    return copy


def _state(drawn: Draw, folder: Path) -> Case:
    pipe = Pipeline(batch_size=ROWS, num_threads=1, seed=1, device_id=None, exec_async=False)

    def counted(i: int) -> list[int]:
        return [i] * ROWS

    with pipe:
        data, label = fn.readers.file(file_root=str(folder.parent), random_shuffle=True)
        pipe.set_outputs(data, label, fn.external_source(counted))
    pipe.run()
    token = json.loads(json.dumps(pipe.get_state()))
    path = drawn.choice(list(_paths(token)))
    text, make = values.argument(drawn)

    def run() -> None:
        try:
            pipe.set_state(_replaced(token, path, make()))
            pipe.run()
        finally:
            pipe.close()

    return Case(f"set_state({''.join(f'[{p!r}]' for p in path)} = {text})", run)


def _graph_text(drawn: Draw, folder: Path) -> Case:
    pipe = Pipeline(batch_size=ROWS, num_threads=1, seed=1, device_id=None)
    with pipe:
        data, label = fn.readers.file(file_root=str(folder.parent), random_shuffle=True)
        image = fn.crop_mirror_normalize(
            fn.resize(fn.decoders.image(data), size=(4, 5)), mean=[1.0], mirror=fn.random.coin_flip()
        )
        pipe.set_outputs(image, label + 1)
    graph = json.loads(pipe.serialize())
    path = drawn.choice(list(_paths(graph)))
    text, make = values.argument(drawn)

    def run() -> None:
        try:
            written = json.dumps(_replaced(graph, path, make()))
        except (TypeError, ValueError, RecursionError):
            return  # JSON has no such value
        again = Pipeline.deserialize(written, batch_size=ROWS, num_threads=1, seed=1, device_id=None, exec_async=False)
        try:
            again.run()
        finally:
            again.close()

    return Case(f"deserialize({''.join(f'[{p!r}]' for p in path)} = {text})", run)


_OPERATORS: dict[str, Callable[[Any, Any], Any]] = {
    "+": lambda a, b: a + b,
    "-": lambda a, b: b - a,
    "*": lambda a, b: a * b,
    "/": lambda a, b: b / a,
    "//": lambda a, b: a // b,
    "%": lambda a, b: b % a,
    "**": lambda a, b: a**b,
    "&": lambda a, b: a & b,
    "|": lambda a, b: a | b,
    "<": lambda a, b: a < b,
    "==": lambda a, b: a == b,
    "[]": lambda a, b: a[b],
    "[:b]": lambda a, b: a[:b],
    "[b:]": lambda a, b: a[b:],
    "[..., b]": lambda a, b: a[..., b],
    "[::b]": lambda a, b: a[::b],
    "math.min": lambda a, b: math.min(a, b),
    "math.clamp": lambda a, b: math.clamp(a, b, 3),
    "math.pow": lambda a, b: math.pow(a, b),
    "gpu": lambda a, b: fn.stack(a, b),
    "list": lambda a, b: fn.resize(a, size=[a[0, 0, 0], b]),
}


def _arithmetic(drawn: Draw, symbol: str) -> Case:
    text, make = values.argument(drawn)

    def run() -> None:
        def define() -> Any:
            return _OPERATORS[symbol](fn.external_source(lambda: [np.full((4, 5, 3), 7, np.int32)] * ROWS), make())

        _pipeline(drawn, define)

    return Case(f"node {symbol} {text}", run)


_CONSTANTS = ("value", "dtype", "shape", "layout", "device")


def _constant_node(drawn: Draw, key: str) -> Case:
    text, make = values.argument(drawn, (2, 3) if key == "shape" else None)
    dtype = drawn.choice((None, None, types.UINT8, types.FLOAT16, types.BOOL, types.INT64))

    def run() -> None:
        given = {"value": 3, "dtype": dtype, key: make()}
        _pipeline(drawn, lambda: types.Constant(**given))

    return Case(f"types.Constant({key}={text}, dtype={dtype})", run)


def _source_result(drawn: Draw, how: str) -> Case:
    text, make = values.sample(drawn)
    declared = drawn.choice(
        ({}, {}, {"dtype": types.UINT8}, {"ndim": 3}, {"layout": "HWC"}, {"dtype": types.FLOAT, "ndim": 1})
    )

    def run() -> None:
        count = 0

        def one(*info: Any) -> Any:
            nonlocal count
            count += 1
            if how == "later batch" and count < 2:
                return [np.zeros((8, 9, 3), np.uint8)] * ROWS
            return {
                "batch": make,
                "later batch": lambda: [make()] * ROWS,
                "mixed": lambda: [np.zeros((8, 9, 3), np.uint8), make()],
                "rows": lambda: [make(), make()],
                "sample": make,
                "tuple": lambda: (make(), [1, 2]),
            }[how]()

        more = {"batch": False} if how == "sample" else {"num_outputs": 2} if how == "tuple" else {}
        _pipeline(drawn, lambda: fn.external_source(one, **more, **declared))

    return Case(f"external_source whose {how} is {text}, {_short(declared)}", run)


def _function_result(drawn: Draw, how: str) -> Case:
    text, make = values.sample(drawn)

    def run() -> None:
        more = {"num_outputs": 2} if how == "tuple" else {"batch_processing": True} if how == "batch" else {}
        _pipeline(drawn, lambda: fn.python_function(fn.random.uniform(range=(0, 1)), function=lambda x: make(), **more))

    return Case(f"python_function ({how}) that returns {text}", run)


_SAMPLERS: dict[str, Callable[[Any], Any]] = {
    "Shuffled(seed)": lambda x: samplers.Shuffled(x),
    "Shuffled(first_epoch)": lambda x: samplers.Shuffled(first_epoch=x),
    "Windowed(block)": lambda x: samplers.Windowed(x, 2),
    "Windowed(window)": lambda x: samplers.Windowed(2, x),
    "Weighted(weights)": lambda x: samplers.Weighted(x),
    "Weighted(num_samples)": lambda x: samplers.Weighted([1.0] * 6, x),
    "Weighted(seed)": lambda x: samplers.Weighted([1.0] * 6, seed=x),
    "Bucketed(lengths)": lambda x: samplers.Bucketed(x, 2),
    "Bucketed(group)": lambda x: samplers.Bucketed([1.0] * 6, x),
    "Bucketed(buckets)": lambda x: samplers.Bucketed([1.0] * 6, 2, buckets=x),
    "ClassBalanced": lambda x: samplers.ClassBalanced(x),
    "ClassBalanced(seed)": lambda x: samplers.ClassBalanced(seed=x),
    "Mixed(sizes)": lambda x: samplers.Mixed(x, [1.0, 1.0]),
    "Mixed(weights)": lambda x: samplers.Mixed([3, 3], x),
    "Mixed(num_samples)": lambda x: samplers.Mixed([3, 3], [1, 1], x),
    "Mixed(seed)": lambda x: samplers.Mixed([3, 3], [1, 1], seed=x),
    "of the user": lambda x: x,
}


def _sampler(drawn: Draw, folder: Path, key: str) -> Case:
    text, make = values.argument(
        drawn, {"Weighted(weights)": [1.0] * 6, "Bucketed(lengths)": [1.0] * 6, "Mixed(sizes)": [3, 3]}.get(key)
    )

    def run() -> None:
        _pipeline(drawn, lambda: fn.readers.file(file_root=str(folder.parent), sampler=_SAMPLERS[key](make())))

    return Case(f"sampler {key} with {text}", run)


def _loader(drawn: Draw, folder: Path, key: str) -> Case:
    text, make = values.argument(drawn)

    def run() -> None:
        from stoker.torch import Loader

        pipe = Pipeline(batch_size=ROWS, num_threads=1, seed=1, device_id=None)
        with pipe:
            pipe.set_outputs(*fn.readers.file(file_root=str(folder.parent)))
        try:
            if key == "load_state_dict":
                loader = Loader(pipe)
                loader.load_state_dict(make())
            elif key == "set_epoch":
                loader = Loader(pipe)
                loader.set_epoch(make())
            else:
                loader = Loader(**{"pipeline": pipe, key: make()})
                len(loader)
            for _, _batch in zip(range(3), loader, strict=False):
                pass
        finally:
            pipe.close()

    return Case(f"Loader {key} with {text}", run)


def _imread(drawn: Draw) -> Case:
    text, make = values.argument(drawn)

    def run() -> None:
        with contextlib.suppress(OSError):  # documented: there is no such file
            eager.imread(make())

    return Case(f"eager.imread({text})", run)


def _open_video(drawn: Draw) -> Case:
    text, make = values.argument(drawn)

    def run() -> None:
        with contextlib.suppress(OSError):  # documented: there is no such file
            eager.video.open(make())

    return Case(f"eager.video.open({text})", run)


LOADER = (
    "pipeline", "output_map", "last_batch_policy", "size", "pin_memory", "ragged", "memory_format", "load_state_dict",
    "set_epoch",
)  # fmt: skip


def targets(folder: Path) -> list[Target]:
    """Return all targets. ``folder`` holds JPEG files, and is the only folder in its parent."""
    found: list[Target] = []
    for name in names():
        if not name.startswith("_"):
            found += _walk_operator(name, folder)
    found += [Target(f"Pipeline({k})", lambda d, k=k: _setting(d, folder, k)) for k in _SETTINGS]  # type: ignore[misc]
    found += [Target(f"Pipeline.{k}", lambda d, k=k: _method(d, folder, k)) for k in _METHODS]  # type: ignore[misc]
    found += [Target("state", lambda d: _state(d, folder))] * 12
    found += [Target("graph", lambda d: _graph_text(d, folder))] * 24
    found += [Target(f"node {k}", lambda d, k=k: _arithmetic(d, k)) for k in _OPERATORS]  # type: ignore[misc]
    found += [Target(f"Constant({k})", lambda d, k=k: _constant_node(d, k)) for k in _CONSTANTS]  # type: ignore[misc]
    hows = ("batch", "later batch", "mixed", "rows", "sample", "tuple")
    found += [Target(f"source {k}", lambda d, k=k: _source_result(d, k)) for k in hows]  # type: ignore[misc]
    found += [Target(f"function {k}", lambda d, k=k: _function_result(d, k)) for k in ("row", "batch", "tuple")]  # type: ignore[misc]
    found += [Target(f"sampler {k}", lambda d, k=k: _sampler(d, folder, k)) for k in _SAMPLERS]  # type: ignore[misc]
    found += [Target("imread", _imread), Target("video", _open_video)]
    if importlib.util.find_spec("torch"):
        found += [Target(f"Loader {k}", lambda d, k=k: _loader(d, folder, k)) for k in LOADER]  # type: ignore[misc]
    return found


def draw(all_targets: list[Target], seed: int, number: int) -> Case:
    """Return case ``number`` of a walk: one round after the other through all targets, each in another order."""
    which, place = divmod(number, len(all_targets))
    order = list(range(len(all_targets)))
    random.Random(f"{seed} {which}").shuffle(order)
    return all_targets[order[place]].draw(random.Random(f"{seed} {number}"))
