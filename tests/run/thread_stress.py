# SPDX-License-Identifier: Apache-2.0
"""Several threads use pipelines and eager calls at the same time, as random actions with known results.

``tests/run/test_threads.py`` runs some rounds. By hand, for longer: ``python -m tests.run.thread_stress --seconds 600
--threads 8``. The exit status is 1 if a result was wrong, an error is none that the action allows, or a thread hangs.
"""

from __future__ import annotations

import argparse
import io
import random
import sys
import tempfile
import threading
import time
import traceback
from collections import Counter
from collections.abc import Callable, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any

import numpy as np
from PIL import Image

from stoker import Operator, Pipeline, RowContext, Spec, StateError, eager, fn, pipeline_def, register, types
from stoker.types import DType

HANG_S = 300.0
_SIDE = 12


def write_images(folder: Path, count: int = 12) -> list[str]:
    """Write small files of two formats: JPEG, which native code decodes, and PNG, which Pillow does."""
    rng = np.random.default_rng(1)
    names = []
    for i in range(count):
        pixels = rng.integers(0, 256, (20 + i, 33 - i, 3), np.uint8)
        path = folder / f"{i:02}.{'png' if i % 4 == 3 else 'jpg'}"
        Image.fromarray(pixels).save(path)
        names.append(str(path))
    return names


@pipeline_def(batch_size=3, num_threads=2, seed=5)
def augmenting(files: Sequence[str], **reader: Any) -> Any:
    """Return random crops, and the number of the file."""
    data, labels = fn.readers.file(files=list(files), random_shuffle=True, name="Reader", **reader)
    images = fn.resize(fn.decoders.image_random_crop(data), size=(_SIDE, _SIDE))
    return fn.flip(images, horizontal=fn.random.coin_flip()), labels


@pipeline_def(batch_size=3, num_threads=2, seed=5)
def with_python(files: Sequence[str]) -> Any:
    """Return sums of images that a Python function computes, and the number of the file."""
    data, labels = fn.readers.file(files=list(files), name="Reader")
    images = fn.resize(fn.decoders.image(data), size=(_SIDE, _SIDE))
    return fn.python_function(images, function=lambda x: np.asarray(x.sum(dtype=np.int64)).reshape(1)), labels


Rows = list[tuple[bytes, ...]]


def rows_of(batches: Sequence[Any]) -> Rows:
    """Return the rows of a batch as bytes."""
    return [tuple(np.asarray(output[i]).tobytes() for output in batches) for i in range(len(batches[0]))]


def epoch_of(pipe: Pipeline) -> Rows:
    """Return the rows of a pipeline's first epoch."""
    rows: Rows = []
    for _ in range(-(-pipe.epoch_size("Reader") // pipe.batch_size)):
        rows += rows_of(pipe.run())
    return rows


class Wrong(Exception):
    """A result differs from the one of a single thread."""


class Stress:
    """Actions, and what they give on a single thread.

    Args:
        files: image files of the pipelines.
    """

    def __init__(self, files: Sequence[str]) -> None:
        self.files = list(files)
        self.factories: list[Callable[..., Pipeline]] = [augmenting, with_python]
        self.expected = []
        for make in self.factories:
            with make(self.files) as pipe:
                self.expected.append(epoch_of(pipe))
        self.image = np.asarray(Image.open(self.files[0]).convert("RGB"))
        self.calls: list[Callable[[], Any]] = [
            lambda: eager.resize(self.image, size=(7, 9)),
            lambda: eager.rotate(self.image, angle=30.0, fill_value=0),
            lambda: eager.crop_mirror_normalize(self.image, mean=[120.0], std=[60.0]),
            lambda: eager.reductions.mean(self.image, axes=(0, 1)),
            lambda: eager.color_twist(self.image, hue=20.0, saturation=1.5),
            lambda: eager.random.uniform(range=[0.0, 1.0], shape=[9], seed=3),
            lambda: eager.imread(self.files[0]),
            lambda: eager.imread(self.files[3]),
            lambda: eager.resize([self.image] * 4, size=(5, 5)).as_array(),
            lambda: eager.cast(self.image, dtype=types.FLOAT),
        ]
        self.results = [np.asarray(call()) for call in self.calls]
        self.shared = self._shared()
        self.sharing = threading.Lock()
        self.actions = (
            self.own_pipeline, self.eager_calls, self.shared_pipeline, self.closed_while_running, self.facts,
            self.defined_here, self.registered, self.previewed, self.fed_by_hand,
        )  # fmt: skip

    def close(self) -> None:
        """Close what the threads share."""
        self.shared.close()

    def _shared(self) -> Pipeline:
        return augmenting(self.files).build()

    # ---- actions ----

    def own_pipeline(self, draw: random.Random) -> None:
        """Run a pipeline of this thread."""
        number = draw.randrange(len(self.factories))
        with self.factories[number](self.files, num_threads=draw.choice([1, 2]), exec_async=draw.random() < 0.7) as p:
            if epoch_of(p) != self.expected[number]:
                raise Wrong(f"pipeline {number} gave other rows")

    def eager_calls(self, draw: random.Random) -> None:
        """Call operators on arrays; the threads share their plans."""
        for number in draw.sample(range(len(self.calls)), len(self.calls)):
            if not np.array_equal(np.asarray(self.calls[number]()), self.results[number]):
                raise Wrong(f"eager call {number} gave another result")

    def shared_pipeline(self, draw: random.Random) -> None:
        """Take batches of a pipeline that all threads share, which another thread may close."""
        with suppress(StateError):
            batch = self.shared.run()
            if len(batch[0]) != 3 or batch[0].as_array().shape[1:] != (_SIDE, _SIDE, 3):
                raise Wrong("the shared pipeline gave a batch of another shape")

    def closed_while_running(self, draw: random.Random) -> None:
        """Replace the shared pipeline and close it while other threads run it."""
        with self.sharing:
            former, self.shared = self.shared, self._shared()
        former.close()
        try:
            former.run()
        except StateError:
            return
        raise Wrong("a closed pipeline gave a batch")

    def facts(self, draw: random.Random) -> None:
        """Ask the shared pipeline for its facts while other threads run it."""
        pipe = self.shared
        asked: list[Callable[[], Any]] = [
            lambda: str(pipe.report()), lambda: repr(pipe), lambda: pipe.epoch_size("Reader"), pipe.get_state,
            lambda: pipe.errors, pipe.show, pipe.serialize, pipe._repr_html_,
        ]  # fmt: skip
        draw.choice(asked)()

    def defined_here(self, draw: random.Random) -> None:
        """Define pipelines with the same parts as other threads: expressions, functions and classes of operators."""
        from stoker.dali import fn as dali_fn
        from stoker.dali import ops
        from stoker.dali import pipeline_def as dali_def

        @dali_def(batch_size=2, num_threads=1)
        def defined(size: int) -> Any:
            data, labels = dali_fn.readers.file(files=self.files)
            return ops.Resize(size=(size, size))(dali_fn.decoders.image(data)), labels

        pipe = defined(draw.randrange(3, 9))
        pipe.build()
        if pipe.run()[0].as_array().shape[0] != 2:
            raise Wrong("a pipeline gave a batch of another size")
        pipe.close()

    def registered(self, draw: random.Random) -> None:
        """Register an operator of a user and call it."""
        factor = draw.randrange(2, 200)
        name = f"stress_{threading.get_ident() % 100_000}"

        class Scaled(Operator, name=name):
            """Multiply by a number."""

            def infer(self, c: Any, x: Any) -> Spec:
                return Spec(DType.INT64, x.shape)

            def reference(self, row: RowContext, x: Any) -> Any:
                return x.astype(np.int64) * factor

        register(Scaled)
        if int(getattr(eager, name)(np.array([3], np.int64))[0]) != 3 * factor:
            raise Wrong("a registered operator gave the result of a former one")

    def previewed(self, draw: random.Random) -> None:
        """Draw a contact sheet."""
        if draw.random() < 0.8:  # slow
            return self.eager_calls(draw)
        with augmenting(self.files) as pipe:
            pipe.preview(2).save(io.BytesIO(), "PNG")
        return None

    def fed_by_hand(self, draw: random.Random) -> None:
        """Feed a pipeline from one thread and run it on another."""

        @pipeline_def(batch_size=2, num_threads=1)
        def fed() -> Any:
            return fn.external_source(name="x", blocking=True) + 1

        with fed() as pipe:
            pipe.build()
            feeder = threading.Thread(target=lambda: [pipe.feed_input("x", [np.full(3, k)] * 2) for k in range(4)])
            feeder.start()
            found = [int(pipe.run()[0].as_array()[0, 0]) for _ in range(4)]
            feeder.join()
        if found != [1, 2, 3, 4]:
            raise Wrong(f"data that another thread fed came as {found}")


def run(files: Sequence[str], *, threads: int, rounds: int, seconds: float = 0.0, seed: int = 0) -> list[str]:
    """Run random actions on several threads and return the texts of all errors.

    Args:
        files: image files.
        threads: number of threads.
        rounds: number of actions of each thread, at least.
        seconds: the threads go on for as long.
        seed: seed of the actions' order.
    """
    stress = Stress(files)
    errors: list[str] = []
    done: Counter[str] = Counter()
    begin, end = threading.Barrier(threads), time.monotonic() + seconds
    interval = sys.getswitchinterval()

    def work(number: int) -> None:
        draw = random.Random(f"{seed} {number}")
        begin.wait()
        count = 0
        while not errors and (count < rounds or time.monotonic() < end):
            count += 1
            action = draw.choice(stress.actions)
            try:
                action(draw)
                done[action.__name__] += 1
            except BaseException:
                errors.append(f"{action.__name__}: {traceback.format_exc()}")

    workers = [threading.Thread(target=work, args=(n,), name=f"stress-{n}", daemon=True) for n in range(threads)]
    try:
        sys.setswitchinterval(1e-5)  # with the GIL: change threads often
        for worker in workers:
            worker.start()
        deadline = time.monotonic() + seconds + HANG_S
        for worker in workers:
            worker.join(max(0.0, deadline - time.monotonic()))
    finally:
        sys.setswitchinterval(interval)
    hanging = [worker.name for worker in workers if worker.is_alive()]
    if hanging:
        errors.append(f"these threads hang: {hanging}")
    else:
        stress.close()
    if seconds:
        print(", ".join(f"{count} {name}" for name, count in sorted(done.items())), flush=True)
    return errors


def main() -> int:
    """Run the program and return its exit status."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else None)
    parser.add_argument("--seconds", type=float, default=60.0)
    parser.add_argument("--threads", type=int, default=8)
    parser.add_argument("--seed", type=int, default=0)
    chosen = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        files = write_images(Path(folder))
        errors = run(files, threads=chosen.threads, rounds=1, seconds=chosen.seconds, seed=chosen.seed)
    for text in errors:
        print(text, file=sys.stderr)
    gil = getattr(sys, "_is_gil_enabled", lambda: True)()
    print(f"{len(errors)} errors, {chosen.threads} threads, {'with' if gil else 'without'} the GIL", flush=True)
    return int(bool(errors))


if __name__ == "__main__":
    sys.exit(main())
