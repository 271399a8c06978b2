# SPDX-License-Identifier: Apache-2.0
"""Preview of a pipeline: a contact sheet of its next samples, from a copy that leaves the pipeline as it is."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import replace
from pathlib import PurePath
from typing import TYPE_CHECKING, Any

from ..contract.batch import Batch
from ..contract.config import PipelineConfig
from ..contract.errors import ArgumentError, StateError, did_you_mean
from ..contract.text import brief, printable
from ..contract.whole_number import as_whole_number
from ..display.pixels import describe_values, draw_rows
from ..display.sheet import TILE, Card, draw_cards
from ..graph.node import Graph
from .preparation import prepare

if TYPE_CHECKING:
    from PIL.Image import Image

    from ..executor.delivery import Delivered
    from ..executor.execution import Execution

_MOST = 256  # samples of a sheet


def require_count(n: Any) -> int:
    """Return the number of samples of a sheet; ArgumentError if it is none."""
    count = as_whole_number(n)
    if count is None or not 1 <= count <= _MOST:
        raise ArgumentError(f"`preview`: expected a number of samples from 1 to {_MOST}, got {brief(n)}")
    return count


def preview(
    name: str, graph: Graph, config: PipelineConfig, count: int, outputs: int, inputs: Mapping[str, Any]
) -> Image:
    """Return a contact sheet; :meth:`stoker.Pipeline.preview` explains it.

    Args:
        name: name of the pipeline.
        graph: its graph.
        config: its configuration, with the position to begin at as ``checkpoint``.
        count: number of samples.
        outputs: number of outputs to show.
        inputs: data of sources that are fed by hand, by name.
    """
    with _copy(graph, config, count, inputs) as execution:
        batches: list[tuple[Batch, ...]] = []
        names: list[str] = []
        while len(names) < count and (delivered := execution.next("go_on")) is not None:
            names += _row_names(execution, delivered)
            batches.append(execution.batches(delivered)[:outputs])
            if inputs:  # there is one batch of them
                break
        if not names:
            raise StateError("`preview`: expected samples, got none: the pipeline's data have ended")
        return _draw(f"{name or 'pipeline'}, {min(count, len(names))} samples", graph, batches, names[:count])


@contextmanager
def _copy(graph: Graph, config: PipelineConfig, count: int, inputs: Mapping[str, Any]) -> Iterator[Execution]:
    """Yield an execution of the same graph, and close it afterwards."""
    fed = {node.name: node.id for node in graph.nodes if node.operator.is_source and node.name in inputs}
    if unknown := next((name for name in inputs if name not in fed), None):
        hint = did_you_mean(unknown, [n.name for n in graph.nodes if n.operator.is_source and n.name])
        raise ArgumentError(f"`preview`: there is no source called {brief(unknown)}; {hint}".rstrip("; "))
    # Random numbers do not depend on the batch size, but operators that mix the rows of a batch do.
    mixes = any(node.operator.depends_on_batch(node.args) for node in graph.nodes)
    size = config.batch_size if mixes or inputs else min(config.batch_size, count)
    execution = prepare(graph, replace(config, batch_size=size, depth=0, gpu_depth=None, codec_options={}))
    try:
        execution.require_resumable(fed=fed.values())
        for name, node in fed.items():
            execution.feed(node, inputs[str(name)])
        yield execution
    finally:
        execution.close()


def _row_names(execution: Execution, delivered: Delivered) -> list[str]:
    """Return a caption per row: the file it was read from, else its number."""
    source = next(iter(execution.sources.values()), None)
    rows = delivered.rows
    if source is None:
        return [f"row {key}" for key in rows.keys]
    replaced = {(bad.epoch, bad.key): bad.substitute for bad in execution.errors if bad.substitute is not None}
    names = []
    for index, epoch, key in zip(rows.indices[0], rows.epochs, rows.keys, strict=True):
        name = _short_name(source.describe(int(index)))
        substitute = replaced.get((int(epoch), int(key)))
        names.append(name if substitute is None else f"{_short_name(source.describe(substitute))}, for {name}")
    return names


def _short_name(place: str) -> str:
    """Return a file's name with its folder, which often is the class."""
    return "/".join(PurePath(place).parts[-2:])


def _title(graph: Graph, number: int) -> str:
    """Return an output's name: that of its node, if the node has one output."""
    node = graph.nodes[graph.outputs[number].node]
    return node.name if node.name and node.outputs == 1 else f"output {number}"


def _draw(title: str, graph: Graph, batches: Sequence[tuple[Batch, ...]], names: Sequence[str]) -> Image:
    tiles: list[list[Image | None]] = [[] for _ in names]
    lines: list[list[str]] = [[] for _ in names]
    header = []
    for number, parts in enumerate(zip(*batches, strict=True)):
        rows = [row for part in parts for row in part.host_rows(len(names))][: len(names)]
        name = _title(graph, number)
        pictures = draw_rows(rows, parts[0].layout, TILE)
        shapes = {row.shape for row in rows}
        text = f"{name}: {parts[0].dtype}{f' {parts[0].layout}' if parts[0].layout else ''}"
        text += f" {shapes.pop()}" if len(shapes) == 1 else ", of several shapes"
        if pictures is None:
            for own, row in zip(lines, rows, strict=True):
                own.append(f"{name}: {printable(describe_values(row))}")
        else:
            text = "; ".join([text, str(pictures.scale), *([pictures.remark] if pictures.remark else [])])
            for image, mine in zip(pictures.images, tiles, strict=True):
                mine.append(image)
        header.append(printable(text))
    cards = [Card(images, caption, own) for images, caption, own in zip(tiles, names, lines, strict=True)]
    return draw_cards(cards, printable(title), header)
