# SPDX-License-Identifier: Apache-2.0
"""Small graphs of fed values, and the steps that passes make of them."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from stoker import DataNode, Operator, Spec, fn
from stoker.contract.step import Stage, Step, StepList
from stoker.contract.types import DType
from stoker.frontends.definition import GraphBuilder
from stoker.frontends.registry import find as find_public
from stoker.graph.plan import make_plan, transform
from stoker.testing.reference import Fed

ALL = frozenset({"equal_steps", "decode_window", "fusion", "memory"})
Define = Callable[["Maker"], Any]


def find(name: str) -> type[Operator]:
    return Fed if name == Fed.name else find_public(name)


class Maker:
    """Fed values for small graphs."""

    def __init__(self) -> None:
        self.builder = GraphBuilder(find)

    def fed(self, dtype: DType, shape: tuple[int | None, ...], layout: str = "") -> DataNode:
        return self.builder.add_operator(Fed, Fed.complete({"spec": Spec(dtype, shape, layout)}, {}))

    def image(self, dtype: DType = DType.UINT8, layout: str = "HWC") -> DataNode:
        return self.fed(dtype, tuple(3 if a == "C" else None for a in layout), layout)

    def encoded(self) -> DataNode:
        return self.fed(DType.UINT8, (None,))

    def number(self, dtype: DType = DType.FLOAT) -> DataNode:
        return self.fed(dtype, ())


def steps_of(define: Define, *passes: str) -> StepList:
    maker = Maker()
    with maker.builder:
        made = define(maker)
    graph = maker.builder.graph(made if isinstance(made, tuple) else (made,))
    make_plan(graph, find, passes=frozenset(passes))  # whatever the passes make can be planned
    return transform(graph, find, {}, frozenset(passes), {})


def kinds(steps: StepList, kind: type) -> list[Step]:
    return [s for s in steps.steps if isinstance(s.body, kind)]


def stages(define: Define) -> int:
    """How many stages a graph has once it is fused; views beside them are counted as well."""
    return len(kinds(steps_of(define, *ALL), Stage))


def training_chain(m: Maker) -> Any:
    x = fn.resize(fn.decoders.image(m.encoded()), size=(8, 9))
    return fn.crop_mirror_normalize(x, mean=[1.5, 2.5, 3.5], std=[4.0, 5.0, 6.0], mirror=m.number(DType.INT32))
