# SPDX-License-Identifier: Apache-2.0
"""The graph: refusals, its text, and its round trip through JSON."""

from __future__ import annotations

import ast
import json
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import stoker
from stoker import GraphError, Operator, Pipeline, UnsupportedError, fn, types
from stoker.contract.expr import Expr
from stoker.contract.pixel import load
from stoker.contract.step import Check, Native, Stage, Step, StepList, Value, View
from stoker.contract.types import DType
from stoker.frontends.registry import find, names
from stoker.graph.node import Edge, Graph
from stoker.graph.show import show, show_steps
from stoker.graph.verify import verify_graph, verify_steps

PACKAGE = Path(stoker.__file__).parent
LIMITS = {"fusion.py": 400}  # the only pass with more than one rewrite


def small(**settings: Any) -> Pipeline:
    pipe = Pipeline(batch_size=3, num_threads=1, seed=5, **settings)
    with pipe:
        image = fn.cast(fn.random.uniform(range=[0.0, 255.0], shape=[9, 8, 3]), dtype=types.UINT8)
        image = fn.reshape(image, layout="HWC")
        image = fn.flip(image, horizontal=fn.random.coin_flip(probability=0.5))
        image = fn.resize(image, size=(4, 6), interp_type=types.INTERP_CUBIC)
        pipe.set_outputs(
            fn.crop_mirror_normalize(image, mean=[1.0, 2.0, 3.0], std=2.0) + np.arange(6, dtype=np.float32)
        )
    return pipe


# ---- verify ----


def graph_without(change: Callable[[Graph], Graph]) -> Graph:
    return change(small().graph)


def change_node(graph: Graph, at: int, **changes: Any) -> Graph:
    nodes = list(graph.nodes)
    nodes[at] = replace(nodes[at], **changes)
    return replace(graph, nodes=tuple(nodes))


LAST = len(small().graph.nodes) - 1
BROKEN: dict[str, tuple[Callable[[Graph], Graph], str]] = {
    "an edge forward": (lambda g: change_node(g, 1, inputs=(Edge(2),)), "which is not before it"),
    "an edge to itself": (lambda g: change_node(g, 1, inputs=(Edge(1),)), "which is not before it"),
    "an edge to nowhere": (lambda g: change_node(g, 1, inputs=(Edge(99),)), "which is not before it"),
    "a missing output": (lambda g: change_node(g, 1, inputs=(Edge(0, 3),)), "uses output 3"),
    "an argument from later": (lambda g: change_node(g, 1, edges=(("dtype", Edge(5)),)), "which is not before it"),
    "a condition from later": (lambda g: change_node(g, 1, guards=((Edge(5), True),)), "which is not before it"),
    "a wrong number": (lambda g: change_node(g, 1, id=7), "is numbered 7"),
    "a shared draw": (
        lambda g: change_node(g, next(n.id for n in g.nodes if n.operator.name.endswith("coin_flip")), draw=0),
        "share draw 0",
    ),
    "a missing result": (lambda g: replace(g, outputs=(Edge(LAST, 1),)), "does not exist"),
    "a result of no node": (lambda g: replace(g, outputs=(Edge(-1),)), "does not exist"),
}


@pytest.mark.parametrize("name", BROKEN)
def test_a_broken_graph_is_refused(name: str) -> None:
    change, text = BROKEN[name]
    verify_graph(small().graph)
    with pytest.raises(GraphError, match=text):
        verify_graph(graph_without(change))


def test_the_inputs_of_one_call_share_its_draw() -> None:
    pipe = Pipeline(batch_size=4, num_threads=1, seed=1)
    with pipe:
        shape = [fn.zeros(shape=[n]) for n in (3, 3)]
        pipe.set_outputs(*fn.random.uniform(shape))
    a, b = pipe.run()
    pipe.close()
    assert np.array_equal(a.as_array(), b.as_array())


def steps(*listed: Step, outputs: tuple[int, ...], fed: int = 0) -> StepList:
    values = {i: Value(i, DType.UINT8, (4,)) for i in range(8)}
    return StepList(list(listed), values, list(outputs), {(0, 0): fed})


COPY = Stage(((load(DType.UINT8),),), ((),), ((),))
BROKEN_STEPS: dict[str, tuple[StepList, str]] = {
    "an input without a step": (steps(Step(COPY, (5,), (1,), 0), outputs=(1,)), "reads %5 before it is computed"),
    "an input from later": (
        steps(Step(COPY, (2,), (1,), 0), Step(COPY, (0,), (2,), 0), outputs=(1,)), "reads %2 before it is computed",
    ),
    "a condition without a step": (
        steps(Step(COPY, (0,), (1,), 0, guards=((4, True),)), outputs=(1,)), "reads %4 before it is computed",
    ),
    "a number from nowhere": (
        steps(Step(Native("scalars", params=(Expr("elem", 6, 0, 0),)), (), (1,), 0), outputs=(1,)), "reads %6 before",
    ),
    "a check of something from nowhere": (
        steps(Step(View(()), (0,), (1,), 0, checks=(Check(Expr("dim", 3, 0), ""),)), outputs=(1,)), "reads %3 before",
    ),
    "a value of two steps": (
        steps(Step(COPY, (0,), (1,), 0), Step(COPY, (0,), (1,), 0), outputs=(1,)), "computes %1 again",
    ),
    "a fed value of a step": (steps(Step(COPY, (0,), (0,), 0), outputs=(0,)), "computes %0 again"),
    "an output without a step": (steps(Step(COPY, (0,), (1,), 0), outputs=(1, 2)), "output %2 is never computed"),
}  # fmt: skip


@pytest.mark.parametrize("name", BROKEN_STEPS)
def test_broken_steps_are_refused(name: str) -> None:
    listed, text = BROKEN_STEPS[name]
    with pytest.raises(GraphError, match=text):
        verify_steps(listed)


# ---- JSON ----


def test_json_gives_the_same_graph_and_the_same_bytes() -> None:
    pipe = small()
    text = pipe.serialize()
    again = Pipeline.deserialize(text, batch_size=3, num_threads=1, seed=5)
    assert again.graph.fingerprint() == pipe.graph.fingerprint()
    assert json.loads(again.serialize()) == json.loads(text)
    for _ in range(3):
        (a,), (b,) = pipe.run(), again.run()
        assert a.as_array().tobytes() == b.as_array().tobytes()
    pipe.close()
    again.close()


def test_graphs_with_different_results_have_different_fingerprints() -> None:
    def fingerprint(**args: Any) -> str:
        pipe = Pipeline(batch_size=1, num_threads=1)
        with pipe:
            x = fn.random.uniform(range=[0.0, 1.0], shape=args.pop("shape", [3, 3]), seed=args.pop("seed", None))
            pipe.set_outputs(fn.rotate(x, **{"angle": 3.0, **args}))
        return pipe.graph.fingerprint()

    kinds = [{}, {"angle": 3.5}, {"fill_value": 1.0}, {"shape": [3, 4]}, {"seed": 4}, {"interp_type": types.INTERP_NN}]
    assert len({fingerprint(**dict(k)) for k in kinds}) == len(kinds)
    assert fingerprint(name="turned") == fingerprint()


def test_a_changed_copy_has_its_own_cached_properties() -> None:
    graph = small().graph
    first, outline = graph.fingerprint(), graph.outline()
    resizing = next(n for n in graph.nodes if n.operator.name == "resize")
    changed = change_node(graph, resizing.id, args={**resizing.args, "size": (5, 6)})
    assert changed.fingerprint() != first == graph.fingerprint()
    assert "resize" in changed.difference(outline)


@pytest.mark.parametrize(
    ("change", "text"),
    [
        (lambda d: d.update(stoker_graph=2), "expected a graph of format 1, got 2"),
        (lambda d: d.pop("stoker_graph"), "expected a graph of format 1, got None"),
        (lambda d: d["nodes"][0].update(version=99), "was written with 99"),
        (lambda d: d["nodes"][-1].update(operator="no.such"), "there is no operator `no.such`"),
    ],
)
def test_json_of_another_version_is_refused(change: Callable[[Any], Any], text: str) -> None:
    data = json.loads(small().serialize())
    change(data)
    with pytest.raises((GraphError, ValueError), match=text):
        Graph.from_json(json.dumps(data), find)


def test_functions_that_cannot_be_imported_cannot_be_written() -> None:
    pipe = Pipeline(batch_size=1, num_threads=1)
    with pipe:
        pipe.set_outputs(fn.python_function(fn.random.coin_flip(), function=lambda x: x, num_outputs=1))
    with pytest.raises(UnsupportedError, match=r"cannot be written to JSON.*imported by name"):
        pipe.serialize()


# ---- show ----


def test_show_prints_the_graph_and_the_plan() -> None:
    pipe = small()
    text = pipe.show()
    assert "resize(" in text
    assert "interp_type" in text
    assert "test_graph.py:" in text
    assert text.index("graph\n") < text.index("plan\n")
    assert "resample(" in text


def test_show_for_graphviz() -> None:
    pipe = Pipeline(batch_size=1, num_threads=1)
    with pipe:
        image = fn.random.uniform(range=[0.0, 1.0], shape=[3, 3])
        pipe.set_outputs(fn.rotate(image, angle=fn.random.uniform(range=[0.0, 9.0])))
    text = show(pipe.graph, find, "dot")
    assert text.startswith("digraph stoker {")
    assert 'style=dashed, label="angle"' in text
    assert text.count("{") == text.count("}")
    with pytest.raises(ValueError, match='expected form "text", "dot" or "svg"'):
        pipe.show("png")


def test_show_of_steps_lists_the_inputs_of_each() -> None:
    listed = steps(Step(COPY, (0,), (1,), 0, guards=((0, False),)), outputs=(1,))
    assert show_steps(listed) == ["%1:uint8[4] = stage[$0] (%0) if not %0", "return %1"]


def test_formulas_that_share_their_parts_stay_short() -> None:
    x: Any = Expr("dim", 0, 0)
    for _ in range(60):
        x = x * x
    assert len(repr(x)) < 3000


# ---- source code ----


def literals(path: Path) -> list[tuple[int, str]]:
    """Return the string constants in code, without docstrings."""
    tree = ast.parse(path.read_text())
    documentation = {
        id(node.body[0].value)
        for node in ast.walk(tree)
        if isinstance(node, (ast.Module, ast.ClassDef, ast.FunctionDef))
        and node.body
        and isinstance(node.body[0], ast.Expr)
    }
    return [
        (node.lineno, node.value)
        for node in ast.walk(tree)
        if isinstance(node, ast.Constant) and isinstance(node.value, str) and id(node) not in documentation
    ]


# Words that also name an operator, with their meaning in each file.
WORDS = {
    ("graph", "slice"): "a kind of view",
    ("graph", "reshape"): "a kind of view",
}


def test_passes_and_executor_name_no_operator() -> None:
    known = set(names())
    literals_found = {
        (f, v) for f in ("graph", "executor") for p in (PACKAGE / f).rglob("*.py") for _, v in literals(p)
    }
    assert set(WORDS) <= literals_found, "remove a word that no longer occurs from WORDS"
    found = [
        f"{path.relative_to(PACKAGE)}:{line}: {value!r}"
        for folder in ("graph", "executor")
        for path in sorted((PACKAGE / folder).rglob("*.py"))
        for line, value in literals(path)
        if value in known and (folder, value) not in WORDS
    ]
    assert not found, found


def test_every_pass_is_short() -> None:
    for path in sorted((PACKAGE / "graph" / "passes").glob("*.py")):
        code = [line for line in path.read_text().splitlines() if line.strip() and not line.lstrip().startswith("#")]
        assert len(code) <= LIMITS.get(path.name, 150), f"{path.name} has {len(code)} lines"


def test_operators_of_one_index() -> None:
    for name in names():
        operator = find(name)
        assert issubclass(operator, Operator)
        assert operator.name == name
