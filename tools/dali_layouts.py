# SPDX-License-Identifier: Apache-2.0
"""Axis names of the outputs of operators on inputs without names, of NVIDIA DALI and of Stoker.

``PYTHON tools/dali_layouts.py``: PYTHON is an interpreter with nvidia-dali (a CPU is enough). The program stores DALI's
names, and its errors for inputs of other numbers of axes, in tests/compat/dali_layouts.json, with which
tests/compat/test_dali_layouts.py compares. An operator that DALI has for GPUs alone is recorded from its schema: the
first layout with as many axes as the input, which is the rule that the operators of the CPU obey.
"""

from __future__ import annotations

import importlib
import json
import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np

RECORD = Path(__file__).resolve().parents[1] / "tests" / "compat" / "dali_layouts.json"
SHAPES = {1: (10,), 2: (10, 12), 3: (10, 12, 3), 4: (4, 10, 12, 3), 5: (2, 4, 10, 12, 3)}
GRAY = ("debayer", "experimental.debayer")  # operators of one channel

Case = Callable[[Any, Any, Any], Any]  # takes the modules `fn` and `types`, and the input's node
CASES: dict[str, tuple[str, Case]] = {}  # the operator, and a pipeline

_ZOOM = [0.9, 0.0, 1.0, 0.0, 0.9, 1.0]
_VOLUME = [0.9, 0.0, 0.0, 1.0, 0.0, 0.9, 0.0, 1.0, 0.0, 0.0, 0.9, 0.0]
_KERNEL = np.full((3, 3), 1 / 9, np.float32)
_MAP = np.zeros((10, 12), np.float32)


def _case(name: str, *inputs: Any, variant: str = "", **arguments: Any) -> None:
    """Add a case of one operator. Strings like "types.X" are looked up."""

    def define(fn: Any, types: Any, x: Any) -> Any:
        function = fn
        for part in name.split("."):
            function = getattr(function, part)
        found = {
            k: getattr(types, v[6:]) if isinstance(v, str) and v.startswith("types.") else v
            for k, v in arguments.items()
        }
        return function(x, *inputs, **found)

    CASES[f"{name}, {variant}" if variant else name] = name, define


for _name in ("resize", "experimental.resize"):
    _case(_name, resize_x=6.0, resize_y=5.0)
_case("resize", variant="volume", size=[3.0, 5.0, 6.0])
for _name in ("resize_crop_mirror", "fast_resize_crop_mirror"):
    _case(_name, resize_x=6.0, resize_y=5.0, crop=(4.0, 4.0))
_case("random_resized_crop", size=[4, 4])
_case("tensor_resize", sizes=[5.0, 6.0], axes=[0, 1])
_case("rotate", angle=10.0)
_case("warp_affine", matrix=_ZOOM)
_case("warp_affine", variant="volume", matrix=_VOLUME)
_case("experimental.warp_perspective", matrix=[1.0, 0.0, 0.0, 0.0, 1.0, 0.0, 0.0, 0.0, 1.0])
_case("brightness", brightness=1.2)
_case("contrast", contrast=1.2)
_case("brightness_contrast", contrast=1.2)
_case("brightness_contrast", variant="without effect")
_case("hsv", hue=10.0)
_case("hue", hue=10.0)
_case("saturation", saturation=1.5)
_case("color_twist", hue=10.0)
_case("color_space_conversion", image_type="types.RGB", output_type="types.BGR")
_case("color_space_conversion", variant="gray", image_type="types.RGB", output_type="types.GRAY")
_case("gaussian_blur", sigma=1.0)
_case("laplacian")
for _name in ("filter", "experimental.filter"):
    _case(_name, _KERNEL)
_case("flip")
_case("flip", variant="depth", horizontal=0, depthwise=1)
_case("flip", variant="without effect", horizontal=0)
_case("crop", crop=(3.0, 3.0))
_case("crop", variant="volume", crop=(2.0, 3.0, 3.0))
_case("crop", variant="whole")
_case("crop_mirror_normalize", crop=(3.0, 3.0))
_case("crop_mirror_normalize", variant="HWC", crop=(3.0, 3.0), output_layout="HWC")
_case("slice", (0.0, 0.0), (0.5, 0.5))
_case("slice", variant="axes", start=(1,), end=(3,), axes=(0,))
_case("pad", fill_value=0.0)
_case("pad", variant="shape", axes=(0, 1), shape=(20, 20))
_case("paste", ratio=1.5, fill_value=0)
_case("multi_paste", in_ids=np.array([0], np.int32), output_size=(20, 20))
_case("erase", anchor=(1.0, 1.0), shape=(2.0, 2.0), axes=(0, 1))
for _name in ("equalize", "experimental.equalize"):
    _case(_name)
_case("clahe", tiles_x=2, tiles_y=2, clip_limit=2.0)
_case("jpeg_compression_distortion", quality=50)
for _name in ("sphere", "water", "jitter"):
    _case(_name)
_case("grid_mask", tile=4)
_case("noise.gaussian", stddev=1.0)
_case("noise.salt_and_pepper")
_case("noise.shot", factor=10.0)
for _name in ("experimental.dilate", "experimental.erode", "experimental.median_blur"):
    _case(_name)
_case("experimental.remap", _MAP, _MAP)
for _name in GRAY:
    _case(_name, blue_position=(0, 0), algorithm="bilinear_ocv")
_case("lookup_table", keys=[1], values=[2.0])
_case("coord_transform", M=2.0)
_case("normalize")
_case("normalize", variant="axes", axes=(0,))
for _name in ("sum", "mean", "max", "min", "mean_square", "rms"):
    _case(f"reductions.{_name}")
    _case(f"reductions.{_name}", variant="one axis", axes=0)
_case("reductions.sum", variant="keep_dims", keep_dims=True)
_case("cast", dtype="types.FLOAT")
_case("copy")
_case("one_hot", num_classes=3)
_case("reshape", shape=[-1])
_case("expand_dims", axes=[0])
_case("per_frame")
_case("sequence_rearrange", new_order=[1, 0])
_case("element_extract", element_map=[0])
CASES["transpose"] = "transpose", lambda fn, types, x: fn.transpose(x, perm=[0])
for _rank in (2, 3, 4, 5):
    _case("transpose", variant=f"{_rank} axes", perm=list(range(_rank))[::-1])
    _case("transpose", variant=f"{_rank} axes, named", perm=list(range(_rank))[::-1], output_layout="ABCDE"[:_rank])
CASES["reductions.std_dev"] = (
    "reductions.std_dev", lambda fn, types, x: fn.reductions.std_dev(x, fn.reductions.mean(x))
)  # fmt: skip
CASES["reductions.variance"] = (
    "reductions.variance", lambda fn, types, x: fn.reductions.variance(x, fn.reductions.mean(x))
)  # fmt: skip
CASES["cat"] = "cat", lambda fn, types, x: fn.cat(x, x, axis=0)
CASES["stack"] = "stack", lambda fn, types, x: fn.stack(x, x)
CASES["arithmetic"] = "arithmetic", lambda fn, types, x: x + 1
CASES["crop and resize"] = "crop", lambda fn, types, x: fn.resize(fn.crop(x, crop=(4.0, 4.0)), resize_x=6.0)
CASES["flip and transpose"] = "flip", lambda fn, types, x: fn.transpose(fn.flip(x), perm=[2, 0, 1])
CASES["flip and slice"] = "flip", lambda fn, types, x: fn.slice(fn.flip(x), (0.0, 0.0), (0.5, 0.2))
CASES["flip and crop"] = "flip", lambda fn, types, x: fn.crop(fn.flip(x), crop=(3.0, 3.0))


def make_input(name: str, rank: int) -> Any:
    """Return the row of a case."""
    shape = SHAPES[rank]
    shape = (*shape[:-1], 1) if CASES[name][0] in GRAY and rank > 2 else shape
    data = (np.arange(int(np.prod(shape))) % 251).reshape(shape)
    return (data / 300).astype(np.float32) if name.startswith("coord_") else data.astype(np.uint8)


def run_case(module: str, name: str, rank: int, device_id: int | None = None) -> tuple[str, list[int]]:
    """Return the axis names and the extents of a case's output."""
    dali, fn, types = (importlib.import_module(m) for m in (module, f"{module}.fn", f"{module}.types"))
    row = make_input(name, rank)
    pipe = dali.Pipeline(batch_size=1, num_threads=1, device_id=device_id, seed=1)
    with pipe:
        x = fn.external_source(source=lambda: [row])
        pipe.set_outputs(CASES[name][1](fn, types, x if device_id is None else x.gpu()))
    pipe.build()
    (out,) = pipe.run()
    return out.layout(), list(out.shape()[0])


def _recorded(name: str, rank: int) -> Any:
    """Return DALI's answer, computed in a process of its own, because some inputs end the process."""
    reading, writing = os.pipe()
    child = os.fork()
    if not child:
        try:
            answer: Any = run_case("nvidia.dali", name, rank)
        except Exception as error:  # noqa: BLE001 - the text is the answer
            text = str(error).rpartition("encountered:")[2].partition("C++ context")[0].partition("Current pipeline")[0]
            answer = f"{type(error).__name__}: {' '.join(text.split())}"
        os.write(writing, json.dumps(answer).encode())
        os._exit(0)
    os.close(writing)
    with os.fdopen(reading, "rb") as pipe:
        found = pipe.read()
    os.waitpid(child, 0)
    return json.loads(found) if found else "the process ends"


def _schema(name: str) -> list[str]:
    """Return the layouts that DALI's operator takes, in the order of its schema."""
    schema = importlib.import_module("nvidia.dali.backend").GetSchema
    *modules, own = name.split(".")
    parts = [*modules, "".join(p.capitalize() for p in own.split("_"))]
    return [str(x) for x in schema("__".join(parts)).GetSupportedLayouts(0)]


def main() -> None:
    """Write the record."""
    cases: dict[str, dict[str, Any]] = {}
    schemas: dict[str, list[str]] = {}
    for name, (operator, _) in CASES.items():
        answers = {str(rank): _recorded(name, rank) for rank in SHAPES}
        if any("not registered for cpu" in str(x) for x in answers.values()):
            layouts = schemas[name] = _schema(operator)
            first = {str(rank): next((x for x in layouts if len(x) == rank), None) for rank in SHAPES}
            answers = {k: [x, None] if x else "no layout" for k, x in first.items()}
        cases[name] = answers
    version = importlib.import_module("nvidia.dali").__version__
    lines = [f"  {json.dumps(name)}: {json.dumps(answers)}" for name, answers in cases.items()]
    head = f'{{"version": {json.dumps(version)}, "schemas": {json.dumps(schemas)}, "cases": {{\n'
    RECORD.write_text(head + ",\n".join(lines) + "\n}}\n", encoding="utf-8")


if __name__ == "__main__":
    main()
