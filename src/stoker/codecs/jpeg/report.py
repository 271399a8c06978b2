# SPDX-License-Identifier: Apache-2.0
"""The JPEG codec's section of the run report."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Protocol


class FileIndex(Protocol):
    """Interface of a GPU decoder's file index."""

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
class FileIndexReport:
    """Files in the index of a GPU's JPEG decoders (the pipeline's ``gpu_jpeg_index``).

    Attributes:
        files: files in the index.
        bytes: GPU memory of the index.
        rows: rows decoded with its help so far.
        parts: number of these rows for which only the bytes for the window were read.
        wrong: rows for which the index entry did not match the data.
    """

    files: int
    bytes: int
    rows: int
    wrong: int
    parts: int = 0

    @staticmethod
    def of(index: FileIndex) -> FileIndexReport:
        """Return a snapshot of the index."""
        return FileIndexReport(index.files, index.bytes, index.rows_read, index.rows_wrong, index.rows_in_part)

    def __str__(self) -> str:
        wrong = f", {self.wrong} rows had changed" if self.wrong else ""
        parts = f", {self.parts} rows read in part" if self.parts else ""
        return f"{self.rows} rows of known files ({self.files} known, {self.bytes / 1e6:.1f} MB{parts}{wrong})"


class EngineDecoder(Protocol):
    """Interface of a decoder that gives rows to a GPU's JPEG engines."""

    @property
    def rows(self) -> int: ...
    @property
    def reasons(self) -> Mapping[str, int]: ...
    @property
    def error(self) -> tuple[int, int, int, int]:
        """Return the number of compared rows and values, and the sum and maximum of their differences."""


@dataclass(frozen=True)
class Engines:
    """Rows decoded by a GPU's JPEG engines, and their differences from the exact pixels.

    Attributes:
        rows: rows decoded so far.
        reasons: reasons why rows assigned to the engines were left to the exact decoder, with the count of each.
        compared: rows (one in 64) that the exact decoder decoded too.
        mean_error, max_error: differences of the compared rows' values, in levels from 0 to 255; None before any.
        library_bytes, driver_bytes: GPU memory in use: requested by nvJPEG, and taken by the driver without a request
            (the decrease of free memory when the engines were opened and first used, 512 MiB at most). Both count
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
    def of(decoders: Sequence[EngineDecoder], memory: tuple[int, int] = (0, 0)) -> Engines:
        """Return the total of a plan's decoders. ``memory`` holds the library's and the driver's bytes."""
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
class JpegReport:
    """Files in the index of a GPU's JPEG decoders, and rows decoded by the GPU's JPEG engines.

    Attributes:
        known: files in the index; None without an index.
        engines: rows decoded by the JPEG engines, which count neither as the GPU's nor as the CPU's; None without the
            opt-in.
    """

    known: FileIndexReport | None = None
    engines: Engines | None = None

    def __str__(self) -> str:
        return "; ".join(str(part) for part in (self.known, self.engines) if part)
