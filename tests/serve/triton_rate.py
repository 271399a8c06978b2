# SPDX-License-Identifier: Apache-2.0
"""Requests per second of an exported model in Triton and of the endpoint in one process, at a batch of 32.

``python -m tests.serve.triton_rate FOLDER_OF_JPEGS``, in the environment of ``make test-triton``. The pipeline decodes,
resizes to 224x224 and normalises; its result is the mean of the image, as small as a classifier's, or the image itself,
602 kB of float32. Each request has 32 files. Two clients are in flight, so that one request waits in the server, and
both ways alternate.
"""

from __future__ import annotations

import statistics
import sys
import tempfile
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import numpy as np
import tritonclient.http as client

from stoker import fn, pipeline_def, types
from stoker.serve import Endpoint
from stoker.triton import export
from tests.serve.triton_process import running

BATCH, TURNS, CLIENTS = 32, 5, 2
BAR = 0.8
SECONDS = 2.0


@pipeline_def(batch_size=BATCH, num_threads=2, device_id=None, seed=3)
def preprocess(whole: bool) -> Any:
    """Return a normalised image, or its mean."""
    content = fn.external_source(name="content", dtype=types.UINT8, ndim=1)
    images = fn.resize(fn.decoders.image(content), size=(224, 224))
    images = fn.crop_mirror_normalize(images, mean=[120.0], std=[60.0])
    return images if whole else fn.reductions.mean(images)


def main() -> None:
    contents = [p.read_bytes() for p in sorted(Path(sys.argv[1]).rglob("*")) if p.suffix.lower() in (".jpg", ".jpeg")]
    requests = [contents[i : i + BATCH] for i in range(0, len(contents) - BATCH + 1, BATCH)]
    print(f"{time.strftime('%d %B %Y %H:%M', time.gmtime())} UTC, batch {BATCH}, {len(contents)} files")
    for whole in (False, True):
        with tempfile.TemporaryDirectory() as name:
            with preprocess(whole) as pipe:
                export(pipe, Path(name) / "models", "preprocess", ["y"], max_queue_delay_us=0)
            with running(Path(name)) as address, Endpoint(preprocess(whole), ["y"]) as endpoint:
                check(address, endpoint, requests[0])
                measure("images" if whole else "means", address, endpoint, requests)


def ask(connection: Any, request: list[bytes]) -> Any:
    """Return the server's answer to one request."""
    rows = client.InferInput("content", [len(request), 1], "BYTES")
    rows.set_data_from_numpy(np.array([[c] for c in request], dtype=object))
    return connection.infer("preprocess", [rows]).as_numpy("y")


def check(address: str, endpoint: Endpoint, request: list[bytes]) -> None:
    """Compare both answers to a request."""
    with client.InferenceServerClient(address, network_timeout=60) as connection:
        want = np.stack([r["y"] for r in endpoint(request)])
        np.testing.assert_array_equal(ask(connection, request).reshape(want.shape), want)


def measure(label: str, address: str, endpoint: Endpoint, requests: list[list[bytes]]) -> None:
    """Print the rate of both, and the ratio."""

    def through_triton(seconds: float) -> float:
        def loop(first: int) -> int:
            done = 0
            with client.InferenceServerClient(address, network_timeout=60) as connection:
                while time.perf_counter() < end:
                    ask(connection, requests[(first + done) % len(requests)])
                    done += 1
            return done

        start = time.perf_counter()
        end = start + seconds
        with ThreadPoolExecutor(CLIENTS) as pool:
            done = sum(pool.map(loop, range(CLIENTS)))
        return done * BATCH / (time.perf_counter() - start)

    def in_process(seconds: float) -> float:
        done, start = 0, time.perf_counter()
        while time.perf_counter() - start < seconds:
            endpoint(requests[done % len(requests)])
            done += 1
        return done * BATCH / (time.perf_counter() - start)

    ways: dict[str, Callable[[float], float]] = {"in process": in_process, "Triton": through_triton}
    rates: dict[str, list[float]] = {name: [] for name in ways}
    for turn in range(TURNS):
        for name in ways if turn % 2 == 0 else reversed(ways):
            rates[name].append(ways[name](SECONDS))
    own, served = (statistics.median(rates[name]) for name in ways)
    print(f"{label}: in process {own:,.0f} images/s, Triton {served:,.0f}, ratio {served / own:.2f}; bar {BAR}: "
          f"{'met' if served >= BAR * own else 'missed'}", flush=True)  # fmt: skip


if __name__ == "__main__":
    main()
