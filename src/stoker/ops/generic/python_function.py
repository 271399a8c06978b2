# SPDX-License-Identifier: Apache-2.0
"""``python_function``."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from ...contract.argument import arg
from ...contract.errors import ArgumentError
from ...contract.feed import is_capsule, to_array
from ...contract.lowering import Lowering
from ...contract.operator import Isolation, Operator, RowContext, Spec
from ...contract.step import Value
from ...contract.text import brief
from ...contract.types import MAX_RANK


class PythonFunction(Operator, name="python_function"):
    """Call a Python function with the inputs of each row as NumPy arrays. The function returns the outputs.

    Results may be arrays, DLPack tensors or capsules, numbers or bytes; with several outputs, a tuple of them. Types
    that are not declared are taken from the first batch, in which at least one row must succeed; they must not change.
    With ``batch_processing=True`` the function is called once per batch, with a list of arrays for each input, and
    returns a list (or an array with a leading axis) for each output.

    A function with a parameter called ``rng`` receives the row's ``numpy.random.Generator`` (a list of them for a
    batch). Its numbers are the same for any number of threads, batch size and order. Rows come in order, one at a time.
    An exception fails its row; the pipeline can go on.

    With ``isolate=True`` the function runs in a process of its own, to which rows go through shared memory. A crash of
    the process (a library's segmentation fault, an abort, ``os._exit``), or a call that does not return within
    ``time_limit_s``, fails its row alone; a new process computes the next rows. Eager calls have a process each. How
    processes start, and how functions get there, are the pipeline's ``py_start_method`` and ``py_callback_pickler``.
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
    isolate = arg("bool", False, doc="Run the function in a process of its own.")
    time_limit_s = arg("float", 60.0, doc="Seconds after which a call of an isolated function fails.")
    cases = ()

    def validate(self, args: Mapping[str, Any]) -> None:
        """Check everything that does not depend on the data."""
        if not callable(args["function"]):
            raise ArgumentError(f"expected a function as `function`, got {brief(args['function'])}")
        if not args["time_limit_s"] > 0:
            raise ArgumentError(f"expected `time_limit_s` above 0, got {args['time_limit_s']:g}")
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

    def isolation(self, args: Mapping[str, Any]) -> Isolation | None:
        if not args["isolate"]:
            return None
        call = _Isolated(type(self), args["function"], args["num_outputs"], args["batch_processing"])
        return Isolation(call, args["time_limit_s"])

    def infer(self, c: Lowering, *inputs: Value) -> Any:
        dtypes, ndims = _tuple(c.const("output_dtypes")), _tuple(c.const("output_ndims"))
        if len(dtypes) < c.const("num_outputs"):
            return None
        layouts = [*(c.const("output_layouts") or ()), *[""] * len(dtypes)]
        return tuple(Spec(d, (None,) * n, name) for d, n, name in zip(dtypes, ndims, layouts, strict=False))

    def reference(self, row: RowContext, *inputs: Any) -> Any:
        extra = {"rng": row.stream.generator()} if takes_rng(row["function"]) else {}
        results = _outputs(row["function"](*map(self.passed, inputs), **extra), row["num_outputs"])
        return tuple(map(_read_once, results))

    @staticmethod
    def passed(array: Any) -> Any:
        """Return an input of a row as the function receives it."""
        return array

    def run_rows(self, rows: list[RowContext], inputs: list[tuple[Any, ...]]) -> list[Any]:
        """Compute all rows in one call."""
        if not rows:
            return []
        function, count = rows[0]["function"], rows[0]["num_outputs"]
        extra = {"rng": [row.stream.generator() for row in rows]} if takes_rng(function) else {}
        results = function(*(list(map(self.passed, column)) for column in zip(*inputs, strict=True)), **extra)
        columns = _outputs(results, count)
        for column in columns:
            if len(column) != len(rows):
                raise ValueError(f"expected one result for each of {len(rows)} rows, got {len(column)}")
        columns = [list(map(_read_once, column)) for column in columns]
        return list(zip(*columns, strict=True)) if columns else [()] * len(rows)


@dataclass(frozen=True)
class _Isolated:
    """Rows of a function in a process of its own."""

    kind: type[PythonFunction]
    function: Callable[..., Any]
    num_outputs: int
    batch_processing: bool

    def __call__(self, rows: list[RowContext], inputs: list[tuple[Any, ...]]) -> list[Any]:
        """Return the outputs of each row as arrays."""
        for row in rows:
            row.args = {**row.args, "function": self.function, "num_outputs": self.num_outputs}
        owned = [tuple(x.copy() for x in own) for own in inputs]  # the function may change or keep them
        operator = self.kind()
        if self.batch_processing:
            results = operator.run_rows(rows, owned)
        else:
            results = [operator.reference(row, *own) for row, own in zip(rows, owned, strict=True)]
        return [[to_array(x) for x in own] for own in results]


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


def _read_once(result: Any) -> Any:
    """Return a result that can be read several times: a capsule cannot."""
    return to_array(result) if is_capsule(result) else result


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
