# SPDX-License-Identifier: Apache-2.0
"""Division of a pipeline for ``stoker.ray``: the place with the fewest bytes, and the same bits; no Ray is needed."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from run.pipelines import files_of, training

from stoker import DataError, Pipeline, StateError, fn, pipeline_def, types
from stoker.executor.schedule import Rows
from stoker.frameworks._ray_cut import Division
from stoker.graph.cut import find_cut


@pytest.fixture(scope="module")
def files(jpegs: Path) -> list[str]:
    return files_of(jpegs)[:14]


def compare(pipe: Pipeline, count: int = 3, **settings: Any) -> Division:
    """Compare batches of a divided pipeline with those of the whole one, and return the division."""
    execution = pipe.build().execution
    division = Division(execution, whole=False)
    options = {"batch_size": pipe.batch_size, "num_threads": 2, "device_id": None, "seed": pipe.seed, **settings}
    actor = Pipeline.deserialize(division.graph.to_json(), **options)
    actor.build().set_state(json.loads(json.dumps(division.token(pipe.get_state()))))
    for _ in range(count):
        whole, part = pipe.next("stop"), actor.next("stop")
        assert whole is not None and part is not None
        np.testing.assert_array_equal(whole.rows.keys, part.rows.keys)
        rest = division.compute_rest(part.outputs, whole.rows, None)
        assert len(rest) == len(whole.outputs)
        for got, want in zip(rest, whole.outputs, strict=True):
            assert got.dtype == want.dtype and got.shape == want.shape
            np.testing.assert_array_equal(got, want)
    with pytest.raises(StateError, match="planned shapes"):
        division.compute_rest([x[:-1] for x in part.outputs], whole.rows, None)
    division.close()
    actor.close()
    pipe.close()
    return division


@pipeline_def(batch_size=4, num_threads=2, device_id=None, seed=11)
def two_views(files: list[str]) -> Any:
    """Return two views of an image and its label: the cut has a value of each."""
    jpegs, labels = fn.readers.file(files=files, random_shuffle=True)
    images = fn.decoders.image(jpegs)
    large = fn.resize(fn.random_resized_crop(images, size=(24, 24)), size=(32, 32))
    small = fn.resize(images, size=(8, 8))
    flipped = fn.flip(large, horizontal=fn.random.coin_flip())
    noisy = fn.cast(small, dtype=types.FLOAT) + fn.random.uniform(range=(0.0, 9.0))
    return fn.crop_mirror_normalize(flipped, mean=[7.0], std=[3.0], mirror=fn.random.coin_flip()), noisy, labels


def test_the_usual_training_is_cut_before_its_floats(files: list[str]) -> None:
    division = compare(training(files))
    shapes = [(p.dtype, p.shape) for p in division.outputs]
    assert (types.UINT8, (16, 16, 3)) in shapes and len(shapes) == 2
    assert "772 bytes a row instead of 3076" in division.text, division.text


def test_values_of_several_branches_are_cut(files: list[str]) -> None:
    division = compare(two_views(files))
    shapes = sorted((p.shape for p in division.outputs if p.shape is not None), key=len)
    assert (24, 24, 3) in shapes and (8, 8, 3) in shapes, "the larger size, 32x32, is computed later"


def test_reasons_to_compute_everything_elsewhere(files: list[str]) -> None:
    @pipeline_def(batch_size=4, num_threads=2, device_id=None, seed=11)
    def conditional() -> Any:
        jpegs, labels = fn.readers.file(files=files)
        return fn.crop_mirror_normalize(fn.resize(fn.decoders.image(jpegs), size=(8, 8))), labels

    @pipeline_def(batch_size=4, num_threads=2, device_id=None, seed=11)
    def decoded() -> Any:
        jpegs, labels = fn.readers.file(files=files)
        return fn.decoders.image(jpegs), labels

    @pipeline_def(batch_size=4, num_threads=2, device_id=None, seed=11)
    def bytes_only() -> Any:
        jpegs, labels = fn.readers.file(files=files)
        return fn.resize(fn.decoders.image(jpegs), size=(8, 8)), labels

    cases: list[tuple[Callable[[], Pipeline], bool, str]] = [
        (lambda: conditional(on_error="skip"), False, "`on_error`"),
        (decoded, False, "differ from row to row"),
        (bytes_only, False, "its outputs are the fewest bytes, 196 a row"),
        (conditional, True, '`cut` is "outputs"'),
    ]
    for make, whole, text in cases:
        with make() as pipe:
            division = Division(pipe.build().execution, whole=whole)
            assert text in division.text and not division.has_rest
            assert division.graph.fingerprint() == pipe.execution.graph.fingerprint()


def test_an_error_of_the_rest_is_raised(files: list[str]) -> None:
    @pipeline_def(batch_size=4, num_threads=1, device_id=None, seed=11)
    def cropped() -> Any:
        jpegs, _ = fn.readers.file(files=files)
        small = fn.resize(fn.decoders.image(jpegs), size=(8, 8))
        begin = fn.random.uniform(range=(5.0, 6.0), dtype=types.INT32)
        return fn.cast(fn.slice(small, begin, 6, axes=[0], out_of_bounds_policy="error"), dtype=types.FLOAT64)

    with cropped() as pipe:
        division = Division(pipe.build().execution, whole=False)
        assert division.has_rest, division.text
        rows = Rows(np.arange(4, dtype=np.uint64), np.zeros(4, np.int64), (), 0, 0)
        with pytest.raises(DataError, match="slice"):
            division.compute_rest([np.zeros((4, *p.shape), p.dtype.numpy) for p in division.outputs], rows, None)
        division.close()


def test_a_way_without_a_size_has_no_cut(files: list[str]) -> None:
    with training(files) as pipe:
        graph = pipe.build().execution.graph
        assert find_cut(graph, {}) is None
