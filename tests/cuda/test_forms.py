# SPDX-License-Identifier: Apache-2.0
"""GPU forms of operators: every operator has one, except those that docs/internals/gpu.md lists with the reason."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from stoker.contract.operator import Operator, Spec
from stoker.contract.step import Native, Stage, Step, View
from stoker.contract.types import DType
from stoker.frontends.data_node import DataNode
from stoker.frontends.definition import GraphBuilder
from stoker.frontends.registry import find as find_public
from stoker.graph.analysis import transform
from stoker.ops._index import INDEX
from stoker.testing.reference import Fed

ON_CPU = (
    "batch_permutation", "bbox_rotate",
    "decoders.audio", "decoders.numpy", "decoders.video", "dump_image", "get_property",
    "io.file.read",
    "peek_image_shape", "python_function",
    "random.beta", "random.choice", "random_bbox_crop",
    "random_crop_generator", "roi_random_crop",
    "segmentation.polygon_masks", "segmentation.random_mask_pixel", "segmentation.random_object_bbox",
    "segmentation.select_masks",
    "shapes", "transforms.combine", "transforms.crop",
    "transforms.rotation", "transforms.scale", "transforms.shear", "transforms.translation",
)  # fmt: skip
REFUSES_A_GPU = {"dl_tensor_python_function"}  # where DALI's operator gives functions memory of the GPU
OPERATORS = tuple(
    name for name in INDEX if not name.startswith("_") and not find_public(name).is_source and name not in REFUSES_A_GPU
)
PARAMETERS = {
    "peek",
    "block_spans",
    "crop_window",
    "scalars",
    "draw",
    "draw_words",
    "draw_stream",
    "region_table",
    "element_numbers",
    "mel_weights",
    "dct_weights",
    "fft_sizes",
    "resample_filter",
}  # of shapes and numbers

# The weights of a window, and masks of objects, computed like other parameters.
WINDOWS = {"motion_blur": {"Stage", "reduce"}, "copy_paste": {"paste_objects"}}

IMAGE = Spec(DType.UINT8, (None, None, 3), "HWC")


def fed_specs(operator: type[Operator], case: dict[str, Any]) -> tuple[Spec, ...]:
    """Return the types of an operator's own inputs for a case: images, or arrays of other types and ranks."""
    if operator.name == "per_frame":
        return (Spec(DType.FLOAT, (None, 2), "FC"),)
    rows = operator.case_inputs(case)
    if rows is None:
        return (IMAGE,) * operator.inputs[0]
    count = len(rows[0]) if operator.named_inputs else operator.inputs[0]
    inputs = [np.asarray(x) for x in rows[0][:count]]
    return tuple(
        replace(IMAGE, dtype=DType.of(x.dtype))
        if x.ndim == 3 and x.shape[2] != 2  # complex numbers
        else Spec(DType.of(x.dtype), (None,) * x.ndim if x.ndim == 1 else x.shape)
        for x in inputs
    )


def find(name: str) -> type[Operator]:
    return Fed if name == Fed.name else find_public(name)


def steps_of(name: str) -> tuple[Step, ...]:
    """Return the steps of the operator's first case on the GPU, without steps that only send outputs there."""
    operator, builder = find(name), GraphBuilder(find)

    def fed(spec: Spec) -> DataNode:
        return builder.add_operator(Fed, Fed.fill_defaults({"spec": spec}, {}))

    case = dict(operator.cases[0]) if operator.cases else {}
    inputs = [fed(spec) for spec in fed_specs(operator, case)]
    if name == "permute_batch":
        case["indices"] = fed(Spec(DType.INT32, ()))
    if name == "python_function":
        case |= {"function": abs, "output_dtypes": DType.UINT8, "output_ndims": 3}
    if name == "gpu_function":
        case |= {"function": abs}
    discovered: dict[int, tuple[Spec, ...]] = {}
    if name == "decoders.numpy":  # the first batch decides about its output
        inputs, discovered = [fed(Spec(DType.UINT8, (None,)))], {2: (Spec(DType.FLOAT, (None,)),)}
    outputs = builder.call(name, inputs, {**case, "device": "mixed" if name.startswith("decoders.") else "gpu"})
    graph = builder.graph([outputs[0] if isinstance(outputs, tuple) else outputs])
    steps = transform(graph, find, discovered, frozenset(), {})
    return tuple(s for s in steps.steps if not (isinstance(s.body, Stage) and s.on_gpu and "[$0]" in repr(s.body)))


def is_drawn_on_gpu(name: str, **arguments: Any) -> bool:
    builder = GraphBuilder(find)
    graph = builder.graph([builder.call(name, [], {**arguments, "device": "gpu"})])
    steps = transform(graph, find, {}, frozenset(), {}).steps
    (draw,) = (s for s in steps if isinstance(s.body, Native) and s.body.kernel == "draw")
    return draw.on_gpu


@pytest.mark.parametrize(
    ("name", "arguments"),
    [
        ("random.uniform", {}), ("random.uniform", {"values": [1.0, 7.0]}), ("random.normal", {}),
        ("random.coin_flip", {}),
    ],
)  # fmt: skip
def test_a_gpu_draws_large_tensors(name: str, arguments: dict[str, Any]) -> None:
    assert is_drawn_on_gpu(name, shape=[375, 500, 3], **arguments)
    assert not is_drawn_on_gpu(name, shape=[32, 32], **arguments) and not is_drawn_on_gpu(name, **arguments)


def computed_on_the_cpu(steps: tuple[Step, ...]) -> set[str]:
    """Return the kernels on the CPU, except views and kernels that only expose existing values."""
    here = [s.body for s in steps if not s.on_gpu and not isinstance(s.body, View)]
    aliases = [isinstance(b, Native) and b.memory.aliases for b in here]
    return {
        b.kernel if isinstance(b, Native) else type(b).__name__ for b, a in zip(here, aliases, strict=True) if not a
    }


@pytest.mark.parametrize("name", OPERATORS)
def test_has_a_form_on_the_gpu_or_a_reason(name: str) -> None:
    steps = steps_of(name)
    here = computed_on_the_cpu(steps)
    assert (find(name).devices == ("cpu",)) == (name in ON_CPU), "its page lists its devices"
    if name not in ON_CPU:
        assert here <= PARAMETERS | WINDOWS.get(name, set())
        return
    assert here or name == "get_property", "only a constant needs no kernel"
    assert not any(s.on_gpu for s in steps)
    text = (Path(__file__).parents[2] / "docs" / "internals" / "gpu.md").read_text(encoding="utf-8")
    group = f"`{name.rpartition('.')[0]}.*`"
    assert f"| `{name}`" in text or f", `{name}`" in text or group in text, "the page names it, with the reason"
