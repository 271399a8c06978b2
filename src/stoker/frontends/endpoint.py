# SPDX-License-Identifier: Apache-2.0
"""Endpoint: a pipeline as a function of requests, for servers."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from types import TracebackType
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from ..contract.errors import ArgumentError, DataError, StokerError, UnsupportedError, did_you_mean, message
from ..contract.operator import Spec
from ..contract.text import brief
from ..contract.types import DType
from ..graph.plan import PlannedOutput
from .pipeline import Pipeline

if TYPE_CHECKING:
    from ..executor.execution import Execution


class Tensor(NamedTuple):
    """Description of an input or output of an endpoint.

    Attributes:
        name: its name.
        dtype: element type.
        shape: extents of one request; None for those that differ from request to request.
    """

    name: str
    dtype: DType
    shape: tuple[int | None, ...]


class Endpoint:
    """Function of requests that a pipeline computes: ``endpoint(requests)`` returns a result or an error per request.

    The pipeline takes all its data from ``external_source(name=..., dtype=..., ndim=...)`` without a ``source``. A
    request is a mapping of these names to values (bytes, arrays, DLPack tensors, numbers), or the value itself if
    there is one source. Requests may be of unlike sizes.

    Any thread may call an endpoint, several at the same time: a single request is computed on the thread that calls,
    several together on the pipeline's threads. Results depend on the request alone: random operators draw the numbers
    of row key 0 for every request. A request that fails, such as a damaged image, has no effect on others.

    Args:
        pipeline: the pipeline; it is built. `batch_size` limits the number of requests that are computed together; of
            more, each part of that size is a batch.
        output_map: names of the outputs; results are then dicts, otherwise tuples (one array if there is one output).

    Raises:
        ArgumentError: a source has data of its own, no name, or does not declare `dtype` and `ndim`; or a function's
            types are known only after its first call.
        UnsupportedError: an operator makes rows depend on each other, or keeps state.
    """

    def __init__(self, pipeline: Pipeline, output_map: Sequence[str] | None = None) -> None:
        if not isinstance(pipeline, Pipeline):
            raise ArgumentError(f"`Endpoint`: expected a Pipeline, got {type(pipeline).__name__}")
        names = list(output_map) if isinstance(output_map, (list, tuple)) else []
        if output_map is not None and (
            len(names) != pipeline.num_outputs
            or len({*map(str, names)}) != len(names)
            or not all(isinstance(n, str) for n in names)
        ):
            raise ArgumentError(
                f"`Endpoint`: expected a name of its own for each of {pipeline.num_outputs} outputs in `output_map`, "
                f"got {brief(output_map)}"
            )
        self.pipeline = pipeline
        self._names = tuple(names) if output_map is not None else None
        self._execution = pipeline.execution
        self._sources = _sources(self._execution)
        if self._execution.plan is None:
            raise ArgumentError(
                "`Endpoint`: expected types that are known before the first request, so that it does not decide about "
                "all others. Declare `dtype` and `ndim` of every `external_source`, and the types of Python functions "
                "(`output_dtypes`, `output_ndims`)"
            )
        self._outputs = self._execution.plan.outputs
        fed = self._execution.fed
        self._feeders = {name: (node, fed[node]) for name, node in self._sources.items()}
        self._of_bytes = {name for name, (_, feeder) in self._feeders.items() if _is_bytes(feeder.specs[0])}
        self._execution.start()

    @property
    def inputs(self) -> list[Tensor]:
        """Return the names, types and shapes of a request's values."""
        specs = {name: self._execution.fed[node].specs[0] for name, node in self._sources.items()}
        return [Tensor(name, spec.dtype, tuple(None for _ in spec.shape)) for name, spec in specs.items()]

    @property
    def outputs(self) -> list[Tensor]:
        """Return the names, types and shapes of a result's values; without `output_map` the names are "output_0"..."""
        names = self._names or tuple(f"output_{i}" for i in range(len(self._outputs)))
        return [
            Tensor(name, p.dtype, p.shape if p.shape is not None else (None,) * p.rank)
            for name, p in zip(names, self._outputs, strict=True)
        ]

    @property
    def on_gpu(self) -> bool:
        """Return whether a result is an array on a GPU."""
        return any(p.on_gpu for p in self._outputs)

    def __call__(self, requests: Sequence[Any]) -> list[Any]:
        """Return for each request its result, or the error that it failed with (a :class:`~stoker.StokerError`).

        Args:
            requests: a list of requests.

        Raises:
            ArgumentError: ``requests`` is no list.
            StateError: the pipeline is closed.
        """
        if not isinstance(requests, (list, tuple)):
            raise ArgumentError(
                f"`Endpoint`: expected a list of requests, got {type(requests).__name__}. Pass one request as [request]"
            )
        results: list[Any] = [None] * len(requests)
        ready: list[tuple[int, dict[int, Any]]] = []
        for number, request in enumerate(requests):
            try:
                ready.append((number, self._values(request)))
            except StokerError as error:
                results[number] = error
        size = self.pipeline.batch_size
        for begin in range(0, len(ready), size):
            self._answer(ready[begin : begin + size], results)
        return results

    def _values(self, request: Any) -> dict[int, Any]:
        """Return the arrays of a request by the source's node."""
        if type(request) is not dict and not isinstance(request, Mapping):  # asking for a Mapping is slow
            if len(self._sources) > 1:
                raise ArgumentError(
                    f"`Endpoint`: expected a request with the values {list(self._sources)}, got {brief(request)}"
                )
            request = {next(iter(self._sources)): request}
        odd = [name for name in request if name not in self._sources]
        if odd:
            hint = did_you_mean(odd[0], list(self._sources)) or f"there are {list(self._sources)}"
            raise ArgumentError(f"`Endpoint`: there is no source called {brief(odd[0])}; {hint}")
        missing = [name for name in self._sources if name not in request]
        if missing:
            raise ArgumentError(f"`Endpoint`: expected a value for {missing[0]!r} in the request, got none")
        values = {}
        for name, (node, feeder) in self._feeders.items():
            value = request[name]
            if type(value) is bytes and value and name in self._of_bytes:
                values[node] = np.frombuffer(value, np.uint8)  # as `convert`, which takes 15 us more
                continue
            try:
                ((values[node],),) = feeder.convert([value])
            except (DataError, TypeError) as error:
                raise DataError(f"`Endpoint`: {name}: {str(error).removesuffix(' in row 0')}") from error
        return values

    def _answer(self, batch: list[tuple[int, dict[int, Any]]], results: list[Any]) -> None:
        """Compute requests together and store their results."""
        feeds = {(node, 0): [values[node] for _, values in batch] for node in self._sources.values()}
        try:
            outputs, failed = self._execution.serve(feeds, len(batch))
        except DataError as error:  # together they exceed the memory of a batch
            if len(batch) == 1:
                results[batch[0][0]] = error
                return
            for one in batch:
                self._answer([one], results)
            return
        columns = [_rows(x, p) for x, p in zip(outputs, self._outputs, strict=True)]
        for row, (number, _) in enumerate(batch):
            results[number] = failed[row] if row in failed else self._result([column[row] for column in columns])

    def _result(self, values: list[Any]) -> Any:
        if self._names is not None:
            return dict(zip(self._names, values, strict=True))
        return values[0] if len(values) == 1 else tuple(values)

    def close(self) -> None:
        """Stop the pipeline; idempotent."""
        self.pipeline.close()

    def __enter__(self) -> Endpoint:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, tb: TracebackType | None) -> None:
        self.close()

    def __repr__(self) -> str:
        return (
            f"<Endpoint: {', '.join(self._sources)} -> {', '.join(t.name for t in self.outputs)}, of {self.pipeline!r}>"
        )


def _is_bytes(spec: Spec) -> bool:
    """Return whether a source takes the bytes of a file."""
    return spec.dtype == DType.UINT8 and len(spec.shape) == 1


def _rows(output: Any, planned: PlannedOutput) -> list[Any]:
    """Return the rows of an output; one array per request."""
    if isinstance(output, (list, np.ndarray)):
        return list(output)
    return [output.row(i) for i in range(output.shape[0])]


def fed_sources(execution: Execution, user: str) -> dict[str, int]:
    """Return the nodes of the sources that a caller feeds, by name.

    Args:
        execution: the pipeline's.
        user: name of what feeds them, for errors.

    Raises:
        ArgumentError: there is none, or the pipeline has another source.
    """
    found: dict[str, int] = {}
    for number in sorted(execution.graph.needed()):
        node = execution.graph.nodes[number]
        if not node.operator.is_source:
            continue
        if number not in execution.fed or not node.name or node.outputs > 1:
            text = "expected sources that requests feed, `external_source(name=...)` without `source`, got another"
            raise ArgumentError(message(node.operator.subject(node.args), text, source=node.source_line))
        found[node.name] = number
    if not found:
        raise ArgumentError(f"`{user}`: expected a pipeline with an `external_source(name=...)`, got one without input")
    return found


def _sources(execution: Execution) -> dict[str, int]:
    """Return the sources that requests feed, by name.

    Raises:
        ArgumentError, UnsupportedError: the pipeline is no function of its requests.
    """
    for number in sorted(execution.graph.needed()):
        node = execution.graph.nodes[number]
        operator = node.operator
        if not operator.is_source and (operator.stateful or operator.depends_on_batch(node.args)):
            why = "it keeps state between them" if operator.stateful else "its rows depend on each other"
            text = f"expected operators whose results depend on one request, got one where {why}"
            raise UnsupportedError(message(operator.name, text, source=node.source_line))
    return fed_sources(execution, "Endpoint")
