# SPDX-License-Identifier: Apache-2.0
"""Where JPEG files were decoded, and by what: facts about the decoders that a GPU and the CPU share."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Protocol


class Index(Protocol):
    """What a GPU's decoders keep about files, and how many rows it was of use for."""

    @property
    def files(self) -> int: ...
    @property
    def bytes(self) -> int: ...
    @property
    def rows_read(self) -> int: ...
    @property
    def rows_wrong(self) -> int: ...
    @property
    def rows_in_part(self) -> int: ...


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

    @staticmethod
    def of(index: Index) -> KnownFiles:
        """What there is about files now."""
        return KnownFiles(index.files, index.bytes, index.rows_read, index.rows_wrong, index.rows_in_part)

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
        library_bytes, driver_bytes: of the GPU's memory, in use: what nvJPEG asked for, and what the driver took for it
            unasked (what the GPU had less of when the engines were opened and first used, 512 MiB at most). Both count
            within `gpu_memory_limit`.
    """

    rows: int
    reasons: Mapping[str, int]
    compared: int
    mean_error: float | None
    max_error: int | None
    library_bytes: int = 0
    driver_bytes: int = 0

    @staticmethod
    def of(decoders: Sequence[OnEngines], memory: tuple[int, int] = (0, 0)) -> Engines:
        """All of a plan's together; ``memory`` is the library's and the driver's."""
        reasons: Counter[str] = Counter()
        for decoder in decoders:
            reasons.update(decoder.reasons)
        measured = [decoder.error for decoder in decoders]
        values = sum(error[1] for error in measured)
        mean = sum(error[2] for error in measured) / values if values else None
        most = max(error[3] for error in measured) if values else None
        return Engines(sum(d.rows for d in decoders), dict(reasons), sum(e[0] for e in measured), mean, most, *memory)

    def __str__(self) -> str:
        error = "not yet known"
        if self.mean_error is not None:
            error = f"{self.mean_error:.2g} levels on average and {self.max_error} at most, by {self.compared} rows"
        left = ", ".join(f"{rows} {reason}" for reason, rows in sorted(self.reasons.items(), key=lambda r: -r[1]))
        memory = f"{self.library_bytes / 1e6:.0f} MB and the driver's {self.driver_bytes / 1e6:.0f} MB"
        text = f"by the GPU's JPEG engines: {self.rows}{f' (not {left})' if left else ''}, their error {error}"
        return f"{text}, their memory {memory}"


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
