# SPDX-License-Identifier: Apache-2.0
"""Progress bar: tqdm's if it is installed, else a plain bar that redraws a line a few times per second."""

from __future__ import annotations

import importlib
import sys
import time
from types import TracebackType
from typing import Protocol, Self, TextIO


class Bar(Protocol):
    """Interface of a progress bar."""

    def __enter__(self) -> Self: ...

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None: ...

    def update(self, count: int = 1) -> object:
        """Report that `count` more items are done."""


class PlainBar:
    """Bar of hash marks with the rate. If the stream is not a terminal, it prints only its last line."""

    WIDTH = 28
    INTERVAL_S = 0.1

    def __init__(self, total: int, label: str, unit: str, stream: TextIO | None = None) -> None:
        self.total, self.label, self.unit = total, label, unit
        self.done = 0
        self._stream = stream if stream is not None else sys.stderr
        self._redraws = self._stream.isatty()
        self._started = self._drawn = time.perf_counter()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._draw(end="\n")

    def update(self, count: int = 1) -> None:
        """Report that `count` more items are done."""
        self.done += count
        if self._redraws and time.perf_counter() - self._drawn >= self.INTERVAL_S:
            self._draw(end="")

    def _draw(self, end: str) -> None:
        self._drawn = time.perf_counter()
        rate = self.done / max(self._drawn - self._started, 1e-9)
        share = min(self.done / self.total, 1.0) if self.total else 1.0
        marks = "#" * round(share * self.WIDTH)
        start = "\r" if self._redraws else ""
        line = f"{start}  {self.label:<12} [{marks:<{self.WIDTH}}] {self.done}/{self.total} {rate:.0f} {self.unit}/s"
        self._stream.write(f"{line}   {end}")
        self._stream.flush()


def progress_bar(total: int, label: str, unit: str = "images") -> Bar:
    """Make a progress bar for `total` items, to be used in a ``with`` statement."""
    try:
        tqdm = importlib.import_module("tqdm").tqdm
    except ModuleNotFoundError:
        return PlainBar(total, label, unit)
    tqdm.monitor_interval = 0  # otherwise tqdm's monitor thread starts and stays
    bar: Bar = tqdm(total=total, desc=f"  {label:<12}", unit=f" {unit}", ncols=88, smoothing=0.1)
    return bar
