# SPDX-License-Identifier: Apache-2.0
"""What a run did and what limits it: an object that prints, renders in a notebook and converts to a dict."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from typing import Any, Protocol

_EXAMPLES = 10


THREADS, PYTHON, SOURCE, GPU = "threads", "python", "source", "gpu"
_WORDS = {
    THREADS: "the pipeline, mostly",
    PYTHON: "Python code, which runs on one thread, mostly",
    SOURCE: "the source, which runs where batches are asked for, mostly",
    GPU: "the GPU, mostly",
}


@dataclass(frozen=True)
class Stage:
    """Time of one node of the graph. A fused stage counts for the last node in it.

    Attributes:
        name, source: the node and the line that made it.
        ms_per_row: time per row on one thread.
        share: part of all stages' time.
        where: "threads" (worker threads), "python" (the thread that runs Python code), "source" (a source's code, on
            the thread that asks for batches), or "gpu" (from one batch in 16: it contains what the GPU did for others
            in between).
        rows_per_second: what it could do alone, with all threads of its place.
        gain: by what the whole rate would be multiplied if it took no time: an estimate, in which each place is as slow
            as the sum of its stages and the slowest place limits.
    """

    name: str
    source: str
    ms_per_row: float
    share: float
    where: str = THREADS
    rows_per_second: float = 0.0
    gain: float = 1.0


@dataclass(frozen=True)
class Queue:
    """What the consumer found when it asked.

    Attributes:
        depth: batches that are made ahead.
        under_way: batches that had been begun, on average.
        finished: batches that were finished, on average.
        ready: share of the requests that found a finished batch.
    """

    depth: int
    under_way: float
    finished: float
    ready: float


@dataclass(frozen=True)
class Progress:
    """Where the stream stands.

    Attributes:
        epoch, rows: the epoch, and its rows that were delivered (to this shard).
        of: rows of an epoch; None if only the source knows.
        seconds_left: until the end of the epoch at the rate so far; None if that is not known.
    """

    epoch: int
    rows: int
    of: int | None
    seconds_left: float | None

    def __str__(self) -> str:
        if self.of is None:
            return f"epoch {self.epoch}: {self.rows} rows"
        text = f"epoch {self.epoch}: {self.rows} of {self.of} rows ({self.rows / max(1, self.of):.0%})"
        if self.seconds_left is None:
            return text
        minutes, seconds = divmod(round(self.seconds_left), 60)
        hours, minutes = divmod(minutes, 60)
        return f"{text}, {hours}:{minutes:02}:{seconds:02} left"


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
class KnownFiles:
    """What JPEG decoders on a GPU keep about files (the pipeline's ``gpu_jpeg_index``).

    Attributes:
        files: of which something is kept.
        bytes: of the GPU's memory that were taken for it.
        rows: decoded with its help so far.
        parts: of them, rows of whose files only what the window needs was read.
        wrong: rows for which it was of no use, because it was of other data.
    """

    files: int
    bytes: int
    rows: int
    wrong: int
    parts: int = 0

    def __str__(self) -> str:
        wrong = f", {self.wrong} rows had changed" if self.wrong else ""
        parts = f", {self.parts} rows read in part" if self.parts else ""
        return f"{self.rows} rows of known files ({self.files} known, {self.bytes / 1e6:.1f} MB{parts}{wrong})"


class OnEngines(Protocol):
    """A decoder that gives rows to a GPU's JPEG engines."""

    @property
    def rows(self) -> int: ...
    @property
    def reasons(self) -> Mapping[str, int]: ...
    @property
    def error(self) -> tuple[int, int, int, int]:
        """Rows that were compared, their values, and the sum and the largest of their differences."""


@dataclass(frozen=True)
class Engines:
    """What a GPU's JPEG engines decoded, where the user asked for them, and how exactly.

    Attributes:
        rows: they decoded so far.
        reasons: why rows whose turn it was were left to the exact decoder, and how many for each reason.
        compared: rows (one in 64) of which the exact pixels were made too.
        mean_error, max_error: of the compared rows' values, in levels from 0 to 255; None before any.
    """

    rows: int
    reasons: Mapping[str, int]
    compared: int
    mean_error: float | None
    max_error: int | None

    @staticmethod
    def of(decoders: Sequence[OnEngines]) -> Engines:
        """All of a plan's together."""
        reasons: Counter[str] = Counter()
        for decoder in decoders:
            reasons.update(decoder.reasons)
        measured = [decoder.error for decoder in decoders]
        values = sum(error[1] for error in measured)
        mean = sum(error[2] for error in measured) / values if values else None
        most = max(error[3] for error in measured) if values else None
        return Engines(sum(d.rows for d in decoders), dict(reasons), sum(e[0] for e in measured), mean, most)

    def __str__(self) -> str:
        error = "not yet known"
        if self.mean_error is not None:
            error = f"{self.mean_error:.2g} levels on average and {self.max_error} at most, by {self.compared} rows"
        left = ", ".join(f"{rows} {reason}" for reason, rows in sorted(self.reasons.items(), key=lambda r: -r[1]))
        return f"by the GPU's JPEG engines: {self.rows}{f' (not {left})' if left else ''}, their error {error}"


@dataclass(frozen=True)
class Decoding:
    """Where rows were decoded that the GPU and the CPU can both decode, with the same bits.

    Attributes:
        rows_on_gpu, rows_on_cpu: so far.
        reasons: why rows were left to the CPU, and how many for each reason.
        cpu_share: the CPU's part of the rows from now on, beside those that only it can decode.
        why: it is that.
        known: about files that were decoded before, where the GPU keeps such things.
        engines: rows that the GPU's JPEG engines decoded, which count neither as the GPU's nor as the CPU's.
    """

    rows_on_gpu: int
    rows_on_cpu: int
    reasons: Mapping[str, int]
    cpu_share: float
    why: str
    known: KnownFiles | None = None
    engines: Engines | None = None

    def __str__(self) -> str:
        part = self.rows_on_gpu / max(1, self.rows_on_gpu + self.rows_on_cpu)
        text = f"decoded on the GPU: {self.rows_on_gpu} rows ({part:.1%}), on the CPU: {self.rows_on_cpu}"
        why = ", ".join(f"{rows} {reason}" for reason, rows in sorted(self.reasons.items(), key=lambda r: -r[1]))
        text += f"; {self.known}" if self.known else ""
        text += f"; {self.engines}" if self.engines else ""
        return f"{text}{f' ({why})' if why else ''}; the CPU takes {self.cpu_share:.0%} now: {self.why}"


CONSUMER = "consumer"
_HEAD = ("stage", "ms per row", "share", "rows/s alone", "if free", "where", "made at")


@dataclass(frozen=True)
class Report:
    """Facts about a running pipeline since its first batch.

    Attributes:
        rows, batches: delivered so far.
        seconds: between the first and the latest request for a batch.
        waited: share of that time in which the consumer waited for data.
        stages: time per node, largest first.
        seed, threads: the settings in use.
        handed_over: rows that native kernels left to Python, by node and reason, the most frequent first.
        queue: how many batches were ready when they were asked for.
        progress: how far the epoch is.
        limited_by: "consumer", or the place of the stages that limit: "threads", "python", "source", "gpu"; "" before
            a run.
        decoding: where rows were decoded; None without a decoder on a GPU.
    """

    rows: int
    batches: int
    seconds: float
    waited: float
    stages: tuple[Stage, ...]
    seed: int
    threads: int
    handed_over: tuple[HandOver, ...] = ()
    queue: Queue = Queue(0, 0.0, 0.0, 0.0)
    progress: Progress = Progress(0, 0, None, None)
    limited_by: str = ""
    decoding: Decoding | None = None

    @property
    def rows_per_second(self) -> float:
        return self.rows / self.seconds if self.seconds > 0 else 0.0

    @property
    def limit(self) -> str:
        """What limits the rate, in a sentence."""
        if not self.batches:
            return "nothing has run yet"
        if self.limited_by == CONSUMER:
            return "the consumer: batches are ready when it asks for them"
        there = [s for s in self.stages if s.where == self.limited_by]
        if not there:
            return "the pipeline"
        top = there[0]
        share = top.ms_per_row / (sum(s.ms_per_row for s in there) or 1.0)
        return f"{_WORDS[top.where]} `{top.name}` ({share:.0%} of its time; {top.gain:.1f}x the rate if it were free)"

    def to_dict(self) -> dict[str, Any]:
        """Everything as plain values."""
        return {**asdict(self), "rows_per_second": self.rows_per_second, "limit": self.limit}

    def _table(self) -> list[tuple[str, ...]]:
        return [
            (
                s.name,
                f"{s.ms_per_row:.3f}",
                f"{s.share:.0%}",
                f"{s.rows_per_second:.0f}",
                f"{s.gain:.2f}x",
                s.where,
                s.source,
            )
            for s in self.stages
        ]

    def _summary(self) -> list[str]:
        rate = f"{self.rows_per_second:.0f} rows/s on {self.threads} threads"
        queue = self.queue
        return [
            f"{self.rows} rows in {self.batches} batches, {rate}, seed {self.seed}",
            f"{self.progress}",
            (
                f"queue of {queue.depth}: {queue.finished:.1f} batches finished and {queue.under_way:.1f} under way "
                f"when asked; {queue.ready:.0%} of the requests did not wait"
            ),
            f"limited by {self.limit}",
            *([str(self.decoding)] if self.decoding is not None else []),
        ]

    def __str__(self) -> str:
        rows: list[tuple[str, ...]] = [_HEAD, *self._table()]
        widths = [max(len(r[i]) for r in rows) for i in range(6)]
        lines = self._summary()
        for r in rows:
            numbers = "  ".join(f"{r[i]:>{widths[i]}}" for i in range(1, 5))
            lines.append(f"  {r[0]:<{widths[0]}}  {numbers}  {r[5]:<{widths[5]}}  {r[6]}".rstrip())
        for one in self.handed_over:
            lines.append(f"  {one.rows} rows of {one.name} were left to Python: {one.reason}; first {one.examples[0]}")
        return "\n".join(lines)

    __repr__ = __str__

    def _repr_html_(self) -> str:
        import html

        head = "<tr>" + "".join(f"<th>{h}</th>" for h in _HEAD) + "</tr>"
        body = "".join("<tr>" + "".join(f"<td>{html.escape(c)}</td>" for c in r) + "</tr>" for r in self._table())
        summary = "<br>".join(map(html.escape, self._summary()))
        left = "".join(f"<li>{o.rows} rows of {o.name}: {html.escape(o.reason)}</li>" for o in self.handed_over)
        listed = f"<p>left to Python:</p><ul>{left}</ul>" if left else ""
        return f"<p>{summary}</p><table>{head}{body}</table>{listed}"


Times = Mapping[tuple[str, str, str], int]  # (where, name, source) -> nanoseconds on one thread


@dataclass
class Meter:
    """Counts what the consumer sees.

    Attributes:
        inside_s: time in which the consumer was in a request, also while it prepared later batches.
    """

    rows: int = 0
    batches: int = 0
    waited_s: float = 0.0
    inside_s: float = 0.0
    first: float = 0.0
    last: float = 0.0
    under_way: int = 0
    finished: int = 0
    ready: int = 0

    def delivered(self, rows: int, asked: float, given: float, under_way: int, finished: int) -> None:
        """A batch was handed over; the last two are what the queue held when it was asked for."""
        if not self.batches:
            self.first = asked
        self.rows += rows
        self.batches += 1
        self.waited_s += given - asked
        self.last = given
        self.under_way += under_way
        self.finished += finished
        self.ready += finished > 0

    def report(
        self, times: Times, seed: int, threads: int, handed_over: tuple[HandOver, ...] = (), *, depth: int = 0,
        place: tuple[int, int, int | None] = (0, 0, None), split: Decoding | None = None,
    ) -> Report:  # fmt: skip
        """What has run; ``place`` is the epoch, its rows that were delivered, and how many it has."""
        rows, span = max(self.rows, 1), self.last - self.first
        own_ms = max(0.0, span - self.inside_s) * 1e3 / rows
        ms = {key: ns / 1e6 / rows for key, ns in times.items()}
        waited = self.waited_s / span if span > 0 else 0.0
        model = _Model(ms, threads if depth else 1, own_ms, serial=not depth)
        limited_by = "" if not self.batches else CONSUMER if waited < _PATIENT else model.slowest()
        total = sum(times.values()) or 1
        stages = tuple(
            Stage(key[1], key[2], ms[key], ns / total, key[0], model.alone(key), model.gain(key, limited_by))
            for key, ns in sorted(times.items(), key=lambda item: -item[1])
        )
        rate = self.rows / span if span > 0 else 0.0
        epoch, done, size = place
        left = None if size is None or not rate else max(0, size - done) / rate
        count = max(self.batches, 1)
        queue = Queue(depth, self.under_way / count, self.finished / count, self.ready / count)
        return Report(self.rows, self.batches, span, waited, stages, seed, threads, handed_over, queue,
                      Progress(epoch, done, size, left), limited_by, split)  # fmt: skip


_PATIENT = 0.1  # a consumer that waits less than this share of the time is what limits


class _Model:
    """How long a row takes if every place is as slow as the sum of its stages, and places work at the same time.

    Args:
        own_ms: the consumer's own work per row, on the thread where sources run.
        serial: everything runs on the consumer's thread, one after the other.
    """

    def __init__(self, ms: Mapping[tuple[str, str, str], float], threads: int, own_ms: float, *, serial: bool) -> None:
        self._ms, self._threads, self._own, self._serial = ms, threads, own_ms, serial

    def _places(self, without: tuple[str, str, str] | None = None) -> dict[str, float]:
        sums = {THREADS: 0.0, PYTHON: 0.0, SOURCE: 0.0, GPU: 0.0}
        for key, ms in self._ms.items():
            sums[key[0]] += 0.0 if key == without else ms
        sums[THREADS] /= self._threads
        return sums

    def _row_ms(self, without: tuple[str, str, str] | None = None) -> float:
        places = self._places(without)
        if self._serial:
            return sum(places.values()) + self._own
        return max(places[THREADS], places[PYTHON], places[GPU], places[SOURCE] + self._own)

    def slowest(self) -> str:
        """The place that takes longest; the consumer's own work is not among them."""
        places = self._places()
        return max(places, key=lambda place: places[place])

    def alone(self, key: tuple[str, str, str]) -> float:
        """Rows per second of one stage with all threads of its place."""
        ms = self._ms[key]
        return (self._threads if key[0] == THREADS else 1) * 1e3 / ms if ms else float("inf")

    def gain(self, key: tuple[str, str, str], limited_by: str) -> float:
        """What the rate would be multiplied by without this stage."""
        if limited_by in ("", CONSUMER):
            return 1.0
        rest = self._row_ms(key)
        return self._row_ms() / rest if rest else float("inf")
