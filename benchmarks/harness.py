# SPDX-License-Identifier: Apache-2.0
"""Order of the contenders' rounds, and the statistics of their figures.

All contenders of a case are prepared first, each in its own processes, and then run in alternation: A B C, C B A, A B
C, ... While one runs, the others sleep. A figure is the median over the rounds. A ratio is the ratio of two medians,
and its spread the smallest and largest ratio within one round, in which both had the same conditions.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from contextlib import ExitStack
from dataclasses import dataclass, field
from statistics import median

from benchmarks.case import Bar, Case
from benchmarks.process import ContenderAbsent, ContenderFailed, Round, Runner, Settings

MIN_ROUNDS = 5
WARM_UP_S = 0.3
# A round disturbed by other programs is repeated, a few times at most; the one with the least disturbance counts. The
# criterion is the other programs' processor time, never the figure.
DISTURBED_CORES = 0.15
REPEATS = 2


@dataclass
class Series:
    """Rounds of a contender.

    Attributes:
        name: The contender's name.
        rounds: One entry per round.
        versions: Versions of the libraries it used.
        trouble: Reason for missing rounds.
    """

    name: str
    rounds: list[Round] = field(default_factory=list)
    versions: dict[str, str] = field(default_factory=dict)
    trouble: str = ""

    @property
    def complete(self) -> bool:
        """Return whether all rounds were run."""
        return bool(self.rounds) and not self.trouble


@dataclass(frozen=True)
class Figure:
    """A median with its spread."""

    median: float
    low: float
    high: float


@dataclass(frozen=True)
class Verdict:
    """A bar and the figure measured against it.

    Attributes:
        bar: The requirement.
        figure: The measured figure; None if a contender was missing.
        against: The peer that counted.
        cpu: Ratio of that peer's processor time per item to the contender's, which is valid also on a busy machine.
        trouble: Reason for a missing figure.
    """

    bar: Bar
    figure: Figure | None
    against: str = ""
    cpu: float | None = None
    trouble: str = ""

    @property
    def text(self) -> str:
        """Return PASS, or by how much the figure misses the bar."""
        if self.figure is None:
            return f"not measured: {self.trouble}"
        if not self.bar.meets(self.figure.median):
            if self.bar.limit == 0:
                return f"{self.figure.median:g} above 0"
            return f"short by {100 * self.bar.short_by(self.figure.median):.0f} %"
        reached = self.bar.goal is not None and self.bar.meets(self.figure.median, self.bar.goal)
        return "PASS, goal reached" if reached else "PASS"


@dataclass(frozen=True)
class Result:
    """A case and its measurements."""

    case: Case
    series: tuple[Series, ...]
    verdicts: tuple[Verdict, ...]

    def shown(self, name: str) -> Figure:
        """Return a contender's figure in the case's unit."""
        return show(self.case, next(series for series in self.series if series.name == name))


def turns(count: int, rounds: int) -> list[list[int]]:
    """Return the order of `count` contenders in each round: forwards and backwards in alternation."""
    return [list(range(count)) if turn % 2 == 0 else list(range(count))[::-1] for turn in range(rounds)]


def measure(
    case: Case, settings: Settings, rounds: int, seconds: float, say: Callable[[str], None] = lambda text: None
) -> Result:
    """Measure a case.

    Args:
        case: What to measure.
        settings: Data and interpreters.
        rounds: Number of rounds.
        seconds: Length of a round, to be multiplied by the case's own factor.
        say: Called with a short text at the start of each part.
    """
    series = tuple(Series(contender.name) for contender in case.contenders)
    with ExitStack() as stack:
        runners = [_prepare(stack, case, index, settings, one, say) for index, one in enumerate(series)]
        for number, order in enumerate(turns(len(runners), rounds), start=1):
            for index in order:
                runner, one = runners[index], series[index]
                if runner is not None and not one.trouble:
                    say(f"round {number}/{rounds}: {one.name}")
                    run_round(runner, one, seconds * case.seconds)
    return Result(case, series, tuple(judge(case, bar, series) for bar in case.bars))


def _prepare(
    stack: ExitStack, case: Case, index: int, settings: Settings, series: Series, say: Callable[[str], None]
) -> Runner | None:
    """Start a contender and run it briefly, so that the first round finds it warm."""
    say(f"preparing {series.name}")
    try:
        runner = stack.enter_context(Runner(case.module, case.contenders[index], settings))
        series.versions = runner.versions
        runner.run(WARM_UP_S)
    except (ContenderAbsent, ContenderFailed) as error:
        series.trouble = str(error)
        return None
    return runner


def run_round(runner: Runner, series: Series, seconds: float) -> None:
    """Run a contender for one round, repeat it if other programs were busy, and record the round."""
    attempts: list[Round] = []
    try:
        while not attempts or (attempts[-1].others > DISTURBED_CORES and len(attempts) <= REPEATS):
            attempts.append(runner.run(seconds))
    except ContenderFailed as error:
        series.trouble = str(error)
        return
    series.rounds.append(min(attempts, key=lambda one: one.others))


def figures(case: Case, series: Series) -> list[float]:
    """Return the rounds' figures in the case's unit."""
    convert = case.unit.from_seconds
    return [convert(one.figure) if convert is not None else one.figure for one in series.rounds]


def show(case: Case, series: Series) -> Figure:
    """Return a contender's median and spread in the case's unit."""
    values = figures(case, series)
    return Figure(median(values), min(values), max(values))


def judge(case: Case, bar: Bar, series: Sequence[Series]) -> Verdict:
    """Compare the figures with a bar; of a peer's settings the best one counts."""
    by_name = {one.name: one for one in series}
    mine = by_name[bar.of]
    if not mine.complete:
        return Verdict(bar, None, trouble=f"{mine.name}: {mine.trouble or 'no rounds'}")
    if not bar.against:
        return Verdict(bar, show(case, mine))
    others = [by_name[name] for name in bar.against if by_name[name].complete]
    if not others:
        first = by_name[bar.against[0]]
        return Verdict(bar, None, trouble=f"{first.name}: {first.trouble or 'no rounds'}")
    pick = max if case.unit.higher_is_better else min
    best = pick(others, key=lambda one: show(case, one).median)
    ratios = [a / b for a, b in zip(figures(case, mine), figures(case, best), strict=True)]
    figure = Figure(show(case, mine).median / show(case, best).median, min(ratios), max(ratios))
    cpu_mine, cpu_best = cpu_s(mine), cpu_s(best)
    return Verdict(bar, figure, best.name, cpu_best / cpu_mine if cpu_mine and cpu_best else None)


def cpu_s(series: Series) -> float | None:
    """Return a contender's median processor time per item; None for a `Sample`."""
    values = [one.cpu_s for one in series.rounds if one.cpu_s is not None]
    return median(values) if values else None
