# SPDX-License-Identifier: Apache-2.0
"""Results as text: a line per figure during the measurement, Markdown and JSON at the end."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict
from statistics import median
from typing import Any

from benchmarks.case import Case
from benchmarks.harness import DISTURBED_CORES, Figure, Result, Series, Verdict, cpu_s, show


def number(value: float) -> str:
    """Return three significant digits without an exponent."""
    size = abs(value)
    digits = 0 if size >= 100 or value == 0 else 1 if size >= 10 else 2 if size >= 1 else 3
    return f"{value:,.{digits}f}"


def spread(figure: Figure) -> str:
    """Return a median with the smallest and the largest value."""
    return f"{number(figure.median)} ({number(figure.low)} .. {number(figure.high)})"


def disturbance(results: Sequence[Result]) -> str:
    """Return the processor time of other programs during the rounds: figures taken while others run prove little."""
    values = [one.others for result in results for series in result.series for one in series.rounds]
    return f"median {median(values):.2f}, worst {max(values):.2f} cores" if values else "not measured"


def markdown(results: Sequence[Result], machine: Mapping[str, str], rules: str) -> str:
    """Return all results as one page, the bars first."""
    parts = ["| | |\n| --- | --- |", *(f"| {key} | {value} |" for key, value in machine.items()), "", rules, ""]
    parts += ["## Bars", "", *_table(("case", "demand", "measured", "bar", "goal", "verdict"), _bar_rows(results)), ""]
    for result in results:
        parts += [f"## {result.case.title}", ""]
        parts += [f"{text}\n" for text in (result.case.note, _warning(result).capitalize()) if text]
        unit = result.case.unit.name
        parts += [*_table(("contender", f"{unit}, median (min .. max)", "CPU ms/item"), _series_rows(result)), ""]
    return "\n".join(parts)


def _warning(result: Result) -> str:
    """Return a warning if other programs were busy during the rounds."""
    worst = max((one.others for series in result.series for one in series.rounds), default=0.0)
    return f"other programs kept up to {worst:.1f} cores busy" if worst > DISTURBED_CORES else ""


def _table(head: Sequence[str], rows: Iterable[Sequence[str]]) -> list[str]:
    return [f"| {' | '.join(row)} |" for row in (head, ["---"] * len(head), *rows)]


def _bar_rows(results: Sequence[Result]) -> list[tuple[str, ...]]:
    return [
        (result.case.title, verdict.bar.text, _measured(verdict), _limit(verdict), _goal(verdict), verdict.text)
        for result in results
        for verdict in result.verdicts
    ]


def _series_rows(result: Result) -> list[tuple[str, ...]]:
    return [(series.name, series_text(result.case, series), cpu_text(series)) for series in result.series]


def series_text(case: Case, series: Series) -> str:
    """Return a contender's figure, or the reason why there is none."""
    restless = "" if all(one.rested for one in series.rounds) else ", did not rest between rounds"
    return f"{spread(show(case, series))}{restless}" if series.complete else f"not measured: {series.trouble}"


def cpu_text(series: Series) -> str:
    """Return the processor time per item over all threads."""
    value = cpu_s(series)
    return "" if value is None else number(1e3 * value)


def _measured(verdict: Verdict) -> str:
    if verdict.figure is None:
        return ""
    against = f" x {verdict.against}" if verdict.against else ""
    cpu = f", which takes {number(verdict.cpu)}x the CPU time" if verdict.cpu is not None else ""
    return f"{spread(verdict.figure)}{against}{cpu}"


def _limit(verdict: Verdict) -> str:
    return f"{'at least' if verdict.bar.at_least is not None else 'at most'} {verdict.bar.limit:g}"


def _goal(verdict: Verdict) -> str:
    return "" if verdict.bar.goal is None else f"{verdict.bar.goal:g}"


def lines(result: Result) -> list[str]:
    """Return a finished case for the terminal."""
    width = max(len(series.name) for series in result.series)
    text = [f"{result.case.title} [{result.case.unit.name}]"]
    for series in result.series:
        cpu = f"   cpu {cpu_text(series)} ms" if cpu_text(series) else ""
        text.append(f"  {series.name:<{width}}  {series_text(result.case, series)}{cpu}")
    for verdict in result.verdicts:
        goal = f", goal {_goal(verdict)}" if verdict.bar.goal is not None else ""
        figure = f": {_measured(verdict)}" if verdict.figure is not None else ""
        text.append(f"  > {verdict.bar.text}{figure} [{_limit(verdict)}{goal}]  {verdict.text}")
    return text + [f"  ! {warning}" for warning in [_warning(result)] if warning]


def as_json(results: Sequence[Result], machine: Mapping[str, str]) -> str:
    """Return all results with every round, for programs."""
    return json.dumps({"machine": dict(machine), "cases": [_case(result) for result in results]}, indent=1)


def _case(result: Result) -> dict[str, Any]:
    return {
        "name": result.case.name,
        "title": result.case.title,
        "unit": result.case.unit.name,
        "contenders": [
            {**asdict(series), "figure": asdict(show(result.case, series)) if series.complete else None}
            for series in result.series
        ],
        "bars": [
            {
                "text": verdict.bar.text,
                "limit": _limit(verdict),
                "goal": verdict.bar.goal,
                "figure": asdict(verdict.figure) if verdict.figure else None,
                "against": verdict.against,
                "cpu": verdict.cpu,
                "verdict": verdict.text,
            }
            for verdict in result.verdicts
        ],
    }
