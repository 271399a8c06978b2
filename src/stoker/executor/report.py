# SPDX-License-Identifier: Apache-2.0
"""Run report: statistics and bottleneck. It prints, renders in a notebook, and converts to a dict."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass, field
from typing import Any

from ..contract.text import printable
from .decoding import Decoding

_EXAMPLES = 10

THREADS, PYTHON, SOURCE, GPU, DISK, NETWORK = "threads", "python", "source", "gpu", "disk", "network"
_WORDS = {
    THREADS: "the pipeline, mostly",
    DISK: "the disk, which threads wait for in",
    NETWORK: "the network, which rows wait for in",
    PYTHON: "Python code, which runs on one thread, mostly",
    SOURCE: "the source, which runs where batches are asked for, mostly",
    GPU: "the GPU, mostly",
}


@dataclass(frozen=True)
class Stage:
    """Time of one node of the graph. A fused stage counts for its last node.

    Attributes:
        name, source: the node and the line that made it.
        ms_per_row: time per row on one thread.
        share: share of all stages' time.
        where: "threads" (worker threads), "disk" (worker threads that wait for bytes of a file), "python" (the thread
            that runs Python code), "network" (that thread while it waits for an asynchronous store), "source" (a
            source's code, on the thread that requests batches), or "gpu" (measured on one batch in 16; includes the
            GPU's work for other programs during that time).
        rows_per_second: the stage's rate if it had all threads of its resource.
        gain: estimated factor by which the total rate would grow if the stage took no time. The estimate assumes that a
            resource's time is the sum of its stages' and that the slowest resource limits the rate.
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
    """State of the prefetch queue at the consumer's requests.

    Attributes:
        depth: number of prefetched batches.
        in_flight: average number of batches that had begun.
        finished: average number of finished batches.
        ready: share of the requests that found a finished batch.
    """

    depth: int
    in_flight: float
    finished: float
    ready: float


@dataclass(frozen=True)
class Progress:
    """Position of the stream.

    Attributes:
        epoch, rows: the epoch, and the number of its rows delivered to this shard.
        of: rows of an epoch; None if only the source knows.
        seconds_left: time to the end of the epoch at the average rate; None if unknown.
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


@dataclass(frozen=True)
class Assignment:
    """Shard and GPU of this process.

    Attributes:
        shard, shards: the first part of an epoch that this process takes, and the number of parts; (0, 1): all.
        gpu: the GPU's number; None: no GPU is in use.
        launcher: those of "shard" and "gpu" that the environment of a launcher (torchrun) decided.
    """

    shard: int = 0
    shards: int = 1
    gpu: int | None = None
    launcher: tuple[str, ...] = ()

    def __str__(self) -> str:
        parts = []
        if self.shards > 1:
            origin = ", from the launcher" if "shard" in self.launcher else ""
            parts.append(f"shard {self.shard} of {self.shards}{origin}")
        if self.gpu is not None:
            parts.append(f"GPU {self.gpu}{', from LOCAL_RANK' if 'gpu' in self.launcher else ''}")
        return "; ".join(parts)


@dataclass(frozen=True)
class ReadAheadReport:
    """Records that were read ahead of the rows.

    Attributes:
        records, bytes: requested from the system.
        from_disk: records that were not in the page cache.
        is_active: whether later rows are being read ahead.
    """

    records: int
    bytes: int
    from_disk: int
    is_active: bool

    def __str__(self) -> str:
        state = "" if self.is_active else ", now off: the files are in the page cache"
        return (
            f"{self.records} records ({self.bytes / 1e6:.0f} MB) were read ahead, {self.from_disk} of them from a disk"
            f"{state}"
        )


@dataclass(frozen=True)
class FileReadsReport:
    """Reads of large files into a GPU's memory, and the way of later reads.

    Attributes:
        way: "off" (GPUDirect Storage is off: all reads are staged), "measuring", "direct" (by GPUDirect Storage),
            "staged" (through page-locked buffers, which was faster) or "failed" (staged, too).
        direct, staged: number of reads.
        direct_gb_s, staged_gb_s: their rates on one thread, in 10^9 bytes per second; 0 without reads.
        file_share, copy_share: share of the staged reads' time that the file system took, and waiting for copies.
        reason: error of the library, if it failed.
    """

    way: str
    direct: int
    staged: int
    direct_gb_s: float
    staged_gb_s: float
    file_share: float
    copy_share: float
    reason: str

    def __str__(self) -> str:
        direct = f"{self.direct} reads by GPUDirect Storage ({self.direct_gb_s:.2f} GB/s on a thread)"
        staged = (
            f"{self.staged} reads of files to the GPU through page-locked buffers ({self.staged_gb_s:.2f} GB/s on a "
            f"thread, {self.file_share:.0%} of the time in the file system, {self.copy_share:.0%} waiting for copies)"
        )
        if self.way == "off":
            return staged
        later = {
            "measuring": "both are being measured", "direct": "later ones are direct",
            "staged": "later ones go through page-locked buffers, which was faster",
            "failed": f"later ones go through page-locked buffers: {self.reason}",
        }  # fmt: skip
        return f"{direct}, {staged}; {later[self.way]}"


def file_reads_report(
    found: tuple[int, tuple[int, int, int], tuple[int, int, int, int, int], str],
) -> FileReadsReport | None:
    """Return the report of the native reads; None if cuFile is off and no file was read.

    Args:
        found: state; reads, bytes and ns of the direct way; of the staged one, too, with ns in the file system and
            waiting; and the reason of a failure.
    """
    state, (direct, direct_bytes, direct_ns), (staged, staged_bytes, staged_ns, file_ns, await_ns), reason = found
    way = ("off", "measuring", "direct", "staged", "failed")[state]
    if way == "off" and staged == 0:
        return None
    of_direct, of_staged = max(direct_ns, 1), max(staged_ns, 1)
    return FileReadsReport(
        way, direct, staged, direct_bytes / of_direct, staged_bytes / of_staged, file_ns / of_staged,
        await_ns / of_staged, reason,
    )  # fmt: skip


@dataclass
class HandOver:
    """Rows that a node's native kernel left to its slower Python twin.

    Attributes:
        name, source: the node.
        reason: the kernel's reason.
        rows: number of rows so far.
        examples: the first of them.
    """

    name: str
    source: str
    reason: str
    rows: int = 0
    examples: tuple[str, ...] = ()

    def count(self, sample: str) -> None:
        """Count one more row."""
        self.rows += 1
        if len(self.examples) < _EXAMPLES:
            self.examples += (sample,)


CONSUMER = "consumer"
_HEAD = ("stage", "ms per row", "share", "rows/s alone", "if free", "where", "made at")


_LEFT_HEAD = ("rows", "node", "reason", "first")


@dataclass(frozen=True)
class Report:
    """Statistics of a running pipeline since its first batch.

    Attributes:
        rows, batches: delivered so far.
        seconds: time between the first and the latest request for a batch.
        waited: share of that time in which the consumer waited for data.
        stages: time per node, largest first.
        seed, threads: settings in use.
        handed_over: rows that native kernels left to Python, by node and reason, most frequent first.
        queue: state of the prefetch queue.
        progress: position in the epoch.
        limited_by: "consumer", or the resource of the limiting stages: "threads", "disk", "python", "network",
            "source", "gpu"; "" before a run.
        decoding: rows decoded by GPU and CPU; None without a decoder on a GPU.
        codecs: sections of the codecs in use, by name. "jpeg" has ``known`` and ``engines``.
        assignment: this process's part of every epoch, and its GPU.
        read_ahead: records that were read ahead from a cold disk; None: rows have not waited for a disk.
        file_reads: reads of large files into the GPU's memory; None if there are none and GPUDirect Storage is off.
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
    assignment: Assignment = Assignment()
    codecs: Mapping[str, Any] = field(default_factory=dict)
    read_ahead: ReadAheadReport | None = None
    file_reads: FileReadsReport | None = None

    @property
    def rows_per_second(self) -> float:
        return self.rows / self.seconds if self.seconds > 0 else 0.0

    @property
    def limit(self) -> str:
        """Return the bottleneck as a sentence."""
        if not self.batches:
            return "nothing has run yet"
        if self.limited_by == CONSUMER:
            return "the consumer: batches are ready when it asks for them"
        there = [s for s in self.stages if s.where == self.limited_by]
        if not there:
            return "the pipeline"
        top = there[0]
        share = top.ms_per_row / (sum(s.ms_per_row for s in there) or 1.0)
        name = f"`{top.name}`{f' at {top.source}' if top.source else ''}"
        return f"{_WORDS[top.where]} {name} ({share:.0%} of its time; {top.gain:.1f}x the rate if it were free)"

    @property
    def progress_line(self) -> str:
        """Return position, rate and bottleneck in one line, for the log of a training loop."""
        if not self.batches:
            return f"{self.progress}"
        top = next((s.name for s in self.stages if s.where == self.limited_by), "")
        place = {CONSUMER: "the consumer", DISK: "the disk", NETWORK: "the network"}.get(self.limited_by, f"`{top}`")
        return f"{self.progress}, {self.rows_per_second:.0f} rows/s, limited by {place}"

    def to_dict(self) -> dict[str, Any]:
        """Return the report as plain values."""
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
            *([str(self.assignment)] if str(self.assignment) else []),
            (
                f"queue of {queue.depth}: {queue.finished:.1f} batches finished and {queue.in_flight:.1f} in flight "
                f"when asked; {queue.ready:.0%} of the requests did not wait"
            ),
            f"limited by {self.limit}",
            *([str(self.read_ahead)] if self.read_ahead is not None else []),
            *([str(self.file_reads)] if self.file_reads is not None else []),
            *self._decoded(),
        ]

    def _decoded(self) -> list[str]:
        sections = [text for section in self.codecs.values() if (text := str(section))]
        return sections if self.decoding is None else [self.decoding.line(sections)]

    def __str__(self) -> str:
        rows: list[tuple[str, ...]] = [_HEAD, *self._table()]
        widths = [max(len(r[i]) for r in rows) for i in range(6)]
        lines = self._summary()
        for r in rows:
            numbers = "  ".join(f"{r[i]:>{widths[i]}}" for i in range(1, 5))
            lines.append(f"  {r[0]:<{widths[0]}}  {numbers}  {r[5]:<{widths[5]}}  {r[6]}".rstrip())
        for one in self.handed_over:
            reason, first = printable(one.reason), printable(one.examples[0])
            lines.append(f"  {one.rows} rows of {one.name} were left to Python: {reason}; first {first}")
        return "\n".join(lines)

    __repr__ = __str__

    def _repr_html_(self) -> str:
        """Return summary and tables for notebooks."""
        from ..display.html import paragraph, table

        summary = "".join(map(paragraph, self._summary()))
        left = [(str(o.rows), o.name, o.reason, o.examples[0]) for o in self.handed_over]
        listed = paragraph("rows left to Python") + table(_LEFT_HEAD, left) if left else ""
        return f"<div>{summary}{table(_HEAD, self._table())}{listed}</div>"
