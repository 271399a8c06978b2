# SPDX-License-Identifier: Apache-2.0
"""Faults that random graphs have found, each as the smallest pipeline that shows it."""

from __future__ import annotations

import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from PIL import Image

from stoker import Pipeline, eager, fn, types
from stoker.graph.analysis import PASSES


def run(define: Callable[[], Any], rows: int = 3, **settings: Any) -> list[list[np.ndarray]]:
    """Return the outputs with all passes, which must equal those without passes."""
    results = []
    for passes in (frozenset(PASSES), frozenset[str]()):
        pipe = Pipeline(batch_size=rows, num_threads=1, seed=7, passes=passes, **settings)
        with pipe:
            outputs = define()
        pipe.set_outputs(*(outputs if isinstance(outputs, tuple) else (outputs,)))
        results.append([[np.array(x) for x in batch] for batch in pipe.run()])
        pipe.close()
    for a, b in zip(*results, strict=True):
        assert [x.tobytes() for x in a] == [x.tobytes() for x in b]
    return results[0]


def image(shape: tuple[int, ...] = (6, 5, 3), dtype: Any = np.uint8, layout: str = "HWC") -> Any:
    return types.Constant(np.arange(np.prod(shape)).reshape(shape).astype(dtype), layout=layout)


def pixels(shape: tuple[int, ...] = (6, 5, 3), dtype: Any = np.uint8) -> np.ndarray:
    return np.arange(np.prod(shape)).reshape(shape).astype(dtype)


def test_a_slice_from_a_number_to_a_node() -> None:
    def define() -> Any:
        return fn.slice(image(), end=fn.cast(fn.random.uniform(range=[2.0, 2.0]), dtype=types.INT32), axes=(0,))

    ((got, *_),) = run(define)
    assert np.array_equal(got, pixels()[:2])


def test_a_slice_after_an_index_is_of_its_own_axis() -> None:
    ((got, *_),) = run(lambda: fn.copy(image())[1, ::-1, 1:])
    assert np.array_equal(got, pixels()[1, ::-1, 1:])


@pytest.mark.parametrize("operator", ["flip", "crop_mirror_normalize", "crop"])
def test_windows_and_mirrors_may_differ_from_frame_to_frame(operator: str) -> None:
    shape = (3, 4, 6, 3)

    def define() -> Any:
        flags = fn.per_frame(np.asarray([1, 0, 1], np.int32))
        video = image(shape, layout="FHWC")
        if operator == "flip":
            return fn.flip(video, horizontal=flags)
        if operator == "crop":
            return fn.crop(video, crop=(4, 2), crop_pos_x=fn.cast(flags, dtype=types.FLOAT))
        return fn.crop_mirror_normalize(video, mirror=flags, output_layout="HWC", dtype=types.UINT8)

    ((got, *_),) = run(define)
    video = pixels(shape)
    for f, flag in enumerate([1, 0, 1]):
        want = (
            (video[f][:, 4:] if flag else video[f][:, :2]) if operator == "crop" else video[f][:, :: -1 if flag else 1]
        )
        assert np.array_equal(got[f], want), f


def test_numbers_per_frame_are_refused_without_frames() -> None:
    def define() -> Any:
        return fn.flip(image(), horizontal=fn.per_frame(np.asarray([1, 0], np.int32)))

    with pytest.raises(ValueError, match="a per-frame argument needs a video"):
        run(define)


@pytest.mark.parametrize("shape", [(2,), None])
def test_one_number_is_one_number(shape: tuple[int, ...] | None) -> None:
    def define() -> Any:
        count = shape or fn.cast(fn.random.uniform(range=[2.0, 2.0], shape=[1]), dtype=types.INT32)
        return fn.flip(image(), horizontal=fn.random.coin_flip(shape=count))

    with pytest.raises((ValueError, RuntimeError), match="expected one number as `horizontal`, got 2"):
        run(define)


def test_normalize_takes_any_number_of_channels_with_one_mean() -> None:
    for channels in (1, 2, 3, 20):
        x = pixels((4, 5, channels))
        got = eager.crop_mirror_normalize(x, mean=3.0, std=2.0)
        assert np.array_equal(got, ((x.astype(np.float32) - 3) * np.float32(0.5)).transpose(2, 0, 1))


def test_padding_of_an_image_whose_width_comes_first() -> None:
    def define() -> Any:
        x = fn.transpose(image((4, 5, 3)), perm=(2, 1, 0))
        return fn.crop_mirror_normalize(
            x, crop=(6, 7), out_of_bounds_policy="pad", fill_values=[9.0], output_layout="HWC", dtype=types.UINT8
        )

    ((got, *_),) = run(define)
    assert np.array_equal(got, np.pad(pixels((4, 5, 3)), ((1, 1), (1, 1), (0, 0)), constant_values=9))


def test_a_decoded_image_that_is_an_argument_is_decoded_as_a_whole(tmp_path: Path) -> None:
    x = np.zeros((4, 4, 3), np.uint8)
    x[0, 0] = 2
    Image.fromarray(x).save(tmp_path / "a.png")

    def define() -> Any:
        data, _ = fn.readers.file(files=[str(tmp_path / "a.png")])
        decoded = fn.decoders.image(data)
        window = fn.crop(decoded, crop=(2, 2), crop_pos_x=1.0, crop_pos_y=1.0)
        return window, fn.slice(image(), start=decoded, shape=(1, 1), axes=(0, 1))

    window, cut = run(define, rows=1)
    assert not window[0].any()
    assert np.array_equal(cut[0], pixels()[2:3, 2:3])


def test_types_are_found_for_a_part_that_no_reader_feeds(tmp_path: Path) -> None:
    Image.fromarray(pixels()).save(tmp_path / "a.png")

    def define() -> Any:
        _, label = fn.readers.file(files=[str(tmp_path / "a.png")] * 2, labels=[4, 5])
        return label, fn.python_function(fn.random.coin_flip(), function=lambda x: x + np.int32(1))

    labels, numbers = run(define)
    assert [x.tolist() for x in labels] == [[4], [5], [4]]
    assert all(int(x) in (1, 2) for x in numbers)


def test_a_64_bit_scalar_beside_a_turned_image() -> None:
    def define() -> Any:
        x = fn.cast(image(), dtype=types.INT64) + np.arange(3, dtype=np.int64)
        return fn.flip(x, horizontal=0, vertical=1) * fn.shapes(x)[0]

    ((got, *_),) = run(define)
    assert np.array_equal(got, (pixels().astype(np.int64) + np.arange(3))[::-1] * 6)


def test_a_graph_is_the_same_after_json_with_lists_as_arguments() -> None:
    pipe = Pipeline(batch_size=1, num_threads=1, seed=1)
    with pipe:
        pipe.set_outputs(fn.readers.file(files=["a", "b"], labels=list(np.arange(2)))[1])
    again = Pipeline.deserialize(pipe.serialize(), batch_size=1, num_threads=1, seed=1)
    assert again.graph.fingerprint() == pipe.graph.fingerprint()


def empty(x: Any) -> Any:
    return x[:0]


def test_python_may_give_empty_arrays() -> None:
    def define() -> Any:
        nothing = fn.python_function(image(), function=empty)
        return nothing, fn.cat(nothing, image()), fn.reshape(nothing, shape=[-1])

    nothing, joined, flat = run(define)
    assert nothing[0].shape == (0, 5, 3)
    assert np.array_equal(joined[0], pixels())
    assert flat[0].shape == (0,)


def test_planning_takes_time_in_proportion_to_the_graph() -> None:
    """Shapes and programs share subexpressions: traversing them as trees would take exponential time."""

    def define() -> Any:
        x = fn.python_function(image(), function=empty, output_dtypes=types.UINT8, output_ndims=3)
        for i in range(25):
            x = fn.rotate(
                x + fn.python_function(image(), function=empty, output_dtypes=types.UINT8, output_ndims=3), angle=i
            )
        for _ in range(25):
            x = fn.hue(x, hue=20.0)
        return x

    start = time.process_time()
    pipe = Pipeline(batch_size=1, num_threads=1, seed=1)
    with pipe:
        pipe.set_outputs(define())
    pipe.build()
    pipe.show()
    pipe.close()
    assert time.process_time() - start < 20
