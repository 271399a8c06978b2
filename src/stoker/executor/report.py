# SPDX-License-Identifier: Apache-2.0
"""What a run did and what limits it: an object that prints, renders in a notebook and converts to a dict."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass
from typing import Any

_EXAMPLES = 10


@dataclass(frozen=True)
class Stage:
    """Time of one node of the graph. A fused stage counts for the last node in it."""

    name: str
    source: str
    ms_per_row: float
    share: float


@dataclass
class HandOver:
    """Rows that a node's native kernel left to its Python twin: slower, and as exact as that is.

    Attributes:
        name, source: the node.
        reason: why, as the kernel says it.
        rows: how many so far.
        examples: the first of them.
    """

    name: str
    source: str
    reason: str
    rows: int = 0
    examples: tuple[str, ...] = ()

    def count(self, sample: str) -> None:
        """One more."""
        self.rows += 1
        if len(self.examples) < _EXAMPLES:
            self.examples += (sample,)


@dataclass(frozen=True)
class Report:
    """Facts about a running pipeline since its first batch.

    Attributes:
        rows, batches: delivered so far.
        seconds: between the first and the latest request for a batch.
        waited: share of that time in which the consumer waited for data.
        stages: time per node on the worker threads, largest first.
        seed, threads: the settings in use.
        handed_over: rows that native kernels left to Python, by node and reason, the most frequent first.
    """

    rows: int
    batches: int
    seconds: float
    waited: float
    stages: tuple[Stage, ...]
    seed: int
    threads: int
    handed_over: tuple[HandOver, ...] = ()

    @property
    def rows_per_second(self) -> float:
        return self.rows / self.seconds if self.seconds > 0 else 0.0

    @property
    def limit(self) -> str:
        """What limits the rate, in a sentence."""
        if not self.batches:
            return "nothing has run yet"
        if self.waited < 0.1:
            return "the consumer: batches are ready when it asks for them"
        if not self.stages:
            return "the pipeline"
        top = self.stages[0]
        gain = 1 / (1 - top.share) if top.share < 0.999 else float("inf")
        return f"the pipeline, mostly `{top.name}` ({top.share:.0%} of its time; {gain:.1f}x the rate if it were free)"

    def to_dict(self) -> dict[str, Any]:
        """Everything as plain values."""
        return {**asdict(self), "rows_per_second": self.rows_per_second, "limit": self.limit}

    def _table(self) -> list[tuple[str, str, str, str]]:
        return [(s.name, f"{s.ms_per_row:.3f}", f"{s.share:.0%}", s.source) for s in self.stages]

    def __str__(self) -> str:
        rows = [("stage", "ms per row", "share", "made at"), *self._table()]
        widths = [max(len(r[i]) for r in rows) for i in range(3)]
        rate = f"{self.rows_per_second:.0f} rows/s on {self.threads} threads"
        lines = [f"{self.rows} rows in {self.batches} batches, {rate}, seed {self.seed}", f"limited by {self.limit}"]
        lines += [f"  {r[0]:<{widths[0]}}  {r[1]:>{widths[1]}}  {r[2]:>{widths[2]}}  {r[3]}".rstrip() for r in rows]
        for one in self.handed_over:
            lines.append(f"  {one.rows} rows of {one.name} were left to Python: {one.reason}; first {one.examples[0]}")
        return "\n".join(lines)

    __repr__ = __str__

    def _repr_html_(self) -> str:
        head = "<tr><th>stage</th><th>ms per row</th><th>share</th><th>made at</th></tr>"
        import html

        body = "".join("<tr>" + "".join(f"<td>{html.escape(c)}</td>" for c in r) + "</tr>" for r in self._table())
        summary = html.escape(str(self).split("\n  ", 1)[0]).replace("\n", "<br>")
        left = "".join(f"<li>{o.rows} rows of {o.name}: {html.escape(o.reason)}</li>" for o in self.handed_over)
        listed = f"<p>left to Python:</p><ul>{left}</ul>" if left else ""
        return f"<p>{summary}</p><table>{head}{body}</table>{listed}"


@dataclass
class Meter:
    """Counts what the consumer sees."""

    rows: int = 0
    batches: int = 0
    waited_s: float = 0.0
    first: float = 0.0
    last: float = 0.0

    def delivered(self, rows: int, asked: float, given: float) -> None:
        if not self.batches:
            self.first = asked
        self.rows += rows
        self.batches += 1
        self.waited_s += given - asked
        self.last = given

    def report(
        self,
        nanoseconds: Mapping[tuple[str, str], int],
        seed: int,
        threads: int,
        handed_over: tuple[HandOver, ...] = (),
    ) -> Report:
        total = sum(nanoseconds.values()) or 1
        stages = [
            Stage(name, source, ns / 1e6 / max(self.rows, 1), ns / total)
            for (name, source), ns in sorted(nanoseconds.items(), key=lambda item: -item[1])
        ]
        span = self.last - self.first
        waited = self.waited_s / span if span > 0 else 0.0
        return Report(self.rows, self.batches, span, waited, tuple(stages), seed, threads, handed_over)
