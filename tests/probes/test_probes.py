# SPDX-License-Identifier: Apache-2.0
# ruff: noqa: SIM108 - the statements are what is tested
"""Eight small working graphs. Each shows that a contract supports a later feature: video, audio, detection, mixing
across the batch, conditions, custom operators, Python code, serving.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from typing import Any

import numpy as np
import numpy.typing as npt
import pytest
from started_threads import StartedThreads

import stoker
from stoker import DataError, Operator, Pipeline, RowContext, Spec, arg, fn, math, pipeline_def, types
from stoker.frontends import registry

Array = npt.NDArray[Any]


@pytest.fixture(autouse=True)
def own_operators() -> Iterator[None]:
    """Forget the operators that a probe registers after the probe."""
    before = dict(registry._registered)
    yield
    registry._registered.clear()
    registry._registered.update(before)


# ---- (a) video: frames are a leading axis, arguments may differ from frame to frame ----


@pipeline_def(num_threads=2, seed=1)
def video_clips(clips: list[Array], angles: list[Array], gains: list[Array]) -> Any:
    video = fn.external_source([clips], layout="FHWC", cycle="quiet")
    angle = fn.per_frame(fn.external_source([angles], cycle="quiet"))
    gain = fn.per_frame(fn.external_source([gains], cycle="quiet"))
    turned = fn.rotate(video, angle=angle, keep_size=True, fill_value=0)
    small = fn.resize(turned, size=(8, 10))
    return turned, fn.cast(small * gain, dtype=types.UINT8), fn.crop_mirror_normalize(small, mean=[9.0], mirror=1)


@pipeline_def(batch_size=1, num_threads=1, seed=1)
def single_image(image: Array, angle: float, gain: float) -> Any:
    turned = fn.rotate(types.Constant(image, layout="HWC"), angle=angle, keep_size=True, fill_value=0)
    small = fn.resize(turned, size=(8, 10))
    return turned, fn.cast(small * gain, dtype=types.UINT8), fn.crop_mirror_normalize(small, mean=[9.0], mirror=1)


def test_a_video_is_its_frames_one_by_one() -> None:
    rng = np.random.default_rng(0)
    lengths = (3, 1, 4)
    clips = [rng.integers(0, 256, (n, 20, 24, 3), dtype=np.uint8) for n in lengths]
    angles = [rng.uniform(-90, 90, n).astype(np.float32) for n in lengths]
    gains = [rng.uniform(0.5, 2, n).astype(np.float32) for n in lengths]
    with video_clips(clips, angles, gains, batch_size=3) as pipe:
        outputs = pipe.run()
        assert [b.layout for b in outputs] == ["FHWC", "FHWC", "FCHW"]
        for row, n in enumerate(lengths):
            for f in range(n):
                with single_image(clips[row][f], float(angles[row][f]), float(gains[row][f])) as alone:
                    for whole, frame in zip(outputs, alone.run(), strict=True):
                        np.testing.assert_array_equal(whole[row][f], frame[0])


def test_a_video_needs_one_argument_per_frame() -> None:
    clip = np.zeros((3, 4, 4, 3), np.uint8)
    pipe = video_clips([clip], [np.zeros(2, np.float32)], [np.ones(3, np.float32)], batch_size=1)
    with pipe, pytest.raises(DataError, match="fewer elements than there are frames"):
        pipe.run()


# ---- (b) audio: a reduction to another rank, whose shape follows from the signal's by a formula ----


class Stft(Operator, name="probe.stft"):
    """Magnitude of the short-time Fourier transform. Input: a signal (N,). Output: (frequency, time), float32."""

    window = arg("int", 64, doc="Length of a window.")
    hop = arg("int", 16, doc="Distance of two windows.")
    cases = ({},)

    def infer(self, c: Any, signal: Any) -> Spec:
        window, hop = c.const("window"), c.const("hop")
        c.require(signal.shape[0] >= window, "expected at least {0} samples, got {1}", window, signal.shape[0])
        return Spec(types.FLOAT, (window // 2 + 1, (signal.shape[0] - window) // hop + 1), "ft")

    def reference(self, row: RowContext, signal: Array) -> Array:
        windows = np.lib.stride_tricks.sliding_window_view(signal, row["window"])[:: row["hop"]]
        return np.abs(np.fft.rfft(windows * np.hanning(row["window"]))).T.astype(np.float32)


def test_native_steps_follow_an_inferred_spectrogram() -> None:
    stoker.register(Stft)
    rng = np.random.default_rng(0)
    signals = [rng.normal(size=n).astype(np.float32) for n in (64, 200, 131)]

    @pipeline_def(batch_size=3, num_threads=2, seed=1)
    def spectrograms() -> Any:
        signal = fn.external_source([signals], cycle="quiet", dtype=types.FLOAT, ndim=1)
        spectrum = fn.probe.stft(signal)
        return spectrum, math.log(spectrum + 1)[:, ::2], spectrum.shape()

    with spectrograms() as pipe:
        plan = pipe.show().split("\nplan\n")[1]
        assert "dim" not in plan  # the plan knows the formula before the first data
        assert "// 16" in plan
        spectrum, logarithm, shapes = pipe.run()
        for row, signal in enumerate(signals):
            want = Stft().reference(RowContext({"window": 64, "hop": 16}), signal)
            np.testing.assert_array_equal(spectrum[row], want)
            np.testing.assert_allclose(logarithm[row], np.log1p(want)[:, ::2], rtol=2e-6)
            assert tuple(shapes[row]) == want.shape
        assert spectrum.layout == "ft"


# ---- (c) a number of outputs that the arguments set ----


class Split(Operator, name="probe.split"):
    """Cut a tensor into parts of equal size along its first axis."""

    parts = arg("int", doc="Number of parts.")
    cases = ({"parts": 2},)

    def count_outputs(self, args: Mapping[str, Any]) -> int:
        return int(args["parts"])

    def lower(self, c: Any, x: Any) -> Any:
        parts = c.const("parts")
        c.require(x.shape[0] % parts == 0, "expected a multiple of {0} elements, got {1}", parts, x.shape[0])
        size = x.shape[0] // parts
        return tuple(c.slice(x, {0: (i * size, size)}) for i in range(parts))

    def reference(self, row: RowContext, x: Array) -> Any:
        return tuple(np.split(x, row["parts"]))


def test_an_operator_may_have_several_outputs() -> None:
    stoker.register(Split)

    @pipeline_def(batch_size=2, num_threads=2, seed=1)
    def parts() -> Any:
        x = fn.external_source([[np.arange(6.0), np.arange(12.0)]], cycle="quiet")
        first, second, third = fn.probe.split(x, parts=3)
        return third, first + second

    with parts() as pipe:
        third, total = pipe.run()
        assert [r.tolist() for r in third] == [[4, 5], [8, 9, 10, 11]]
        assert [r.tolist() for r in total] == [[2, 4], [4, 6, 8, 10]]


# ---- (d) mixing across the batch ----


def test_mixup_takes_another_row_of_the_batch() -> None:
    @pipeline_def(batch_size=4, num_threads=2, seed=3)
    def mixed() -> Any:
        image = fn.random.uniform(range=[0, 255], shape=[6, 5, 3])
        label = fn.cast(fn.random.choice(3) == np.arange(3, dtype=np.int32), dtype=types.FLOAT)
        other = fn.batch_permutation(no_fixed_points=True)
        share = fn.random.uniform(range=[0.5, 1])

        def mix(x: Any) -> Any:
            return x * share + fn.permute_batch(x, indices=other) * (1 - share)

        return image, label, share, other, mix(image), mix(label)

    with mixed() as pipe:
        for _ in range(3):
            image, label, share, other, images, labels = (np.asarray(b) for b in pipe.run())
            for row in range(4):
                j, s = int(other[row]), share[row]
                assert j != row
                np.testing.assert_array_equal(images[row], image[row] * s + image[j] * (np.float32(1) - s))
                np.testing.assert_array_equal(labels[row], label[row] * s + label[j] * (np.float32(1) - s))


# ---- (e) a condition per sample ----


def test_a_condition_selects_the_branch_of_each_sample() -> None:
    @pipeline_def(batch_size=6, num_threads=2, seed=1, enable_conditionals=True)
    def sized(images: list[Array]) -> Any:
        image = fn.external_source([images], layout="HWC", cycle="quiet")
        height, width = image.shape()[0], image.shape()[1]
        if height > width:
            image = fn.transpose(image, perm=[1, 0, 2], output_layout="HWC")
        if height * width > 100:
            out = fn.resize(image, size=(4, 6))
        else:
            out = fn.flip(image)
        return out

    rng = np.random.default_rng(0)
    images = [
        rng.integers(0, 256, (*s, 3), dtype=np.uint8) for s in ((5, 8), (8, 5), (20, 30), (30, 20), (10, 10), (11, 10))
    ]

    def plain(x: Array) -> Any:
        x = x.transpose(1, 0, 2) if x.shape[0] > x.shape[1] else x
        return stoker.eager.resize(x.copy(), size=(4, 6)) if x.size > 300 else x[:, ::-1]

    with sized(images) as pipe:
        for got, image in zip(pipe.run()[0], images, strict=True):
            np.testing.assert_array_equal(got, plain(image))


# ---- (f) a stateful operator of a user, written in a notebook ----

NOTEBOOK = '''
import numpy as np
import stoker
from stoker import Operator, Spec, types

@stoker.register
class Tally(Operator, name="tally"):
    """The number of rows so far, and the sum of their values."""
    stateful = True
    outputs = 2
    cases = ({},)
    def infer(self, c, x):
        return Spec(types.INT64, ()), Spec(types.FLOAT64, ())
    def init(self):
        return {"rows": 0, "sum": 0.0}
    def reference(self, row, x):
        row.state["rows"] += 1
        row.state["sum"] += float(x)
        return np.int64(row.state["rows"]), np.float64(row.state["sum"])
'''


def tallies(batch_size: int, **settings: Any) -> Pipeline:
    pipe = Pipeline(batch_size, seed=5, **{"num_threads": 2, **settings})
    with pipe:
        number = fn.external_source(lambda info: float(info.idx_in_epoch), batch=False)
        rows, total = fn.tally(number * 0.5)
        pipe.set_outputs(number, rows, total)
    return pipe


def take(pipe: Pipeline, batches: int) -> list[tuple[float, int, float]]:
    runs = [pipe.run() for _ in range(batches)]
    return [(float(a), int(b), float(c)) for run in runs for a, b, c in zip(*run, strict=True)]


@pytest.mark.parametrize("settings", [{}, {"exec_async": False}, {"prefetch_queue_depth": 4, "num_threads": 3}])
def test_a_stateful_operator_runs_in_order_and_is_restored_exactly(settings: dict[str, Any]) -> None:
    exec(NOTEBOOK, {"__name__": "__main__"})
    want = [(float(i), i + 1, sum(range(i + 1)) / 2) for i in range(24)]
    with tallies(3, **settings) as pipe, tallies(4) as other:
        start = pipe.get_state()
        assert take(pipe, 4) == want[:12]
        token = json.loads(json.dumps(pipe.get_state()))  # of delivered batches, not of prefetched ones
        assert take(pipe, 2) == want[12:18]
        other.set_state(token)
        assert take(other, 3) == want[12:24]
        other.set_state(token)
        assert take(other, 1) == want[12:16]
        pipe.set_state(start)
        assert take(pipe, 1) == want[:3]
        pipe.reset()  # The random numbers of a new epoch with the same state: prefetched batches do not count.
        assert take(pipe, 1) == [(0.0, 4, 1.5), (1.0, 5, 2.0), (2.0, 6, 3.0)]


# ---- (g) Python code with random numbers ----


def speckle(image: Array, *, rng: np.random.Generator) -> Array:
    """Add multiplicative noise."""
    return (image * rng.normal(1, 0.1, image.shape)).astype(np.float32)


def test_python_code_draws_the_same_numbers_in_every_run() -> None:
    def rows(batch_size: int, threads: int, **settings: Any) -> Array:
        pipe = Pipeline(batch_size, threads, seed=9, **settings)
        with pipe:
            pipe.set_outputs(fn.python_function(fn.random.uniform(shape=[4, 4, 3]), function=speckle))
        with pipe:
            return np.concatenate([np.asarray(pipe.run()[0]) for _ in range(12 // batch_size)])

    want = rows(12, 1)
    for batch_size, threads, settings in (
        (1, 1, {}),
        (3, 3, {"prefetch_queue_depth": 3}),
        (4, 2, {"exec_async": False}),
    ):
        np.testing.assert_array_equal(rows(batch_size, threads, **settings), want)


# ---- (h) one sample, on the caller's thread ----


def test_one_sample_runs_without_a_thread() -> None:
    @pipeline_def(batch_size=1, num_threads=4, seed=1, exec_async=False)
    def inference() -> Any:
        image = fn.external_source(name="image", layout="HWC", dtype=types.UINT8)
        resized = fn.resize(image, size=(8, 8))
        scaled = fn.python_function(resized, function=lambda x: x.astype(np.float32) / 255)
        return fn.transpose(scaled, perm=[2, 0, 1]), resized

    started = StartedThreads()
    image = np.random.default_rng(0).integers(0, 256, (20, 30, 3), dtype=np.uint8)
    with inference() as pipe:
        for _ in range(3):
            out, resized = pipe.run(image=[image])
            np.testing.assert_array_equal(resized[0], stoker.eager.resize(image, size=(8, 8)))
            np.testing.assert_array_equal(out[0], resized[0].transpose(2, 0, 1).astype(np.float32) / 255)
        assert started.count() == 0
