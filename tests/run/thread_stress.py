# SPDX-License-Identifier: Apache-2.0
"""Several threads use pipelines, readers, loaders and eager calls together, as random actions with known results.

``tests/run/test_threads.py`` runs some rounds. By hand, for longer: ``python -m tests.run.thread_stress --seconds 600
--threads 8``. The exit status is 1 if a result was wrong, an error is none that the action allows, or a thread hangs.
``make stress-bindings`` runs the program on an extension with ThreadSanitizer.
"""

from __future__ import annotations

import argparse
import gc
import io
import json
import os
import random
import sys
import tempfile
import threading
import time
import traceback
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, contextmanager, suppress
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
from PIL import Image

from stoker import Operator, Pipeline, RowContext, Spec, StateError, eager, fn, pipeline_def, register, tfrecord, types
from stoker.readers import _index_files
from stoker.types import DType

sys.path.insert(0, str(Path(__file__).parents[2] / "tools"))  # the program runs as a module, without the paths of tests
import containers

HANG_S = 300.0
_SIDE = 12
_SAMPLES = 9  # in each container


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


@pipeline_def(batch_size=4, num_threads=2, seed=5)
def of_records(folder: Path) -> Any:
    """Return the samples of a TFRecord file, in a random order."""
    features = {
        "data": tfrecord.FixedLenFeature((), tfrecord.string),
        "n": tfrecord.FixedLenFeature([1], tfrecord.int64),
    }
    read = fn.readers.tfrecord(path=str(folder / "a.tfrecord"), features=features, random_shuffle=True, name="Reader")
    return read["data"], read["n"]


@pipeline_def(batch_size=4, num_threads=2, seed=5)
def of_members(folder: Path) -> Any:
    """Return the samples of a tar file, in a random order."""
    paths = str(folder / "a.tar")
    data, number = fn.readers.webdataset(paths=paths, ext=["bin", "n"], random_shuffle=True, name="Reader")
    return data, number


@pipeline_def(batch_size=4, num_threads=2, seed=5)
def of_arrays(folder: Path) -> Any:
    """Return the arrays of files, in a random order."""
    files = [str(folder / f"{i}.npy") for i in range(_SAMPLES)]
    return fn.readers.numpy(files=files, random_shuffle=True, name="Reader"), fn.random.uniform()


def write_containers(folder: Path) -> None:
    """Write files of three formats with the same samples, old enough for the cache of indexes."""
    samples = [bytes([i]) * (i + 3) for i in range(_SAMPLES)]
    records = [containers.example({"data": sample, "n": [i]}) for i, sample in enumerate(samples)]
    (folder / "a.tfrecord").write_bytes(containers.tfrecord(records))
    members = [(f"{i}.{ext}", data) for i, s in enumerate(samples) for ext, data in (("bin", s), ("n", b"%d" % i))]
    (folder / "a.tar").write_bytes(containers.tar(members))
    for i in range(_SAMPLES):
        np.save(folder / f"{i}.npy", np.full((4, i + 1), i, np.uint8))
    for path in folder.iterdir():
        os.utime(path, (1e9, 1e9))


Rows = list[tuple[bytes, ...]]


def rows_of(batches: Sequence[Any]) -> Rows:
    """Return the rows of a batch as bytes."""
    return [tuple(np.asarray(output[i]).tobytes() for output in batches) for i in range(len(batches[0]))]


def batches_of(pipe: Pipeline) -> int:
    """Return the number of batches in an epoch."""
    return int(-(-pipe.epoch_size("Reader") // pipe.batch_size))


def epoch_of(pipe: Pipeline) -> Rows:
    """Return the rows of a pipeline's first epoch, and of the next one's begin if the last batch has room."""
    rows: Rows = []
    for _ in range(batches_of(pipe)):
        rows += rows_of(pipe.run())
    return rows


def loader_of(pipe: Pipeline) -> Any:
    """Return the batches of a pipeline as tensors."""
    from stoker.torch import Loader

    return Loader(pipe)


class Wrong(Exception):
    """A result differs from the one of a single thread."""


class Stress:
    """Actions, and what they give on a single thread.

    Args:
        files: image files of the pipelines.
        folder: empty folder for container files.
        torch: loaders are used too.
    """

    def __init__(self, files: Sequence[str], folder: Path, *, torch: bool = False) -> None:
        self.files = list(files)
        write_containers(folder)
        self.factories: list[Callable[..., Pipeline]] = [
            *(partial(make, self.files) for make in (augmenting, with_python)),
            *(partial(make, folder) for make in (of_records, of_members, of_arrays)),
        ]
        self.expected, self.expected_tensors = [], []
        for make in self.factories:
            with make() as pipe:
                self.expected.append(epoch_of(pipe))
            if torch:
                with make() as pipe:
                    self.expected_tensors.append(sorted(row for batch in loader_of(pipe) for row in rows_of(batch)))
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
        self.actions = [
            self.own_pipeline, self.eager_calls, self.new_eager_plans, self.shared_pipeline, self.closed_while_running,
            self.facts, self.resumed, self.dropped, self.forgotten_indexes, self.defined_here, self.registered,
            self.previewed, self.fed_by_hand, *([self.shared_loop] * 3 if torch else []),
        ]  # fmt: skip

    def close(self) -> None:
        """Close what the threads share."""
        self.shared.close()

    def _shared(self) -> Pipeline:
        return augmenting(self.files).build()

    def _own(self, number: int, draw: random.Random) -> Pipeline:
        depth = draw.choice([1, 2, 4])
        threads, is_async = draw.choice([1, 2]), draw.random() < 0.7
        return self.factories[number](num_threads=threads, exec_async=is_async, prefetch_queue_depth=depth)

    # ---- actions ----

    def own_pipeline(self, draw: random.Random) -> None:
        """Run a pipeline of this thread."""
        number = draw.randrange(len(self.factories))
        with self._own(number, draw) as pipe:
            if epoch_of(pipe) != self.expected[number]:
                raise Wrong(f"pipeline {number} gave other rows")

    def resumed(self, draw: random.Random) -> None:
        """Continue from a pipeline's state in another pipeline, or in itself after it began another epoch."""
        number = draw.randrange(len(self.factories))
        rows: Rows = []
        with ExitStack() as opened:
            first = second = opened.enter_context(self._own(number, draw))
            count = batches_of(first)
            at = draw.randrange(count + 1)
            for _ in range(at):
                rows += rows_of(first.run())
            state = json.loads(json.dumps(first.get_state()))
            first.reset()
            first.run()
            if draw.random() < 0.5:
                second = opened.enter_context(self._own(number, draw))
            second.set_state(state)
            for _ in range(at, count):
                rows += rows_of(second.run())
        if rows != self.expected[number]:
            raise Wrong(f"pipeline {number} gave other rows after it was stopped at batch {at}")

    def dropped(self, draw: random.Random) -> None:
        """Drop a pipeline that prefetches, before a batch that it gave."""
        number = draw.randrange(len(self.factories))
        pipe = self._own(number, draw)
        batch, size = pipe.run(), pipe.batch_size
        del pipe
        if draw.random() < 0.2:
            gc.collect()
        if rows_of(batch) != self.expected[number][:size]:
            raise Wrong(f"a batch of pipeline {number} changed after the pipeline was dropped")

    def forgotten_indexes(self, draw: random.Random) -> None:
        """Delete cached indexes of containers, as another process may, and read the containers."""
        for entry in Path(os.environ["STOKER_INDEX_CACHE"]).glob("[!.]*"):
            entry.unlink(missing_ok=True)
        self.own_pipeline(draw)

    def new_eager_plans(self, draw: random.Random) -> None:
        """Call an operator with arguments that need another plan, while other threads call it."""
        size = draw.randrange(1, 30), draw.randrange(1, 30)
        for _ in range(3):
            if eager.resize(self.image, size=size).shape != (*size, 3):
                raise Wrong(f"an eager call gave an image of another size than {size}")

    def shared_loop(self, draw: random.Random) -> None:
        """Take the batches of one loop over a loader from several threads."""
        number = draw.randrange(len(self.factories))
        rows: Rows = []
        with self._own(number, draw) as pipe:
            loop = iter(loader_of(pipe))

            def take() -> None:
                for batch in loop:
                    rows.extend(rows_of(batch))

            takers = [threading.Thread(target=take) for _ in range(3)]
            for taker in takers:
                taker.start()
            for taker in takers:
                taker.join()
        if sorted(rows) != self.expected_tensors[number]:
            raise Wrong(f"a loop over pipeline {number} that threads share gave other rows")

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


@contextmanager
def small_indexes_cached(folder: Path) -> Iterator[None]:
    """Cache the indexes of small containers too, in a folder."""
    former, least = os.environ.get("STOKER_INDEX_CACHE"), _index_files._LEAST_BYTES
    os.environ["STOKER_INDEX_CACHE"], _index_files._LEAST_BYTES = str(folder), 0
    try:
        yield
    finally:
        _index_files._LEAST_BYTES = least
        del os.environ["STOKER_INDEX_CACHE"]
        if former is not None:
            os.environ["STOKER_INDEX_CACHE"] = former


def run(
    files: Sequence[str], *, threads: int, rounds: int, seconds: float = 0.0, seed: int = 0, torch: bool = False
) -> list[str]:
    """Run random actions on several threads and return the texts of all errors.

    Args:
        files: image files, in a folder that is written to.
        threads: number of threads.
        rounds: number of actions of each thread, at least.
        seconds: the threads go on for as long.
        seed: seed of the actions' order.
        torch: loaders are used too.
    """
    folder = Path(files[0]).parent / "containers"
    folder.mkdir()
    with small_indexes_cached(folder.parent / "indexes"):
        return _run(Stress(files, folder, torch=torch), threads, rounds, seconds, seed)


def _run(stress: Stress, threads: int, rounds: int, seconds: float, seed: int) -> list[str]:
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
    parser.add_argument("--torch", action="store_true", help="use loaders too")
    chosen = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        files = write_images(Path(folder))
        errors = run(
            files, threads=chosen.threads, rounds=1, seconds=chosen.seconds, seed=chosen.seed, torch=chosen.torch
        )
    for text in errors:
        print(text, file=sys.stderr)
    gil = getattr(sys, "_is_gil_enabled", lambda: True)()
    print(f"{len(errors)} errors, {chosen.threads} threads, {'with' if gil else 'without'} the GIL", flush=True)
    return int(bool(errors))


if __name__ == "__main__":
    sys.exit(main())
