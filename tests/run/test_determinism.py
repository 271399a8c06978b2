# SPDX-License-Identifier: Apache-2.0
"""The same bytes for any number of threads, batch size, prefetch depth and process; other bytes for other seeds."""

from __future__ import annotations

import hashlib
import itertools
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from PIL import Image

from stoker import fn, pipeline_def
from tests.idle_clock import HANG_S
from tests.run.pipelines import decoding, environment, files_of, stream, training

COUNT = 40
SHAPES: list[dict[str, Any]] = [
    {"num_threads": threads, "batch_size": batch, "prefetch_queue_depth": depth}
    for threads, batch, depth in [(1, 1, 1), (1, 16, 2), (2, 3, 1), (3, 7, 5), (8, 13, 2), (2, 40, 3)]
] + [{"exec_async": False}, {"exec_pipelined": False, "batch_size": 1}]


@pytest.fixture(scope="module")
def files(jpegs: Path) -> list[str]:
    return files_of(jpegs)[:13]


@pytest.mark.parametrize("define", [training, decoding])
def test_threads_batch_size_and_depth_change_nothing(files: list[str], define: Any) -> None:
    expected = stream(define(files), COUNT)[:COUNT]
    for shape in SHAPES:
        assert stream(define(files, **shape), COUNT)[:COUNT] == expected, shape


def test_seeds_differ(files: list[str]) -> None:
    streams = [tuple(stream(training(files, seed=seed), 13)[:13]) for seed in range(4)]
    assert len(set(streams)) == 4
    for a, b in itertools.combinations(streams, 2):
        assert [r[1] for r in a] != [r[1] for r in b], "another order"
        images = {r[1]: r[0] for r in a}
        assert all(images[label] != image for image, label in b), "other augmentations of every sample"


def test_epochs_differ(files: list[str]) -> None:
    rows = stream(training(files), 26)
    first, second = {r[1]: r[0] for r in rows[:13]}, {r[1]: r[0] for r in rows[13:26]}
    assert first.keys() == second.keys()
    assert all(first[label] != second[label] for label in first)


def test_a_drawn_seed_can_be_reused(files: list[str]) -> None:
    pipe, other = training(files, seed=None), training(files, seed=-1)
    assert pipe.seed != other.seed
    again = training(files, seed=pipe.seed)
    assert stream(pipe, 13) == stream(again, 13)


def test_the_result_of_a_sample_does_not_depend_on_the_order(files: list[str]) -> None:
    shuffled, ordered = stream(training(files), 13)[:13], stream(training(files, shuffle=False), 13)[:13]
    assert [r[1] for r in shuffled] != [r[1] for r in ordered]
    assert sorted(shuffled) == sorted(ordered)


def test_shards_are_parts_of_one_stream(files: list[str]) -> None:
    whole = stream(training(files), 13)[:13]
    for count in (2, 3):
        parts = [stream(training(files, shard_id=s, num_shards=count), 4)[:4] for s in range(count)]
        assert [row for turn in zip(*parts, strict=True) for row in turn] == whole[: 4 * count]


def test_every_process_gives_the_same(files: list[str]) -> None:
    text = """
import hashlib, sys
from tests.run.pipelines import stream, training
print(hashlib.sha256(repr(stream(training(sys.argv[1:]), 26)[:26]).encode()).hexdigest())
"""
    here = hashlib.sha256(repr(stream(training(files), 26)[:26]).encode()).hexdigest()
    for hash_seed in ("1", "2"):
        done = subprocess.run(
            [sys.executable, "-c", text, *files], capture_output=True, text=True, check=True,
            env=environment(PYTHONHASHSEED=hash_seed), timeout=HANG_S,
        )  # fmt: skip
        assert done.stdout.strip() == here


# ---- Python code between operators ----


@pytest.fixture(scope="module")
def uneven(files: list[str], tmp_path_factory: pytest.TempPathFactory) -> list[str]:
    """Return images of which every fifth takes far longer, so that batches overtake each other."""
    large = tmp_path_factory.mktemp("large") / "large.jpg"
    noise = np.random.default_rng(0).integers(0, 256, (900, 900, 3), np.uint8)
    Image.fromarray(noise).save(large, quality=95)
    return [f for n, file in enumerate(files) for f in ([str(large), file] if n % 5 == 0 else [file])]


@pipeline_def(batch_size=2, num_threads=2, seed=5)
def ordered(files: list[str], function: Any) -> Any:
    jpegs, labels = fn.readers.file(files=files)
    images = fn.resize(fn.decoders.image(jpegs), size=(8, 8))
    first = fn.python_function(images, labels, function=function)
    second = fn.python_function(fn.resize(first, size=(4, 4)), labels, function=function)
    return second, fn.test_count(labels), labels


def test_effects_happen_in_order(uneven: list[str]) -> None:
    def run(count: int, **shape: Any) -> tuple[list[int], list[Any]]:
        calls: list[int] = []

        def function(image: Any, label: Any) -> Any:
            calls.append(int(label[0]))
            return image + np.uint8(len(calls) % 7)  # a state that two nodes share

        rows = stream(ordered(uneven, function, **shape), count)
        return calls, rows

    expected_calls, expected = run(32, exec_async=False)
    for shape in ({"num_threads": 4, "prefetch_queue_depth": 6}, {"num_threads": 2}, {"num_threads": 3}):
        calls, rows = run(32, **shape)
        assert rows == expected
        assert calls[: len(expected_calls)] == expected_calls


def test_draws_of_functions_depend_on_the_sample(uneven: list[str]) -> None:
    @pipeline_def(batch_size=2, num_threads=2, seed=5)
    def drawing(**options: Any) -> Any:
        _, labels = fn.readers.file(files=uneven, random_shuffle=True)
        return fn.python_function(labels, function=draw, **options), labels

    def draw(label: Any, rng: Any) -> Any:
        time.sleep(0.001 * (int(label[0]) % 3))
        return rng.random(3)

    expected = stream(drawing(), COUNT)[:COUNT]
    for shape in SHAPES:
        assert stream(drawing(**shape), COUNT)[:COUNT] == expected


def test_tiny_batches_are_computed_on_the_calling_thread() -> None:
    @pipeline_def(batch_size=1, num_threads=1, seed=7)
    def tiny() -> Any:
        return fn.random.uniform(range=[0.0, 1.0])

    with tiny() as pipe:
        for _ in range(1 << 12):  # decided again after 8 batches, 16, 32...: a busy machine may need several
            pipe.run()
            if pipe.execution._inline.is_inline:
                break
        tiny = pipe.execution._inline

        def observe(seconds: float) -> bool:
            tiny.observe(seconds, pipe.execution.run, 3, reads_files=False)
            return tiny.is_inline

        assert tiny.is_inline
        assert observe(1.0)
        assert observe(1e-6)
        assert observe(1.0), "batches stretched by other programs ended it"
        assert not observe(1.0)
