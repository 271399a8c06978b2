# SPDX-License-Identifier: Apache-2.0
"""Small graphs of fed inputs, and the steps after the passes."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from stoker import DataNode, Operator, Spec, fn
from stoker.codecs.open_codecs import OpenCodecs
from stoker.contract.step import Stage, Step, StepList
from stoker.contract.types import DType
from stoker.frontends.definition import GraphBuilder
from stoker.frontends.registry import find as find_public
from stoker.graph.analysis import transform
from stoker.graph.load import load
from stoker.graph.planner import make_plan
from stoker.testing.reference import Fed

ALL = frozenset({"equal_steps", "decode_window", "fusion", "memory"})
Define = Callable[["Maker"], Any]


def find(name: str) -> type[Operator]:
    return Fed if name == Fed.name else find_public(name)


class Maker:
    """Builder of small graphs with fed inputs."""

    def __init__(self) -> None:
        self.builder = GraphBuilder(find)

    def fed(self, dtype: DType, shape: tuple[int | None, ...], layout: str = "") -> DataNode:
        return self.builder.add_operator(Fed, Fed.fill_defaults({"spec": Spec(dtype, shape, layout)}, {}))

    def image(self, dtype: DType = DType.UINT8, layout: str = "HWC") -> DataNode:
        return self.fed(dtype, tuple(3 if a == "C" else None for a in layout), layout)

    def encoded(self) -> DataNode:
        return self.fed(DType.UINT8, (None,))

    def number(self, dtype: DType = DType.FLOAT) -> DataNode:
        return self.fed(dtype, ())


def steps_of(define: Define, *passes: str) -> StepList:
    maker = Maker()
    with maker.builder:
        outputs = define(maker)
    graph = maker.builder.graph(outputs if isinstance(outputs, tuple) else (outputs,))
    plan = make_plan(graph, find, passes=frozenset(passes))
    load(plan, codecs=OpenCodecs().get)  # The result of every pass can be planned.
    return transform(graph, find, {}, frozenset(passes), {})


def kinds(steps: StepList, kind: type) -> list[Step]:
    return [s for s in steps.steps if isinstance(s.body, kind)]


def stages(define: Define) -> int:
    """Return the number of stages of a graph after fusion. Remaining views count too."""
    return len(kinds(steps_of(define, *ALL), Stage))


def training_chain(m: Maker) -> Any:
    x = fn.resize(fn.decoders.image(m.encoded()), size=(8, 9))
    return fn.crop_mirror_normalize(x, mean=[1.5, 2.5, 3.5], std=[4.0, 5.0, 6.0], mirror=m.number(DType.INT32))
