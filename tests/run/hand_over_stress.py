# SPDX-License-Identifier: Apache-2.0
"""Rows that several threads of Python decode, with delays, closes at any moment and forks, as random actions.

``tests/run/test_python_threads.py`` runs some rounds. By hand, for longer and on one core: ``taskset -c 0 python -m
tests.run.hand_over_stress --seconds 60``. The exit status is 1 if a row is wrong, a child fails or a thread hangs.
"""

from __future__ import annotations

import argparse
import gc
import io
import os
import random
import signal
import sys
import threading
import time
import traceback
from typing import Any

import numpy as np
from PIL import Image

from stoker import DataError, StateError, fn, pipeline_def
from stoker.ops.image import _pillow_decoding

HANG_S = 120.0
_FORMS = ("TIFF", "WEBP", "QOI", "JPEG2000")
_NUMBERS = 51
_DAMAGED = 7  # with damaged files: one row in seven


def _encoded(form: str, number: int) -> Any:
    """Return a file whose pixels are five times its number."""
    file = io.BytesIO()
    image, other = (Image.fromarray(np.full((9, 11, 3), value, np.uint8)) for value in (5 * number, 5 * number + 1))
    # An animation, because other WebP files are decoded natively.
    options = {"lossless": True, "save_all": True, "append_images": [other]} if form == "WEBP" else {}
    image.save(file, form, **options)
    return np.frombuffer(file.getvalue(), np.uint8)


class Stress:
    """Pipelines with random settings, and their expected rows."""

    def __init__(self) -> None:
        self.files = {form: [_encoded(form, k) for k in range(_NUMBERS)] for form in _FORMS}
        self.errors: list[str] = []
        self.pipelines = self.forks = 0

    def one(self, draw: random.Random) -> None:
        """Run some batches of a pipeline and end it in one of four ways."""
        rows, forms = draw.randint(1, 14), draw.sample(_FORMS, draw.randint(1, len(_FORMS)))
        damaged, calls = draw.random() < 0.4, draw.random() < 0.4

        def is_damaged(n: int) -> bool:
            return damaged and n % _DAMAGED == _DAMAGED // 2

        def source(i: int) -> list[Any]:
            numbers = range(i * rows, (i + 1) * rows)
            files = [self.files[forms[n % len(forms)]][n % _NUMBERS] for n in numbers]
            return [x[: len(x) // 2] if is_damaged(n) else x for n, x in zip(numbers, files, strict=True)]

        @pipeline_def(
            batch_size=rows, num_threads=draw.randint(1, 6), prefetch_queue_depth=draw.randint(1, 4), on_error="skip"
        )
        def decoding() -> Any:
            images = fn.decoders.image(fn.external_source(source=source))
            return fn.python_function(images, function=lambda x: x) if calls else images

        pipe, end, closer = decoding(), draw.choice(["close", "drop", "another thread"]), None
        pipe.build()
        if end == "another thread":
            closer = threading.Timer(draw.random() * 0.03, pipe.close)
            closer.start()
        try:
            for i in range(draw.randint(0, 6)):
                found = [int(np.asarray(x)[0, 0, 0]) for x in pipe.run()[0]]
                wanted = [n % _NUMBERS * 5 for n in range(i * rows, (i + 1) * rows) if not is_damaged(n)]
                if found != wanted:
                    raise AssertionError(f"expected the rows {wanted}, got {found}")
        except StateError:
            if closer is None:
                raise
        except DataError:
            if not damaged or rows > 1:  # a batch whose only row is damaged is an error
                raise
        if end == "close":
            pipe.close()
        if closer is not None:
            closer.join()
        del pipe
        if draw.random() < 0.1:
            gc.collect()
        self.pipelines += 1

    def fork(self, draw: random.Random) -> None:
        """Fork a child that decodes too."""
        child = os.fork()
        if child == 0:
            signal.alarm(int(HANG_S))  # ends a child that hangs
            try:
                self.one(draw)
            except BaseException:
                traceback.print_exc()
                os._exit(1)
            os._exit(0)
        status = os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])
        if status:
            raise AssertionError(f"a forked child ended with {status}")
        self.forks += 1

    def run(self, *, threads: int, seconds: float, seed: int, forks: bool = True) -> list[str]:
        """Run actions on several threads until ``seconds`` have passed, and return the texts of all errors."""
        decode, delays = _pillow_decoding.pillow_decode, random.Random(seed)
        end, interval = time.monotonic() + seconds, sys.getswitchinterval()

        def delayed(*args: Any) -> Any:
            if delays.random() < 0.3:
                time.sleep(delays.random() * 0.004)
            pixels = decode(*args)
            if delays.random() < 0.1:
                time.sleep(delays.random() * 0.002)
            return pixels

        def work(number: int) -> None:
            draw = random.Random(f"{seed} {number}")
            try:
                while not self.errors and time.monotonic() < end:
                    if number == 0 and forks:
                        self.fork(draw)
                    else:
                        self.one(draw)
            except BaseException:
                self.errors.append(traceback.format_exc())

        workers = [threading.Thread(target=work, args=(n,), name=f"stress-{n}", daemon=True) for n in range(threads)]
        _pillow_decoding.pillow_decode = delayed  # type: ignore[assignment]
        try:
            sys.setswitchinterval(5e-5)
            for worker in workers:
                worker.start()
            for worker in workers:
                worker.join(max(end - time.monotonic(), 0) + 2 * HANG_S)
        finally:
            sys.setswitchinterval(interval)
            _pillow_decoding.pillow_decode = decode
        return self.errors + [f"{worker.name} hangs" for worker in workers if worker.is_alive()]


def main() -> int:
    """Run the program."""
    parser = argparse.ArgumentParser()
    parser.add_argument("--seconds", type=float, default=60.0)
    parser.add_argument("--threads", type=int, default=4)
    parser.add_argument("--seed", type=int, default=1)
    settings = parser.parse_args()
    stress = Stress()
    errors = stress.run(
        threads=settings.threads, seconds=settings.seconds, seed=settings.seed, forks=hasattr(os, "fork")
    )
    print("\n".join(errors) or f"{stress.pipelines} pipelines, {stress.forks} forked children")
    return 1 if errors else 0


if __name__ == "__main__":
    sys.exit(main())
