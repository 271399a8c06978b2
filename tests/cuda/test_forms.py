# SPDX-License-Identifier: Apache-2.0
"""Which operators have a form on the GPU: all but those that docs/gpu.md names, with the reason."""

from __future__ import annotations

from pathlib import Path

import pytest

from stoker.contract.operator import Operator, Spec
from stoker.contract.step import Native, Stage, Step, View
from stoker.contract.types import DType
from stoker.frontends.data_node import DataNode
from stoker.frontends.definition import GraphBuilder
from stoker.frontends.registry import find as find_public
from stoker.graph.plan import transform
from stoker.ops._index import INDEX
from stoker.testing.reference import Fed

SOURCES = ("external_source", "readers.concat", "readers.file", "readers.mix")
ON_CPU = (
    "batch_permutation", "peek_image_shape", "python_function", "random.choice", "random.coin_flip", "random.normal",
    "random.uniform", "random_crop_generator", "shapes", "transforms.combine", "transforms.crop",
    "transforms.rotation", "transforms.scale", "transforms.shear", "transforms.translation",
)  # fmt: skip
OPERATORS = tuple(name for name in INDEX if not name.startswith("_") and name not in SOURCES)
PARAMETERS = {"peek", "crop_window", "scalars"}  # from which shapes and numbers are computed

IMAGE, NUMBER, MATRIX = Spec(DType.UINT8, (None, None, 3), "HWC"), Spec(DType.FLOAT, ()), Spec(DType.FLOAT, (2, 3))
FED = {
    "filter": (IMAGE, Spec(DType.FLOAT, (3, 3))),
    "full": (NUMBER,),
    "per_frame": (Spec(DType.FLOAT, (None, 2), "FC"),),
    "reductions.std_dev": (IMAGE, NUMBER),
    "reductions.variance": (IMAGE, NUMBER),
    "transforms.combine": (MATRIX, MATRIX),
    **dict.fromkeys((n for n in OPERATORS if n.startswith("decoders.")), (Spec(DType.UINT8, (None,)),)),
}


def find(name: str) -> type[Operator]:
    return Fed if name == Fed.name else find_public(name)


def steps_of(name: str) -> tuple[Step, ...]:
    """Those of the operator's first case, placed on the GPU; what only sends its output there is left out."""
    operator, builder = find(name), GraphBuilder(find)

    def fed(spec: Spec) -> DataNode:
        return builder.add_operator(Fed, Fed.complete({"spec": spec}, {}))

    case = dict(operator.cases[0]) if operator.cases else {}
    inputs = [fed(spec) for spec in FED.get(name, (IMAGE,) * operator.inputs[0])]
    if name == "permute_batch":
        case["indices"] = fed(Spec(DType.INT32, ()))
    if name == "python_function":
        case |= {"function": abs, "output_dtypes": DType.UINT8, "output_ndims": 3}
    made = builder.call(name, inputs, {**case, "device": "mixed" if name.startswith("decoders.") else "gpu"})
    graph = builder.graph([made[0] if isinstance(made, tuple) else made])
    steps = transform(graph, find, {}, frozenset(), {})
    return tuple(s for s in steps.steps if not (isinstance(s.body, Stage) and s.on_gpu and "[$0]" in repr(s.body)))


def computed_on_the_cpu(steps: tuple[Step, ...]) -> set[str]:
    """The kernels there, but for views and what shows values that there are."""
    here = [s.body for s in steps if not s.on_gpu and not isinstance(s.body, View)]
    return {b.kernel if isinstance(b, Native) else type(b).__name__ for b in here if not getattr(b, "aliases", False)}


@pytest.mark.parametrize("name", OPERATORS)
def test_has_a_form_on_the_gpu_or_a_reason(name: str) -> None:
    steps = steps_of(name)
    here = computed_on_the_cpu(steps)
    assert (find(name).devices == ("cpu",)) == (name in ON_CPU), "its page says where it runs"
    if name not in ON_CPU:
        assert here <= PARAMETERS
        return
    assert here and not any(s.on_gpu for s in steps)
    text = (Path(__file__).parents[2] / "docs" / "gpu.md").read_text(encoding="utf-8")
    group = f"`{name.rpartition('.')[0]}.*`"
    assert f"| `{name}`" in text or f", `{name}`" in text or group in text, "the page names it, with the reason"
