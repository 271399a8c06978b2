# SPDX-License-Identifier: Apache-2.0
"""Run torchvision's own tests untouched and taken over, and print the tests whose outcomes differ.

    python -m tests.takeover.torchvision_tests FOLDER [--part 0/8] [--modes enabled,fetching] [--quick] [-- OPTIONS]

FOLDER is a checkout of torchvision's repository, or its folder of tests. Modes of the take-over: ``enabled`` only
calls ``stoker.torchvision.enable()``. ``fetching`` also runs each test as if a DataLoader called it, so images and
tensors are lazy. ``--quick`` runs only those tests untouched that fail taken over. The exit status is 1 if a test
passes untouched and fails taken over. OPTIONS are pytest's.
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
import tempfile
from collections import Counter
from collections.abc import Iterable
from pathlib import Path
from typing import NamedTuple

FILES = (
    "test_transforms.py",
    "test_transforms_tensor.py",
    "test_transforms_v2.py",
    "test_transforms_v2_utils.py",
    "test_functional_tensor.py",
    "test_image.py",
    "test_datasets.py",
    "test_datasets_samplers.py",
    "test_datasets_utils.py",
    "test_tv_tensors.py",
)
ROOT = Path(__file__).resolve().parents[2]


class Outcome(NamedTuple):
    """Outcome of a test, and the text of its error."""

    name: str
    text: str


Outcomes = dict[str, Outcome]


def run(tests: list[Path], mode: str, part: str, options: list[str], only: list[str] | None = None) -> Outcomes:
    """Return the outcomes of torchvision's tests in a mode, by the test's name; ``only`` these if it is given."""
    if only == []:
        return {}
    with tempfile.TemporaryDirectory() as folder:
        outcomes = Path(folder) / "outcomes"
        environment = {
            **os.environ,
            "PYTHONPATH": os.pathsep.join([str(ROOT), str(ROOT / "tests"), os.environ.get("PYTHONPATH", "")]),
            "OMP_NUM_THREADS": "1",
            "PYTHONHASHSEED": "0",  # some tests take their settings from a set
            "PLUGIN_MODE": mode,
            "PLUGIN_PART": part,
            "PLUGIN_OUTCOMES": str(outcomes),
        }
        if only is not None:
            environment["PLUGIN_ONLY"] = str(Path(folder) / "only")
            Path(environment["PLUGIN_ONLY"]).write_text(json.dumps(only), encoding="utf-8")
        command = [sys.executable, "-m", "pytest", "-q", "--tb=short", "-W", "ignore", "-p", "no:cacheprovider"]
        command.append("--continue-on-collection-errors")
        command += ["-p", "tests.takeover.torchvision_plugin", *options, *(test.name for test in tests)]
        done = subprocess.run(command, cwd=tests[0].parent, env=environment, capture_output=True, text=True)
        if not outcomes.exists():
            sys.exit(f"{mode}: pytest ran no test:\n{done.stdout[-3000:]}{done.stderr[-3000:]}")
        return combine(json.loads(line) for line in outcomes.read_text(encoding="utf-8").splitlines())


def combine(records: Iterable[tuple[str, str, str]]) -> Outcomes:
    """Return one outcome per test from all records of it: subtests and steps. A failure counts most, then a pass."""
    found: Outcomes = {}
    order = ("failed", "passed", "skipped")
    for test, name, text in records:
        before = found.get(test)
        if before is None or order.index(name) < order.index(before.name):
            found[test] = Outcome(name, text)
    return found


def compare(untouched: Outcomes, taken_over: Outcomes, mode: str) -> int:
    """Print the tests that differ; return the number of those that pass untouched and fail taken over."""
    faults = 0
    for test in sorted(untouched.keys() | taken_over.keys()):
        before, after = untouched.get(test, Outcome("not collected", "")), taken_over.get(test)
        name = "missing" if after is None else after.name
        if before.name == name:
            continue
        print(f"{mode}: {test}: {before.name} -> {name}", flush=True)
        if before.name == "passed":
            faults += 1
            print("    " + (after.text if after else "").replace("\n", "\n    "), flush=True)
    print(f"{mode}: {faults} tests pass untouched and fail taken over", flush=True)
    return faults


def main() -> None:
    """Run the tests and print what differs."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("folder", type=Path)
    parser.add_argument("--part", default="0/1")
    parser.add_argument("--modes", default="enabled,fetching")
    parser.add_argument("--quick", action="store_true")
    parser.add_argument("--files", default=",".join(FILES))
    parser.add_argument("options", nargs="*")
    given = parser.parse_args()
    folder = given.folder / "test" if (given.folder / "test").is_dir() else given.folder
    tests = [folder.resolve() / name for name in given.files.split(",") if (folder / name).exists()]
    if not tests:
        sys.exit(f"expected torchvision's tests in {folder}, got none of {', '.join(FILES)}")
    untouched = {} if given.quick else run(tests, "untouched", given.part, given.options)
    if untouched:
        print(f"untouched: {summary(untouched)}", flush=True)
    faults = 0
    for mode in given.modes.split(","):
        taken_over = run(tests, mode, given.part, given.options)
        print(f"{mode}: {summary(taken_over)}", flush=True)
        if given.quick:
            failed = [test for test, outcome in taken_over.items() if outcome.name == "failed"]
            again = run(tests, "untouched", given.part, given.options, failed)
            faults += compare(again, {test: taken_over[test] for test in again if test in taken_over}, mode)
        else:
            faults += compare(untouched, taken_over, mode)
    print(f"{faults} tests pass untouched and fail taken over")
    sys.exit(bool(faults))


def summary(outcomes: Outcomes) -> str:
    """Return the number of tests, and how many have each outcome."""
    counts = Counter(outcome.name for outcome in outcomes.values())
    return f"{len(outcomes)} tests, " + ", ".join(f"{count} {name}" for name, count in sorted(counts.items()))


if __name__ == "__main__":
    main()
