# SPDX-License-Identifier: Apache-2.0
"""Exported models in a real Triton server on this machine: `make test-triton`."""

from __future__ import annotations

import io
import os
import subprocess
import sys
import sysconfig
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import tritonclient.http as client
from PIL import Image

from stoker import fn, pipeline_def, types
from stoker.serve import Endpoint
from stoker.triton import export
from tests.photographs import write_photographs
from tests.serve.pytriton_server import classify
from tests.serve.triton_process import free_port, running

ROOT = Path(__file__).resolve().parents[2]
pytestmark = pytest.mark.leaks("the client keeps connections")


@pipeline_def(batch_size=4, num_threads=1, device_id=None)
def scale() -> Any:
    """Return a matrix times a number, whatever its shape."""
    x = fn.external_source(name="x", dtype=types.FLOAT, ndim=2)
    return x * fn.external_source(name="factor", dtype=types.FLOAT, ndim=0)


@pytest.fixture(scope="module")
def contents(tmp_path_factory: pytest.TempPathFactory) -> list[bytes]:
    folder = write_photographs(tmp_path_factory.mktemp("photographs"), per_class=8)
    return [path.read_bytes() for path in sorted(folder.rglob("*.jpg"))]


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """Yield the address of a server with both models."""
    folder = tmp_path_factory.mktemp("triton")
    for pipe, name, outputs in ((classify(), "classify", ["x", "shape"]), (scale(), "scale", None)):
        with pipe:
            export(pipe, folder / "models", name, outputs, max_queue_delay_us=20_000)
    with running(folder) as address:
        yield address


def ask(address: str, model: str, **arrays: Any) -> dict[str, Any]:
    """Send one request and return its outputs."""
    with client.InferenceServerClient(address, network_timeout=60) as connection:
        inputs = []
        for name, array in arrays.items():
            kind = "BYTES" if array.dtype == object else "FP32"
            inputs.append(client.InferInput(name, list(array.shape), kind))
            inputs[-1].set_data_from_numpy(array)
        answer = connection.infer(model, inputs)
        return {o["name"]: answer.as_numpy(o["name"]) for o in answer.get_response()["outputs"]}


def as_request(*contents: bytes) -> Any:
    return np.array([[c] for c in contents], dtype=object)


def test_answers_are_those_of_the_endpoint(server: str, contents: list[bytes]) -> None:
    with Endpoint(classify(), ["x", "shape"]) as endpoint:
        want = endpoint(contents[:6])
    for number, content in enumerate(contents[:6]):
        got = ask(server, "classify", image=as_request(content))
        np.testing.assert_array_equal(got["x"][0], want[number]["x"])
        np.testing.assert_array_equal(got["shape"][0], want[number]["shape"])
    got = ask(server, "classify", image=as_request(*contents[:6]))  # one request of six rows
    np.testing.assert_array_equal(got["x"], [w["x"] for w in want])


def test_a_damaged_request_fails_alone(server: str, contents: list[bytes]) -> None:
    """Requests of unlike lengths arrive at the same time, and one is no image."""
    png = io.BytesIO()
    Image.open(io.BytesIO(contents[0])).save(png, "PNG")
    requests = [*contents[:5], b"not an image", png.getvalue()]
    with Endpoint(classify(), ["x", "shape"]) as endpoint:
        want = endpoint(requests)

    def send(content: bytes) -> Any:
        try:
            return ask(server, "classify", image=as_request(content))
        except client.InferenceServerException as error:
            return error

    with ThreadPoolExecutor(7) as pool:
        for _ in range(3):
            for number, got in enumerate(pool.map(send, requests)):
                if number == 5:
                    assert "expected an image" in str(got)
                else:
                    np.testing.assert_array_equal(got["x"][0], want[number]["x"])


def test_arrays_and_numbers(server: str) -> None:
    x = np.arange(6, dtype=np.float32).reshape(1, 2, 3)
    got = ask(server, "scale", x=x, factor=np.array([[2.5]], np.float32))
    np.testing.assert_array_equal(got["output_0"], x * 2.5)


def test_the_damage_of_one_row_is_the_requests(server: str, contents: list[bytes]) -> None:
    with pytest.raises(client.InferenceServerException, match="expected an image"):
        ask(server, "classify", image=as_request(contents[0], b"bad"))


def test_pytriton(contents: list[bytes]) -> None:
    http, grpc = free_port(), free_port()
    process = subprocess.Popen(
        [sys.executable, "-m", "tests.serve.pytriton_server", str(http), str(grpc)],
        cwd=ROOT, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True,
        env={**os.environ, "LD_LIBRARY_PATH": str(sysconfig.get_config_var("LIBDIR"))},
    )  # fmt: skip
    assert process.stdin is not None and process.stdout is not None
    try:
        assert any("ready" in line for line in process.stdout)
        with Endpoint(classify(), ["x", "shape"]) as endpoint:
            want = endpoint(contents[:4])
        got = ask(f"127.0.0.1:{http}", "classify", image=as_request(*contents[:4]))
        np.testing.assert_array_equal(got["output_0"], [w["x"] for w in want])
        np.testing.assert_array_equal(got["output_1"], [w["shape"] for w in want])
        with pytest.raises(client.InferenceServerException, match="expected an image"):
            ask(f"127.0.0.1:{http}", "classify", image=as_request(b"bad"))
    finally:
        process.stdin.close()
        process.wait(timeout=120)
        process.stdout.close()
