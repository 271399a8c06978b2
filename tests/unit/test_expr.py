# SPDX-License-Identifier: Apache-2.0
"""Scalar expressions: one value from numbers, from substitution, and from native code."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from stoker import Operator, arg
from stoker.contract import expr as ex
from stoker.contract.expr import Expr
from stoker.contract.operator import Spec
from stoker.contract.scalar import LEAVES, OPS
from stoker.contract.types import DType
from stoker.executor.run import Run
from stoker.frontends.definition import GraphBuilder
from stoker.graph.load import load
from stoker.graph.planner import make_plan
from stoker.graph.scalar_code import Compiler
from stoker.testing.reference import Fed, plain_rows

VALUES = [-np.inf, -7.5, -3.0, -2.5, -1.0, -0.5, -0.0, 0.0, 0.3, 0.5, 1.0, 1.5, 2.0, 2.5, 7.0, 1e18, np.inf, np.nan]
UNARY = ("neg", "abs", "floor", "ceil", "round_even", "round_away", "trunc", "sqrt", "not", "float32", "isfinite")
BINARY = ("add", "sub", "mul", "div", "floordiv", "mod", "min", "max", "lt", "le", "gt", "ge", "eq", "ne", "and", "or")
INEXACT = {"exp": math.exp, "log": math.log, "sin": math.sin, "cos": math.cos}  # Native integers round by themselves.


class Evaluate(Operator, name="test.evaluate"):
    """Operator that computes scalars from the elements of the input."""

    build = arg("object", doc="From the elements to scalars.")
    count = arg("int", doc="The number of elements.")

    def lower(self, c: Any, x: Any) -> Any:
        return c.numbers(c.const("build")([c.element(x, i) for i in range(c.const("count"))]), DType.FLOAT64)

    def reference(self, row: Any, x: Any) -> Any:
        raise NotImplementedError


def natively(build: Any, rows: list[list[float]]) -> list[np.ndarray]:
    """Return the results of the compiled expressions for every row."""

    def find(name: str) -> type[Operator]:
        return {"test.evaluate": Evaluate, Fed.name: Fed}[name]

    builder = GraphBuilder(find)
    spec = Spec(DType.FLOAT64, (len(rows[0]),))
    x = builder.add_operator(Fed, Fed.fill_defaults({"spec": spec}, {}))
    graph = builder.graph([builder.call("test.evaluate", [x], {"build": build, "count": len(rows[0])})])
    run = Run(load(make_plan(graph, find)), graph, 1, 0, {})
    try:
        out = run.run_inline(plain_rows(len(rows)), {(0, 0): [np.asarray(r, np.float64) for r in rows]})[0]
        return [np.array(x) for x in out]
    finally:
        run.close()


def same(a: Any, b: Any) -> bool:
    a, b = float(a), float(b)
    return (a != a and b != b) or (a == b and math.copysign(1, a) == math.copysign(1, b))


def test_every_operation_in_numbers_and_in_native_code() -> None:
    pairs = [[a, b] for a in VALUES for b in VALUES]

    def build(e: list[Any]) -> list[Any]:
        return [ex._fold(op, e[0]) for op in UNARY] + [ex._fold(op, *e) for op in BINARY]

    for pair, got in zip(pairs, natively(build, pairs), strict=True):
        want = [float(v) for v in build(pair)]
        for op, a, b in zip((*UNARY, *BINARY), got, want, strict=True):
            if op == "abs" or math.isfinite(pair[0]):
                assert same(a, b), (op, pair, a, b)
            else:  # For infinities and NaN, the sign of a NaN or of a zero does not matter.
                assert same(a, b) or a == b, (op, pair, a, b)


@pytest.mark.parametrize("op", INEXACT)
def test_functions_are_within_a_unit_of_the_last_place(op: str) -> None:
    points = [[x] for x in (0.001, 0.3, 1.0, 2.0, 3.7, 20.0)]
    for (x,), got in zip(points, natively(lambda e: [getattr(ex, op)(e[0])], points), strict=True):
        want = INEXACT[op](x)
        assert abs(got[0] - want) <= math.ulp(want)


def test_where_takes_the_branch_that_holds() -> None:
    rows = [[0.0, 3.0, 4.0], [2.0, 3.0, 4.0], [math.nan, 3.0, 4.0]]
    got = natively(lambda e: [ex.where(e[0], e[1], e[2])], rows)
    assert [g[0] for g in got] == [4.0, 3.0, 3.0]  # NaN is not 0.
    assert ex.where(1, "a", "b") == "a"  # type: ignore[arg-type]


LEAF = st.integers(0, 2)
NUMBER = st.floats(-100, 100, allow_nan=False).map(lambda x: float(np.float32(x)))


def _trees(children: st.SearchStrategy[Any]) -> st.SearchStrategy[Any]:
    safe = ("add", "sub", "mul", "div", "floordiv", "mod", "min", "max", "lt", "eq", "and", "or")
    return st.one_of(
        st.tuples(st.sampled_from(safe), children, children),
        st.tuples(st.sampled_from(("neg", "floor", "abs", "round_away", "trunc", "float32")), children),
        st.tuples(st.just("where"), children, children, children),
    )


TREE = st.recursive(
    st.one_of(LEAF.map(lambda i: ("leaf", i)), NUMBER.map(lambda x: ("const", x))), _trees, max_leaves=12
)


def build_tree(tree: Any, leaves: list[Any]) -> Any:
    op, *args = tree
    if op == "leaf":
        return leaves[args[0]]
    if op == "const":
        return args[0]
    parts = [build_tree(a, leaves) for a in args]
    if op == "where":
        return ex.where(*parts)
    symbols: dict[str, Any] = {
        "add": lambda a, b: a + b, "sub": lambda a, b: a - b, "mul": lambda a, b: a * b, "lt": lambda a, b: a < b,
        "eq": ex.equal, "and": lambda a, b: ex.both(a < 1, b < 2), "or": lambda a, b: ex.either(a < 1, b < 2),
        "min": ex.minimum, "max": ex.maximum,
        "abs": ex.absolute, "floor": ex.floor, "neg": lambda a: -a, "round_away": ex.round_away, "trunc": ex.trunc,
        "float32": ex.float32,
    }  # fmt: skip
    if op in symbols:
        return symbols[op](*parts)
    return ex._binary(op, *parts) if any(isinstance(p, Expr) for p in parts) else ex._fold(op, *parts)


@given(TREE, st.lists(NUMBER, min_size=3, max_size=3))
def test_symbols_numbers_and_native_code_agree(tree: Any, values: list[float]) -> None:
    want = build_tree(tree, values)
    symbolic = build_tree(tree, [Expr("elem", 7, i, 0) for i in range(3)])
    replaced = ex.substitute(symbolic, lambda leaf: values[leaf.args[1]])
    # Expressions leave out `x + 0` and `x * 1`; computed, -0.0 + 0 would be 0.0.
    assert replaced == want or same(replaced, want)
    got = natively(lambda e: [build_tree(tree, e)], [values])[0][0]
    assert got == float(want) or same(got, want)


def test_equal_expressions_share_a_register() -> None:
    a, b = Expr("dim", 3, 0), Expr("dim", 3, 0)
    compiler = Compiler(lambda v: v)
    x = (a + 1) * 2
    first = compiler.register(x)
    count = len(compiler.code)
    assert compiler.register((b + 1) * 2) == first
    assert len(compiler.code) == count


def test_equal_expressions_are_one_object() -> None:
    def build(value: int) -> Any:
        return ex.where(Expr("dim", value, 0) > 3.0, Expr("elem", value, 0, 0) * 2, -1)

    x = build(3)
    assert build(3) is x
    assert build(4) is not x
    assert ex.same(x, build(3))
    assert not ex.same(x, build(4))
    assert Expr("neg", 0.0) is not Expr("neg", -0.0)
    assert Expr("neg", 8) is Expr("neg", 8.0)
    assert Expr("neg", True) is Expr("neg", 1)
    one = Expr("neg", float("nan"))
    assert Expr("neg", float("nan")) is one


def test_zeros_of_both_signs_are_two_constants() -> None:
    compiler = Compiler(lambda v: v)
    assert compiler.register(0.0) != compiler.register(-0.0)


def test_expressions_list_their_inputs() -> None:
    x = (Expr("dim", 3, 0) + Expr("elem", 5, 0, 0)) * Expr("count", 9)
    assert x.reads == {3, 5, 9}
    assert not x.by_frame
    assert ex.maximum(x, Expr("elem", 2, 0, 1)).by_frame
    assert Expr("frame").by_frame


def test_simplifications_that_hold_for_all_values() -> None:
    x = Expr("elem", 0, 0, 0)
    assert x + 0 is x
    assert 0 + x is x
    assert x * 1 is x
    assert x / 1 is x
    n = Expr("dim", 0, 0)
    assert n - n == 0  # Extents are finite.
    assert isinstance(x - x, Expr)  # An element may be infinite.


def test_numbers_with_symbols_on_either_side() -> None:
    x = Expr("elem", 0, 0, 0)
    assert repr(True & (x > 1)) == repr(Expr("and", True, x > 1))
    assert repr(False | (x > 1)) == repr(Expr("or", False, x > 1))
    assert repr(3 - x) == "(3 - %0[0])"
    assert repr(3 // x) == "(3 // %0[0])"


def test_an_expression_has_no_truth() -> None:
    with pytest.raises(TypeError, match="known only at run time"):
        bool(Expr("dim", 0, 0) > 3)


def test_shared_parts_cost_nothing() -> None:
    x: Any = Expr("dim", 0, 0)
    for _ in range(200):
        x = x + x  # A tree of 2**200 leaves.
    assert x.reads == {0}
    assert not x.by_frame
    assert ex.substitute(x, lambda leaf: Expr("dim", 1, 0)).reads == {1}


def test_formulas_may_be_deeper_than_the_stack() -> None:
    x: Any = Expr("elem", 0, 0, 0)
    for i in range(5000):
        x = (x + 1.5) * 0.5 if i % 2 else ex.maximum(x, 0)
    assert ex.substitute(x, lambda leaf: 3.0) == pytest.approx(1.5)
    assert ex.parts(x)[-1] is x
    (got,) = natively(lambda e: [ex.substitute(x, lambda leaf: e[0])], [[3.0]])
    assert got[0] == ex.substitute(x, lambda leaf: 3.0)
    assert "..." in repr(x)


def test_operations_are_numbered_as_in_native_code() -> None:
    assert len(set(OPS)) == len(OPS)
    assert set(UNARY) | set(BINARY) | set(INEXACT) | LEAVES | {"const", "frame", "where"} == set(OPS)
