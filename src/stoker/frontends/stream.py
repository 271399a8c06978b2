# SPDX-License-Identifier: Apache-2.0
"""``eager.stream``: a chain of operators on a signal that arrives in chunks, with the bits of the whole.

Each operator says by which rule it computes a part of its outputs (``Operator.stream_rule``). A stage of the chain
keeps the inputs that later outputs still need, and calls the operator on them when outputs are ready.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from ..contract.batch import Batch
from ..contract.errors import ArgumentError, StateError, StokerError, UnsupportedError
from ..contract.operator import Spec
from ..contract.text import brief
from ..contract.types import DType
from ..graph.node import Node
from .constants import Constant
from .data_node import DataNode
from .definition import GraphBuilder

_TIME = 0  # axis of time of the chain's input
_NUMBERS = (bool, int, float, np.generic)  # operands that may stand with the signal
_LONGEST = 1 << 24  # inputs after which a stage must have an output


@dataclass(frozen=True)
class EagerCalls:
    """Functions that call an operator: on one sample, and on a number of rows."""

    one: Callable[[str, list[Any], dict[str, Any]], Any]
    batches: Callable[[str, list[Any], dict[str, Any], int], tuple[Batch, ...]]


@dataclass(frozen=True)
class _Given:
    """Inputs and arguments of a call, as they were given."""

    inputs: tuple[Any, ...]
    arguments: dict[str, Any]


class _Recorder(GraphBuilder):
    """Graph builder that keeps what its calls were given, by node."""

    def __init__(self) -> None:
        super().__init__()
        self.given: dict[int, _Given] = {}

    def _add(self, name: str, inputs: Sequence[Any], arguments: dict[str, Any], draw: int) -> Any:
        given = _Given(tuple(inputs), dict(arguments))
        result = super()._add(name, inputs, arguments, draw)
        self.given[len(self.nodes) - 1] = given
        return result


class _Stage:
    """Operator of a chain, with the inputs that it still needs."""

    def __init__(self, node: Node, given: _Given, calls: EagerCalls) -> None:
        self.operator, self.args, self.text = node.operator, node.args, f"made at {node.source_line}"
        self._inputs = [None if isinstance(x, DataNode) else Constant(x) for x in given.inputs]  # None: the signal
        self._arguments, self._calls = given.arguments, calls

    def open(self, x: Any, layout: str, axis: int) -> tuple[Any, str, int]:
        """Prepare for a signal.

        Args:
            x: inputs of the signal's type; only the axis of time may have another extent.
            layout: axes of the inputs.
            axis: the axis of time.

        Returns:
            Such inputs for the next stage, their axes, and their axis of time.
        """
        spec = Spec(DType.of(x.dtype), tuple(None if i == axis else n for i, n in enumerate(x.shape)), layout)
        try:
            self.rule = self.operator.stream_rule(self.args, spec, axis)
        except UnsupportedError as error:
            name = self.operator.name
            text = str(error).removeprefix(f"`{name}`: ").rstrip(".")
            raise UnsupportedError(f"`eager.stream`: `{name}` cannot stream: {text} — {self.text}") from None
        self.axis, self.layout = axis, layout
        count = 1
        while self.rule.ready(count) < 1:
            count *= 2
            if count > _LONGEST:
                raise UnsupportedError(f"`eager.stream`: `{self.operator.name}` needs too many inputs for one output")
        zeros = np.zeros((*x.shape[:axis], count, *x.shape[axis + 1 :]), x.dtype)
        inputs = self._with_signal(Constant(zeros, layout=layout))
        (batch,) = self._calls.batches(self.operator.name, inputs, dict(self._arguments), 1)
        sample = np.asarray(batch[0])
        if not 0 <= self.rule.axis < sample.ndim:
            raise UnsupportedError(f"`eager.stream`: `{self.operator.name}` gives no axis of time")
        self.kept = zeros[(slice(None),) * axis + (slice(0),)]
        self.none = sample[(slice(None),) * self.rule.axis + (slice(0),)]
        self.begin = self.seen = self.done = 0
        return sample, batch.layout, self.rule.axis

    def push(self, x: Any, last: bool) -> Any:
        """Take inputs. Return the outputs that are ready, all that are left if these inputs are the last."""
        self.kept = np.concatenate([self.kept, x], self.axis) if self.kept.shape[self.axis] else x
        self.seen += x.shape[self.axis]
        end = self.rule.total(self.seen) if last else self.rule.ready(self.seen)
        if last and not self.done:  # the operator itself says what a short signal gives
            return self._call(self.kept)
        if end <= self.done:
            return self.none
        first, dropped = self.rule.start(self.done, last)
        y = self._call(self._inputs_from(first))
        y = y[(slice(None),) * self.rule.axis + (slice(dropped, dropped + end - self.done),)]
        assert y.shape[self.rule.axis] == end - self.done, "the operator's rule is wrong"
        self.done = end
        self.kept = self._inputs_from(min(self.rule.start(self.done, True)[0], self.seen)).copy()
        self.begin = self.seen - self.kept.shape[self.axis]
        return y

    def _inputs_from(self, first: int) -> Any:
        return self.kept[(slice(None),) * self.axis + (slice(first - self.begin, None),)]

    def _call(self, x: Any) -> Any:
        x = np.ascontiguousarray(x)
        wrapped = Constant(x, layout=self.layout) if self.layout else x
        return self._calls.one(self.operator.name, self._with_signal(wrapped), dict(self._arguments))

    def _with_signal(self, signal: Any) -> list[Any]:
        """Return all inputs of a call: the signal, and numbers with it."""
        return [signal if x is None else x for x in self._inputs]


class Stream:
    """Chain of operators that takes a signal in chunks (``eager.stream``). One thread uses it at a time.

    Attributes:
        axis: the axis of time of the outputs, along which they are joined.
    """

    def __init__(self, stages: list[_Stage]) -> None:
        self._stages = stages
        self._kind: tuple[Any, ...] | None = None
        self._failed = ""
        self.axis = _TIME

    def push(self, chunk: Any) -> Any:
        """Take a chunk of the signal and return the outputs that no later chunk changes; there may be none.

        Args:
            chunk: ``(n,)`` or ``(n, channels)``, with any n; all chunks of a signal have one type.

        Raises:
            ArgumentError: the chunk is no signal, or of another type than those before.
            UnsupportedError: an operator cannot stream.
        """
        return self._run(np.array(chunk), False)

    def finish(self) -> Any:
        """End the signal and return the last outputs. The next chunk begins another signal.

        Raises:
            StateError: there was no chunk.
        """
        if self._kind is None:
            raise StateError("`eager.stream`: expected a chunk before `finish`, got none")
        dtype, channels = self._kind
        return self._run(np.zeros((0, *channels), dtype), True)

    def _run(self, x: Any, last: bool) -> Any:
        if self._failed:
            raise StateError(f"`eager.stream`: this stream has failed ({self._failed}); make another one")
        if x.ndim not in (1, 2) or x.dtype.kind not in "iuf":
            raise ArgumentError(
                f"`eager.stream`: expected a chunk of numbers, (n,) or (n, channels), got {x.dtype} of shape {x.shape}"
            )
        kind = (x.dtype, x.shape[1:])
        if self._kind is not None and kind != self._kind:
            raise ArgumentError(
                f"`eager.stream`: expected a chunk of {self._kind[0]} and {self._kind[1]} channels, got "
                f"{kind[0]} and {kind[1]}; `finish` ends a signal"
            )
        try:
            if self._kind is None:
                self._open(x)
                self._kind = kind
            for stage in self._stages:
                x = stage.push(x, last)
        except StokerError as error:
            self._failed = str(error)
            raise
        if last:
            self._kind = None
        return x.copy() if x.base is not None else x

    def _open(self, x: Any) -> None:
        sample, layout, axis = x[:0], "", _TIME
        for stage in self._stages:
            sample, layout, axis = stage.open(sample, layout, axis)
        self.axis = axis


def make_stream(function: Callable[[Any], Any], calls: EagerCalls) -> Stream:
    """Return the chain that a function of one node describes (``eager.stream``).

    Args:
        function: the function.
        calls: how operators are called.

    Raises:
        ArgumentError: the function is no chain.
        UnsupportedError: an operator draws random numbers or has several outputs.
    """
    if not callable(function):
        raise ArgumentError(f"`eager.stream`: expected a function, got {brief(function)}")
    builder = _Recorder()
    with builder:
        node = builder.constant(np.zeros(1, np.float32))  # it stands at the place of the signal
        result = function(node)
    if not isinstance(result, DataNode) or result.builder is not builder:
        raise ArgumentError(
            f"`eager.stream`: expected a function that returns what an operator of `fn` returns, got {brief(result)}"
        )
    stages: list[_Stage] = []
    edge = result.edge
    while edge != node.edge:
        one = builder.nodes[edge.node]
        text = f"made at {one.source_line}"
        given = builder.given[one.id]
        signals = [x for x in given.inputs if isinstance(x, DataNode)]
        others = [x for x in given.inputs if not isinstance(x, (DataNode, *_NUMBERS))]
        if len(signals) != 1 or others or one.edges or one.guards:
            raise ArgumentError(
                f"`eager.stream`: expected operators of one input and numbers, with constant arguments, got "
                f"`{one.operator.name}` with {len(signals) + len(others)} inputs and {len(one.edges)} arguments that "
                f"are nodes — {text}"
            )
        if one.operator.draws or one.operator.scope != "row" or not one.operator.pure or one.outputs != 1:
            raise UnsupportedError(
                f"`eager.stream`: expected operators without random numbers and with one output, got "
                f"`{one.operator.name}` — {text}"
            )
        stages.append(_Stage(one, given, calls))
        edge = signals[0].edge
    if not stages:
        raise ArgumentError("`eager.stream`: expected a function that applies operators, got none")
    return Stream(stages[::-1])
