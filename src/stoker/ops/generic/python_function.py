# SPDX-License-Identifier: Apache-2.0
"""``python_function``."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from ...contract.argument import arg
from ...contract.errors import ArgumentError
from ...contract.lowering import MAX_RANK, Lowering
from ...contract.operator import Operator, RowContext, Spec
from ...contract.step import Value
from ...contract.text import brief


class PythonFunction(Operator, name="python_function"):
    """Call a Python function with the inputs of each row as NumPy arrays. The function returns the outputs.

    Results may be arrays, DLPack tensors, numbers or bytes; with several outputs, a tuple of them. Types that are not
    declared are taken from the first batch, in which at least one row must succeed; they must not change. With
    ``batch_processing=True`` the function is called once per batch, with a list of arrays for each input, and returns a
    list (or an array with a leading axis) for each output.

    A function with a parameter called ``rng`` receives the row's ``numpy.random.Generator`` (a list of them for a
    batch). Its numbers are the same for any number of threads, batch size and order. Rows come in order, one at a time.
    An exception fails its row; the pipeline can go on.
    """

    devices = ("cpu",)
    inputs = (0, 256)
    draws = 1
    pure = False
    function = arg("object", doc="The function.")
    num_outputs = arg("int", 1, doc="Number of outputs; 0 for a function that is called for its effect.")
    batch_processing = arg("bool", False, doc="Call it once for all rows of a batch.")
    output_layouts = arg("str", None, many=True, doc="Names of the outputs' axes, one string or one per output.")
    output_dtypes = arg("dtype", None, many=True, doc="Element types of all outputs; with `output_ndims`.")
    output_ndims = arg("int", None, many=True, doc="Numbers of axes of all outputs; with `output_dtypes`.")
    cases = ()

    def validate(self, args: Mapping[str, Any]) -> None:
        """Check everything that does not depend on the data."""
        if not callable(args["function"]):
            raise ArgumentError(f"expected a function as `function`, got {brief(args['function'])}")
        if args["num_outputs"] < 0:
            raise ArgumentError(f"expected `num_outputs` >= 0, got {args['num_outputs']}")
        layouts = args["output_layouts"] or ()
        if len(layouts) > args["num_outputs"]:
            raise ArgumentError(f"expected at most {args['num_outputs']} `output_layouts`, got {len(layouts)}")
        dtypes, ndims = _tuple(args["output_dtypes"]), _tuple(args["output_ndims"])
        if len(dtypes) != len(ndims) or len(dtypes) not in (0, args["num_outputs"]):
            count = args["num_outputs"]
            raise ArgumentError(
                f"expected `output_dtypes` and `output_ndims` with one element for each of {count} outputs, got "
                f"{len(dtypes)} and {len(ndims)}"
            )
        if any(not 0 <= ndim <= MAX_RANK for ndim in ndims):
            raise ArgumentError(f"expected `output_ndims` from 0 to {MAX_RANK}, got {brief(ndims)}")
        for layout, ndim in zip(layouts, ndims, strict=False):
            if layout and len(layout) != ndim:
                raise ArgumentError(f"expected a layout of {ndim} axes as in `output_ndims`, got {layout!r}")

    def count_outputs(self, args: Mapping[str, Any]) -> int:
        return int(args["num_outputs"])

    def runs_batches(self, args: Mapping[str, Any]) -> bool:
        return bool(args["batch_processing"])

    def infer(self, c: Lowering, *inputs: Value) -> Any:
        dtypes, ndims = _tuple(c.const("output_dtypes")), _tuple(c.const("output_ndims"))
        if len(dtypes) < c.const("num_outputs"):
            return None
        layouts = [*(c.const("output_layouts") or ()), *[""] * len(dtypes)]
        return tuple(Spec(d, (None,) * n, name) for d, n, name in zip(dtypes, ndims, layouts, strict=False))

    def reference(self, row: RowContext, *inputs: Any) -> Any:
        extra = {"rng": row.stream.generator()} if takes_rng(row["function"]) else {}
        return _outputs(row["function"](*inputs, **extra), row["num_outputs"])

    def run_rows(self, rows: list[RowContext], inputs: list[tuple[Any, ...]]) -> list[Any]:
        """Compute all rows in one call."""
        if not rows:
            return []
        function, count = rows[0]["function"], rows[0]["num_outputs"]
        extra = {"rng": [row.stream.generator() for row in rows]} if takes_rng(function) else {}
        results = function(*(list(column) for column in zip(*inputs, strict=True)), **extra)
        columns = _outputs(results, count)
        for column in columns:
            if len(column) != len(rows):
                raise ValueError(f"expected one result for each of {len(rows)} rows, got {len(column)}")
        return list(zip(*columns, strict=True)) if columns else [()] * len(rows)


def _tuple(value: Any) -> tuple[Any, ...]:
    """Convert no value, one value or several to a tuple."""
    return () if value is None else value if isinstance(value, tuple) else (value,)


def takes_rng(function: Callable[..., Any]) -> bool:
    """Return whether a function has a parameter called ``rng``."""
    try:
        parameter = inspect.signature(function).parameters.get("rng")
    except (TypeError, ValueError):  # some built-in functions have no signature
        return False
    return parameter is not None and parameter.kind in (parameter.POSITIONAL_OR_KEYWORD, parameter.KEYWORD_ONLY)


def _outputs(results: Any, count: int) -> Sequence[Any]:
    if count == 0:
        return ()
    if count == 1:
        if isinstance(results, tuple) and len(results) != 1:
            raise ValueError(f"expected one output, got a tuple of {len(results)}. Pass `num_outputs={len(results)}`")
        return results if isinstance(results, tuple) else (results,)
    if not isinstance(results, (tuple, list)) or len(results) != count:
        got = f"{len(results)}" if isinstance(results, (tuple, list)) else f"one {type(results).__name__}"
        raise ValueError(f"expected {count} outputs, got {got}")
    return tuple(results)
