# SPDX-License-Identifier: Apache-2.0
"""The time for which a training waits for its loader, and its speed with a loader that costs nothing."""

from __future__ import annotations

import json
import os
import time
from collections.abc import Iterable, Iterator, Sized
from pathlib import Path
from typing import Any

from ..contract.errors import ArgumentError, StateError
from ..contract.file_path import as_path
from ..contract.text import brief
from ..contract.whole_number import as_whole_number

_MODES = ("log", "replay")


class LoaderEvaluator:
    """Iterable over the batches of a loader that measures the time for which it keeps the caller waiting.

    Args:
        dataloader: any iterable of batches.
        mode: "log": deliver the loader's batches. "replay": deliver `num_cached_batches` batches over and over, as
            many as the loader has; the training's speed is then that of an ideal loader.
        num_cached_batches: number of batches that "replay" keeps, at least 1.
        metrics_file: file that :meth:`save_metrics` writes without an argument, and each epoch at its end; None:
            no file.

    Raises:
        ArgumentError: an argument is invalid.
    """

    def __init__(
        self, dataloader: Iterable[Any], mode: str = "log", num_cached_batches: int = 20,
        metrics_file: str | os.PathLike[str] | None = None,
    ) -> None:  # fmt: skip
        if not isinstance(dataloader, Iterable):
            raise ArgumentError(f"`LoaderEvaluator`: expected an iterable of batches, got {brief(dataloader)}")
        if mode not in _MODES:
            raise ArgumentError(f"`LoaderEvaluator`: expected one of {_MODES} as `mode`, got {brief(mode)}")
        count = as_whole_number(num_cached_batches)
        if count is None or count < 1:
            text = f"expected at least 1 as `num_cached_batches`, got {brief(num_cached_batches)}"
            raise ArgumentError(f"`LoaderEvaluator`: {text}")
        self._loader = dataloader
        self._mode = mode
        self._count = count
        self._file = None if metrics_file is None else _path(metrics_file)
        self._cached: list[Any] = []
        self._waits: list[float] = []
        self._begin: float | None = None
        self._end = 0.0

    def __len__(self) -> int:
        if not isinstance(self._loader, Sized):
            raise TypeError(f"`LoaderEvaluator`: a {type(self._loader).__name__} has no length")
        return len(self._loader)

    def __getattr__(self, name: str) -> Any:
        """Return an attribute of the loader."""
        if name.startswith("_"):
            raise AttributeError(name)
        return getattr(self._loader, name)

    def __iter__(self) -> Iterator[Any]:
        if self._mode == "replay" and not self._cached:
            self._cached = [batch for _, batch in zip(range(self._count), self._loader, strict=False)]
        yield from self._measured(self._replayed() if self._mode == "replay" else iter(self._loader))
        if self._file is not None:
            self.save_metrics()

    def _measured(self, batches: Iterator[Any]) -> Iterator[Any]:
        """Deliver batches and add up the time until each."""
        if self._begin is None:
            self._begin = time.perf_counter()
        while True:
            asked = time.perf_counter()
            try:
                batch = next(batches)
            except StopIteration:
                return
            finally:
                self._end = time.perf_counter()
            self._waits.append(self._end - asked)
            yield batch

    def _replayed(self) -> Iterator[Any]:
        count = len(self._loader) if isinstance(self._loader, Sized) else len(self._cached)
        for number in range(count if self._cached else 0):
            yield self._cached[number % len(self._cached)]

    def get_metrics(self) -> dict[str, Any]:
        """Return what was measured over all epochs so far.

        Returns:
            A dictionary: ``mode``; ``total_batches``; ``total_time``, ``wait_time``, ``min_batch_time``,
            ``max_batch_time``, ``avg_batch_time`` in seconds, where a batch's time is how long the caller waited for
            it; ``wait_share``, the part of the total time; ``batch_times``, one number per batch.

        Raises:
            StateError: there was no batch yet.
        """
        if not self._waits or self._begin is None:
            raise StateError("`LoaderEvaluator`: expected at least one batch before the metrics, got none")
        total, waited = self._end - self._begin, sum(self._waits)
        return {
            "mode": self._mode,
            "total_batches": len(self._waits),
            "total_time": total,
            "wait_time": waited,
            "wait_share": waited / total if total > 0 else 0.0,
            "min_batch_time": min(self._waits),
            "max_batch_time": max(self._waits),
            "avg_batch_time": waited / len(self._waits),
            "batch_times": list(self._waits),
        }

    def save_metrics(self, filename: str | os.PathLike[str] | None = None) -> None:
        """Write the metrics as JSON.

        Args:
            filename: the file; by default `metrics_file`.

        Raises:
            ArgumentError: no file was given.
            OSError: the file cannot be written.
        """
        path = self._file if filename is None else _path(filename)
        if path is None:
            raise ArgumentError(
                "`LoaderEvaluator.save_metrics`: expected `filename`, or `metrics_file` before, got none"
            )
        path.write_text(json.dumps(self.get_metrics(), indent=1) + "\n", encoding="utf-8")

    def print_summary(self) -> None:
        """Print the metrics without the times of single batches."""
        m = self.get_metrics()
        print(
            f"{m['total_batches']} batches in {m['total_time']:.3f} s ({m['mode']}); waited {m['wait_time']:.3f} s, "
            f"{100 * m['wait_share']:.1f} %; per batch {1e3 * m['min_batch_time']:.2f} to "
            f"{1e3 * m['max_batch_time']:.2f} ms, on average {1e3 * m['avg_batch_time']:.2f} ms"
        )


def _path(value: Any) -> Path:
    path = as_path(value)
    if path is None:
        raise ArgumentError(f"`LoaderEvaluator`: expected a file, got {brief(value)}")
    return Path(os.fsdecode(path))
