# SPDX-License-Identifier: Apache-2.0
"""Benchmark cases: contenders that do the same work, and bars for their figures.

This module is imported in every contender's process, so it uses the standard library alone.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass, field
from typing import Any, Literal

Environment = Literal["stoker", "peers"]


@dataclass(frozen=True)
class Unit:
    """Format of a figure.

    Attributes:
        name: Shown in tables.
        from_seconds: Converts a `Loop`'s seconds per item; None for a `Sample`, which returns its own unit.
        higher_is_better: Direction, for choosing the best of several settings.
    """

    name: str
    from_seconds: Callable[[float], float] | None = None
    higher_is_better: bool = False


IMAGES_PER_S = Unit("images/s", lambda seconds: 1 / seconds, higher_is_better=True)
MS_PER_IMAGE = Unit("ms/image", lambda seconds: 1e3 * seconds)
US_PER_RUN = Unit("us/run", lambda seconds: 1e6 * seconds)
US_PER_NODE = Unit("us/node")
MS = Unit("ms")
MIB = Unit("MiB")
COUNT = Unit("allocations")


@dataclass(frozen=True)
class Loop:
    """Work that is repeated for the length of a round.

    Attributes:
        step: Runs one portion, consumes its output, and returns the number of items and their checksum.
        warm: Untimed steps at the start of each round. They consume prefetched batches, so that the timed part starts
            and ends with empty queues. Default: a prefetch depth of two, and one.
        around: Entered for each round, including the untimed steps.
    """

    step: Callable[[], tuple[int, float]]
    warm: int = 3
    around: Callable[[], AbstractContextManager[object]] = nullcontext


@dataclass(frozen=True)
class Sample:
    """Work with its own measurement: `read` returns one figure in the case's unit."""

    read: Callable[[], float]


Job = Loop | Sample


@dataclass(frozen=True)
class Contender:
    """One way to do the work of a case.

    Attributes:
        name: Shown in tables, unique in the case.
        function: A function of the case's module, called as ``function(data, **options)`` in a process of its own.
        options: Its keyword arguments, made of JSON types.
        environment: Which virtual environment the process runs in.
        cores: Pin the process to this many cores; None leaves it free.
        copies: Start this many processes that run at the same time; their rates add up.
        count_allocations: Load the allocation counter into the process.
    """

    name: str
    function: str
    options: Mapping[str, Any] = field(default_factory=dict)
    environment: Environment = "stoker"
    cores: int | None = None
    copies: int = 1
    count_allocations: bool = False


@dataclass(frozen=True)
class Bar:
    """Requirement on one contender's median, absolute or as a ratio to the best of others.

    Attributes:
        text: The requirement in words.
        of: The contender.
        against: Names of others; the figure becomes ``of / best(against)``. Empty: the figure itself.
        at_least: Lower bound. Exactly one of the two bounds is given.
        at_most: Upper bound.
        goal: A desired value in the same direction as the bound.
    """

    text: str
    of: str
    against: tuple[str, ...] = ()
    at_least: float | None = None
    at_most: float | None = None
    goal: float | None = None

    def __post_init__(self) -> None:
        if (self.at_least is None) == (self.at_most is None):
            raise ValueError(f"bar {self.text!r}: expected exactly one of `at_least` and `at_most`.")

    @property
    def limit(self) -> float:
        """Return the bound that is given."""
        return self.at_least if self.at_least is not None else self.at_most  # type: ignore[return-value]

    def meets(self, figure: float, limit: float | None = None) -> bool:
        """Return whether a figure satisfies the bound, or another limit in the same direction."""
        wanted = self.limit if limit is None else limit
        return figure >= wanted if self.at_least is not None else figure <= wanted

    def short_by(self, figure: float) -> float:
        """Return the share of the bound by which a figure misses it; 0 if it is met."""
        return 0.0 if self.meets(figure) else abs(figure / self.limit - 1)


@dataclass(frozen=True)
class Case:
    """Contenders that do the same work, measured in alternation.

    Attributes:
        name: For the command line.
        title: For tables.
        unit: Of the figures.
        contenders: In the order of their rounds.
        bars: Requirements; empty for an informative row.
        note: What a reader must know to judge the figures.
        module: The module with the contenders' functions; set when the cases are collected.
        seconds: Length of a round as a multiple of the default.
    """

    name: str
    title: str
    unit: Unit
    contenders: tuple[Contender, ...]
    bars: tuple[Bar, ...] = ()
    note: str = ""
    module: str = ""
    seconds: float = 1.0

    def __post_init__(self) -> None:
        names = [contender.name for contender in self.contenders]
        unknown = {name for bar in self.bars for name in (bar.of, *bar.against)} - set(names)
        if unknown or len(set(names)) < len(names):
            raise ValueError(f"case {self.name!r}: contenders {names} are not unique, or bars name others: {unknown}.")
