# SPDX-License-Identifier: Apache-2.0
"""The central law across devices and splits: random graphs, partly on the GPU, have the CPU's bytes."""

from __future__ import annotations

import os
from collections import Counter
from pathlib import Path

import numpy as np
import pytest

from stoker import DataError, UnsupportedError
from stoker.contract.config import PipelineConfig
from stoker.device.gpu import Gpu
from stoker.testing.graph_grower import find
from stoker.testing.graphs import random_graph
from stoker.testing.laws import on_gpu, run_graph
from stoker.testing.tolerances import assert_rows
from tests.laws.test_central_law import BASE, make_files

GRAPHS = int(os.environ.get("STOKER_GPU_GRAPHS", "200"))
PARTS = 8


@pytest.mark.filterwarnings("ignore:.*runs on the CPU, so the CPU also computes:RuntimeWarning")
@pytest.mark.parametrize("part", range(PARTS))
def test_random_graphs(part: int, tmp_path: Path) -> None:
    files, gpu = make_files(tmp_path), Gpu.open(0)
    outcomes: Counter[str] = Counter()
    for number in range(part, GRAPHS, PARTS):
        grown = random_graph(BASE, number, files=files)
        rng = np.random.default_rng((BASE, number, 2))
        graph = on_gpu(grown.graph, rng)
        batches = any(n.operator.scope == "batch" for n in graph.nodes)
        count = len(grown.rows)
        size = count if batches or count % 2 else count // 2
        try:
            # Other tests compare the CPU with the references.
            alone = PipelineConfig(
                batch_size=count, threads=1, seed=grown.seed, depth=0, passes=frozenset(), without_gpu="cpu"
            )
            want = run_graph(graph, alone, count, find)
            for depth, load in ((0, None), (2, float(rng.choice([0.0, 0.5, 1.0])))):
                config = PipelineConfig(batch_size=size, threads=2, seed=grown.seed, depth=depth, gpu_load=load)
                got = run_graph(graph, config, count, find, gpu)
                for o, (a, b) in enumerate(zip(got, want, strict=True)):
                    text = f"output {o} on the GPU, queue of {depth}, the GPU decodes {load}"
                    assert_rows(a, b, text)  # sign and payload of a NaN differ
        except UnsupportedError as error:
            outcomes["refused: " + str(error).split("made at")[0][-90:]] += 1
        except (AssertionError, DataError) as error:
            raise AssertionError(f"graph {number}: {error}") from error
        else:
            outcomes["equal"] += 1
    print(dict(outcomes))
    assert outcomes["equal"] >= 0.3 * GRAPHS / PARTS, f"too few graphs can be placed on a GPU: {outcomes}"
