# SPDX-License-Identifier: Apache-2.0
"""``python -m benchmarks``: measure all cases, or the named ones, and write build/bench/results.{md,json}."""

from __future__ import annotations

import argparse
import os
import sys
from collections.abc import Sequence
from pathlib import Path

from benchmarks import allocations, cases, environment, machine, report
from benchmarks.case import Case
from benchmarks.data import Data
from benchmarks.harness import MIN_ROUNDS, Result, measure
from benchmarks.machine import ROOT
from benchmarks.process import Settings
from stoker.command import end_cleanly

RULES = (
    "All contenders of a case alternate in one session (A B B A), each in its own process, while the others sleep. "
    "Figures are medians over the rounds. A ratio is that of two medians, and its spread the smallest and largest "
    "ratio within one round. A round that other programs disturb is repeated, twice at most. Each round first "
    "consumes the prefetched batches. Files come from the page cache; decoded images are never cached. Shuffling and "
    "epoch edges are inside the timing. Outputs are consumed and check-summed. Windows, data types and layouts are "
    "the same for all. A peer counts with the best of its settings. CPU time is that of all threads of a process."
)
_QUICK_ROUNDS, _QUICK_SECONDS = 2, 0.3
_PAGE = (
    "# Performance\n\nWritten by `make bench`; run it to repeat this on your machine. What was tried on the way is in "
    "[Experiments](experiments.md).\n\n{}"
)


def main(argv: Sequence[str] | None = None) -> int:
    """Parse the command line, measure and report. The exit status says whether the benchmarks ran, not which bars are
    met."""
    arguments = _arguments(argv)
    every = cases.collect()
    if arguments.list:
        width = max(len(case.name) for case in every)
        print("\n".join(f"{case.name:<{width}}  {case.title}" for case in every))
        return 0
    chosen = [case for case in every if not arguments.cases or any(part in case.name for part in arguments.cases)]
    if not chosen:
        print(f"no case is called like {' '.join(arguments.cases)}; --list shows them", file=sys.stderr)
        return 2
    description = machine.describe()
    settings = _settings(arguments)
    description["data"] = describe_data(settings.data) + ("" if arguments.data else ", SYNTHETIC")
    print("\n".join(f"{key:<17} {value}" for key, value in description.items()), end="\n\n")
    results = [_measure(case, settings, arguments) for case in chosen]
    for result in results:
        for series in result.series:
            description |= series.versions
    description["others' load"] = report.disturbance(results)
    print(f"cores that other programs kept busy: {report.disturbance(results)}")
    _write(results, description, arguments)
    return 0


def parser() -> argparse.ArgumentParser:
    """Return the parser of the command's arguments."""
    made = argparse.ArgumentParser(prog="python -m benchmarks", description=__doc__)
    made.add_argument("cases", nargs="*", help="parts of case names; default: all")
    made.add_argument("--list", action="store_true", help="list the cases and stop")
    made.add_argument("--data", type=Path, default=os.environ.get("STOKER_DATA"), help="folder of JPEG files")
    made.add_argument("--rounds", type=int, default=MIN_ROUNDS, help=f"at least {MIN_ROUNDS} for a figure to quote")
    made.add_argument("--seconds", type=float, default=2.0, help="length of a round")
    made.add_argument("--quick", action="store_true", help="two short rounds: shows that all works, proves nothing")
    made.add_argument("--peers", type=Path, help="interpreter with the peers; default: .venv-bench, made if needed")
    made.add_argument("--out", type=Path, default=ROOT / "build" / "bench", help="folder for results and logs")
    made.add_argument("--record", type=Path, help="also write the page to this file, as docs/internals/performance.md")
    return made


def _arguments(argv: Sequence[str] | None) -> argparse.Namespace:
    arguments = parser().parse_args(argv)
    if arguments.quick:
        arguments.rounds, arguments.seconds = _QUICK_ROUNDS, _QUICK_SECONDS
    return arguments


def _settings(arguments: argparse.Namespace) -> Settings:
    logs = arguments.out / "logs"
    logs.mkdir(parents=True, exist_ok=True)
    pythons = {"stoker": Path(sys.executable)}
    try:
        pythons["peers"] = arguments.peers.absolute() if arguments.peers else environment.ensure()
    except environment.PeersUnavailable as error:
        print(f"the peers are left out: {error}\n", file=sys.stderr)
    data = Path(arguments.data).expanduser().absolute() if arguments.data else _demo_data()
    return Settings(data, pythons, logs.absolute(), allocations.build(arguments.out))


def _demo_data() -> Path:
    """Return the demonstration's synthetic data set, for runs without ``--data``."""
    from stoker.demo import dataset

    root = ROOT / "stoker-demo" / "data"
    print(f"no --data and no STOKER_DATA: measuring on the demonstration's synthetic set in {root}\n", flush=True)
    return dataset.make(root).root


def describe_data(root: Path) -> str:
    """Read all files once; describe their number and size, decoded and relative to the processor's cache."""
    from PIL import Image

    files = Data(root).files
    size_bytes = sum(len(content) for content in Data(root).read())
    pixels = 0
    for path in files:
        with Image.open(path) as image:
            pixels += image.width * image.height
    cache = machine.last_level_cache_bytes()
    cache_ratio = f", {3 * pixels / cache:.1f} times the last-level cache" if cache else ""
    return (
        f"{len(files)} JPEG files, mean {size_bytes / len(files) / 1e3:.0f} kB and {pixels / len(files) / 1e6:.2f} "
        f"megapixel, {3 * pixels / 2**20:.0f} MiB decoded{cache_ratio}"
    )


def _measure(case: Case, settings: Settings, arguments: argparse.Namespace) -> Result:
    def say(text: str) -> None:
        if sys.stdout.isatty():
            print(f"\r\x1b[2K  {case.name}: {text}", end="", flush=True)

    result = measure(case, settings, arguments.rounds, arguments.seconds, say)
    print(("\r\x1b[2K" if sys.stdout.isatty() else "") + "\n".join(report.lines(result)), end="\n\n", flush=True)
    return result


def _write(results: list[Result], description: dict[str, str], arguments: argparse.Namespace) -> None:
    page = _PAGE.format(report.markdown(results, description, RULES))
    (arguments.out / "results.md").write_text(page)
    (arguments.out / "results.json").write_text(report.as_json(results, description))
    if arguments.record:
        arguments.record.write_text(page)
    verdicts = [verdict for result in results for verdict in result.verdicts]
    met = sum(verdict.text.startswith("PASS") for verdict in verdicts)
    print(f"{met} of {len(verdicts)} bars met; {arguments.out / 'results.md'} has the tables")


if __name__ == "__main__":
    sys.exit(end_cleanly(main))
