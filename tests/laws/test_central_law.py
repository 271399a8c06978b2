# SPDX-License-Identifier: Apache-2.0
"""The central law: a graph has the same bytes, however it runs.

Random graphs run with all passes and with none, with each pass alone, on one, two and four threads, in batches of
several sizes, with prefetch queues of several depths and without one, and node by node as eager calls. All results
equal the NumPy references of their operators, composed node by node.

The number of graphs is ``STOKER_GRAPHS`` (default: 200, or 1000 in a complete run). As a program,
``python -m tests.laws.test_central_law --graphs 20000`` runs many graphs and continues after a failure; ``--only 123``
runs graph 123 and prints it.
"""

from __future__ import annotations

import argparse
import os
import sys
import tempfile
import time
import traceback
from collections import Counter
from pathlib import Path

import numpy as np
import pytest
from PIL import Image

from stoker.graph.show import show
from stoker.testing.graph_grower import find
from stoker.testing.graphs import RandomGraph, random_graph
from stoker.testing.laws import check_eager, check_failure, check_graph, check_json, vary
from tests.complete import COMPLETE

BASE = 20250  # increase it for other graphs
GRAPHS = int(os.environ.get("STOKER_GRAPHS", "1000" if COMPLETE else "200"))
PARTS = max(1, GRAPHS // 100)  # so that the other parts run after a failure
EVERYWHERE = {"crop", "resize", "flip", "cast", "_arithmetic", "crop_mirror_normalize", "_merge", "transpose"}


def make_files(folder: Path) -> list[str]:
    """Write small images: JPEG of several samplings, progressive and gray JPEG, PNG with and without transparency."""
    rng = np.random.default_rng(5)
    paths = []
    for i in range(10):
        height, width = (int(n) for n in rng.integers(3, 20, 2))
        pixels = rng.integers(0, 256, (height, width, 4), dtype=np.uint8)
        path = folder / f"{i}.{'png' if i % 4 == 3 else 'jpg'}"
        if path.suffix == ".png":
            Image.fromarray(pixels if i == 3 else pixels[..., :3]).save(path)
        else:
            image = Image.fromarray(pixels[..., 0] if i == 4 else pixels[..., :3])
            image.save(path, quality=int(rng.integers(30, 95)), subsampling=i % 3, progressive=i == 6)
        paths.append(str(path))
    return paths


def check(number: int, files: list[str]) -> RandomGraph:
    """Generate graph ``number`` and check the law."""
    grown = random_graph(BASE, number, files=files)
    rng = np.random.default_rng((BASE, number, 1))
    batches = any(n.operator.scope == "batch" for n in grown.graph.nodes)
    configs = vary(rng, grown.seed, len(grown.rows), whole_batches=batches)
    check_graph(grown.graph, grown.columns, grown.seed, configs=list(configs), find=find)
    for graph, row in grown.failing[:1]:
        check_failure(graph, row, len(grown.rows), grown.seed, find)
    if not batches:
        check_eager(grown.graph, grown.interpreter)
    if number % 10 == 0 and not any(n.operator.name == "external_source" for n in grown.graph.nodes):
        check_json(grown.graph, find)
    return grown


def describe(number: int, files: list[str]) -> str:
    """Describe a graph, with the command to repeat it."""
    head = f"graph {number} (replay: `python -m tests.laws.test_central_law --only {number}`)"
    try:
        grown = random_graph(BASE, number, files=files)
    except Exception as error:
        return f"{head}\nfailed while it grew: {error!r}"
    return f"{head}\nseed {grown.seed}\n{show(grown.graph, find, sources=grown.interpreter.sources)}"


@pytest.fixture(scope="module")
def files(tmp_path_factory: pytest.TempPathFactory) -> list[str]:
    return make_files(tmp_path_factory.mktemp("images"))


@pytest.mark.parametrize("part", range(PARTS))
def test_the_same_bytes_however_it_runs(part: int, files: list[str]) -> None:
    used: Counter[str] = Counter()
    for number in range(part, GRAPHS, PARTS):
        try:
            grown = check(number, files)
        except Exception as error:
            error.add_note(describe(number, files))
            raise
        used.update({n.operator.name for n in grown.graph.nodes})
    missing = EVERYWHERE - set(used)
    assert GRAPHS < 200 or not missing, f"random graphs no longer use {missing}"


def test_a_graph_follows_from_its_number(files: list[str]) -> None:
    a, b = (random_graph(BASE, 3, files=files) for _ in range(2))
    assert a.graph.fingerprint() == b.graph.fingerprint()
    assert a.seed == b.seed
    assert random_graph(BASE, 4, files=files).graph.fingerprint() != a.graph.fingerprint()


def main() -> int:
    """Run many graphs, and return the number of failures."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--graphs", type=int, default=GRAPHS)
    parser.add_argument("--first", type=int, default=0)
    parser.add_argument("--only", type=int)
    options = parser.parse_args()
    numbers = range(options.first, options.first + options.graphs) if options.only is None else [options.only]
    failures, start = 0, time.monotonic()
    used: Counter[str] = Counter()
    with tempfile.TemporaryDirectory() as folder:
        files = make_files(Path(folder))
        for number in numbers:
            try:
                used.update({n.operator.name for n in check(number, files).graph.nodes})
            except Exception:
                failures += 1
                print(traceback.format_exc(), describe(number, files), sep="\n", flush=True)
        if options.only is not None:
            print(describe(options.only, files))
    print(f"{len(numbers)} graphs in {time.monotonic() - start:.0f} s, {failures} failures")
    print(", ".join(f"{name} {count}" for name, count in used.most_common()))
    return failures


if __name__ == "__main__":
    sys.exit(min(1, main()))
