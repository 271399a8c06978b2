# SPDX-License-Identifier: Apache-2.0
"""Benchmark of all recipes, untouched and taken over; writes ``docs/recipes.md``. ``make recipes`` runs it.

``python -m tests.takeover.recipes.measure [--workers 0,2,8] [--files 400] [--rounds 9] [--minutes 12] [--only name]
[--no-page]``. The files are those of ``STOKER_DATA``, or synthetic photographs. Every round runs all recipes, untouched
and taken over in alternation, so that other load affects all of them equally. The minutes limit the number of rounds,
of which there is at least one. Recipes with a ratio below CLOSE run FURTHER times more of each kind, because a single
round varies by more than the margin of the bar.
"""

from __future__ import annotations

import argparse
import json
import logging
import os
import subprocess
import sys
import tempfile
import time
import warnings
from pathlib import Path
from typing import Any, NamedTuple

ROOT = Path(__file__).resolve().parents[3]
sys.path.append(str(ROOT / "tests"))

import torch  # noqa: E402
from photographs import photograph  # noqa: E402
from PIL import Image  # noqa: E402

from tests.takeover.recipes.catalogue import RECIPES, Outcome, Recipe, Run, run, run_taken_over  # noqa: E402

PAGE = ROOT / "docs" / "recipes.md"
NOISE = 0.05  # variation of a ratio on an idle machine
CLOSE, FURTHER = 1.1, 4
SCRIPTS = {
    "torchrun, DistributedSampler": (["-m", "torch.distributed.run", "--nproc-per-node", "2"], "distributed.py", ()),
    "Lightning data module, DDP, StatefulDataLoader": ([], "with_lightning.py", ("lightning", "torchdata")),
}


class Line(NamedTuple):
    """Results of a recipe with one number of workers."""

    equal: bool
    lazy: float
    cpu: float  # untouched / taken over
    wall: float


class Limits(NamedTuple):
    """Limits of a measurement."""

    rounds: int
    end: float  # of time.monotonic(); the first round may end later


class Runs:
    """Runs of a recipe with one number of workers, over all rounds."""

    def __init__(self) -> None:
        self.untouched: list[Run] = []
        self.ours: list[Outcome] = []

    def add(self, recipe: Recipe, root: str, workers: int) -> None:
        """Add a run of each kind; their order alternates between rounds."""
        first = len(self.ours) % 2 == 0
        if first:
            self.untouched.append(run(recipe, root, workers))
        self.ours.append(run_taken_over(recipe, root, workers))
        if not first:
            self.untouched.append(run(recipe, root, workers))

    def line(self) -> Line:
        """Return the best of each kind."""
        digests = {r.digest for r in self.untouched} | {o.run.digest for o in self.ours}
        return Line(
            len(digests) == 1 and self.ours[0].run.images > 0,
            min(o.lazy for o in self.ours),
            min(r.cpu_s for r in self.untouched) / min(o.run.cpu_s for o in self.ours),
            min(r.wall_s for r in self.untouched) / min(o.run.wall_s for o in self.ours),
        )


def files(folder: Path, count: int) -> str:
    """Write four class folders of photographs."""
    given = os.environ.get("STOKER_DATA")
    found = sorted(p for p in Path(given).rglob("*") if p.suffix.lower() in (".jpg", ".jpeg")) if given else []
    root = folder / "files"
    for at in range(count):
        place = root / f"class{at % 4}"
        place.mkdir(parents=True, exist_ok=True)
        if found:
            (place / f"{at}.jpg").symlink_to(found[at % len(found)].resolve())
        else:
            Image.fromarray(photograph(at, 375, 500)).save(place / f"{at}.jpg", quality=90)
    return str(root)


def measure(
    recipes: dict[str, Recipe], root: str, workers: list[int], limits: Limits
) -> tuple[dict[str, dict[int, Line]], int]:
    """Measure all recipes with all numbers of workers, in rounds; return results and number of complete rounds."""
    runs = {(name, n): Runs() for name in recipes for n in workers}
    for recipe in recipes.values():
        run(recipe, root, workers[0])  # imports are not measured
    done, longest = 0, 0.0
    while done < limits.rounds and (not done or time.monotonic() + longest < limits.end):
        began = time.monotonic()
        for (name, n), measured in runs.items():
            measured.add(recipes[name], root, n)
            print(f"round {done + 1} | {name} | {n} workers | {cell(measured.line())}", flush=True)
        done, longest = done + 1, max(longest, time.monotonic() - began)
    for (name, n), measured in runs.items():
        for further in range(FURTHER if measured.line().cpu < CLOSE else 0):
            measured.add(recipes[name], root, n)
            print(f"further {further + 1} | {name} | {n} workers | {cell(measured.line())}", flush=True)
    return {name: {n: runs[name, n].line() for n in workers} for name in recipes}, done


def script(command: list[str], name: str, root: str) -> Line:
    """Run a script of several processes; only its batches are compared."""
    path = str(Path(__file__).with_name(name))
    env = {**os.environ, "PYTHONPATH": os.pathsep.join([str(ROOT), str(ROOT / "tests")]), "OMP_NUM_THREADS": "1"}
    results: list[dict[str, Any]] = []
    for option in ([], ["--stoker"]):
        done = subprocess.run(
            [sys.executable, *command, path, root, *option], env=env, capture_output=True, text=True, timeout=600
        )
        lines = [line for line in done.stdout.splitlines() if line.startswith("{")]
        if done.returncode or not lines:
            raise RuntimeError(f"{name}: expected one line of results, got {done.stderr[-2000:]}")
        results.append(json.loads(lines[-1]))
    equal = results[0]["digests"] == results[1]["digests"] and results[0]["native"] == 0
    return Line(equal, results[1]["native"] / max(results[1]["counted"], 1), float("nan"), float("nan"))


def cell(line: Line) -> str:
    """Return the text of a table's cell."""
    if not line.equal:
        return "**differs**"
    if line.cpu != line.cpu:
        return "equal"
    slower = " **slower**" if line.cpu < 1 - NOISE else ""
    return f"equal, {line.cpu:.2f} / {line.wall:.2f}{slower}"


def page(table: dict[str, dict[int, Line]], workers: list[int], about: str) -> str:
    """Return the page's text."""
    head = "| script | " + " | ".join(f"{n} workers" for n in workers) + " | stayed lazy |"
    lines = [_HEAD.format(about=about, noise=NOISE), head, "|---|" + "---|" * (len(workers) + 1)]
    for name, row in table.items():
        cells = [cell(row[n]) if n in row else "—" for n in workers]
        lines.append(f"| {name} | " + " | ".join(cells) + f" | {min(x.lazy for x in row.values()):.0%} |")
    return "\n".join(lines) + "\n"


_HEAD = """<!-- written by tests/takeover/recipes/measure.py -->
# Public scripts, taken over

    make recipes

runs scripts of the shape of public ones (`tests/takeover/recipes`) with the packages that these scripts use: without
Stoker, and with `stoker.torchvision.enable()`. The command uses a separate environment.
{about}

- **equal**: all batches have the same bytes in the same order.
- The two numbers are the ratios of processor time and of wall time, without Stoker to with Stoker. Above 1, Stoker is
  faster. Each is the best of interleaved rounds, and includes the start and the end of the workers.
- **slower**: Stoker takes over {noise:.0%} more processor time.
- **stayed lazy**: the share of images of which Pillow and torch computed no step, and of which no step materialized
  a tensor early.
- Scripts of several processes are only compared, not timed.
"""


def main() -> None:
    """Measure."""
    parser = argparse.ArgumentParser()
    parser.add_argument("--workers", default="0,2,8")
    parser.add_argument("--rounds", type=int, default=9)
    parser.add_argument("--minutes", type=float, default=12)
    parser.add_argument("--files", type=int, default=400)
    parser.add_argument("--only", default="")
    parser.add_argument("--no-page", action="store_true")
    options = parser.parse_args()
    warnings.simplefilter("ignore")
    logging.getLogger("stoker.torchvision").setLevel(logging.ERROR)  # the table shows fallbacks
    torch.set_num_threads(1)
    workers = [int(n) for n in options.workers.split(",")]
    began = time.monotonic()
    with tempfile.TemporaryDirectory() as folder:
        root = files(Path(folder), options.files)
        several: dict[str, dict[int, Line]] = {}
        for name, (command, file, needs) in SCRIPTS.items():
            if options.only in name and not _missing(name, Recipe(lambda *_: None, needs).missing):
                several[name] = {2: script(command, file, root)}
                print(name, cell(several[name][2]), sep=" | ", flush=True)
        recipes = {n: r for n, r in RECIPES.items() if options.only in n and not _missing(n, r.missing)}
        limits = Limits(options.rounds, began + 60 * options.minutes)
        table, rounds = measure(recipes, root, workers, limits)
    table |= several
    kind = "photographs of STOKER_DATA" if os.environ.get("STOKER_DATA") else "synthetic photographs of 500x375"
    how_often = f"{rounds} rounds" if rounds > 1 else "one round"
    about = f"Measured with {options.files} {kind}, on {os.cpu_count()} cores, {how_often}; {FURTHER} more rounds"
    about += f"\nif the first ratio of processor time was below {CLOSE}."
    if not options.no_page:
        PAGE.write_text(page(table, workers, about), encoding="utf-8")
    bad = [name for name, row in table.items() if any(not line.equal or line.cpu < 1 - NOISE for line in row.values())]
    sys.exit(f"differs or is slower: {', '.join(bad)}" if bad else 0)


def _missing(name: str, missing: list[str]) -> bool:
    if missing:
        print(f"{name} | not run: {', '.join(missing)} is not installed", flush=True)
    return bool(missing)


if __name__ == "__main__":
    main()
