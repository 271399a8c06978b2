# SPDX-License-Identifier: Apache-2.0
"""``stoker.serve.Endpoint``: results and errors per request, threads, batches of unlike requests."""

from __future__ import annotations

import io
import threading
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from types import MappingProxyType
from typing import Any

import numpy as np
import pytest
from idle_clock import HANG_S
from PIL import Image
from run.pipelines import files_of

from stoker import ArgumentError, DataError, StateError, UnsupportedError, fn, pipeline_def, types
from stoker.serve import Endpoint


@pipeline_def(batch_size=8, num_threads=2, device_id=None, seed=3)
def classify(limit: int = 20_000_000) -> Any:
    """Return float32 CHW and the shape of an image file."""
    files = fn.external_source(name="image", dtype=types.UINT8, ndim=1)
    images = fn.decoders.image(files, max_pixels=limit)
    small = fn.resize(images, size=(24, 32))
    return fn.crop_mirror_normalize(small, mean=[127.5], std=[64.0]), fn.shapes(images)


@pytest.fixture(scope="module")
def contents(jpegs: Path) -> list[bytes]:
    return [Path(f).read_bytes() for f in files_of(jpegs)[:20]]


def test_results_are_those_of_the_pipeline(contents: list[bytes]) -> None:
    with Endpoint(classify(), ["x", "shape"]) as endpoint, classify(batch_size=20) as pipe:
        (x, shape) = pipe.run(image=contents)
        for count in (0, 1, 3, 8, 20):  # 20 are three batches
            results = endpoint(contents[:count])
            assert len(results) == count
            for i, result in enumerate(results):
                np.testing.assert_array_equal(result["x"], x[i])
                np.testing.assert_array_equal(result["shape"], shape[i])


def test_every_form_of_a_request_has_the_same_result(contents: list[bytes]) -> None:
    content = contents[0]
    forms = [content, {"image": content}, MappingProxyType({"image": content}), {"image": bytearray(content)},
             {"image": np.frombuffer(content, np.uint8)}, np.frombuffer(content, np.uint8)]  # fmt: skip
    with Endpoint(classify()) as endpoint:
        (want, shape), *results = endpoint(forms)
        for x, other in results:
            np.testing.assert_array_equal(x, want)
            np.testing.assert_array_equal(other, shape)
        errors = endpoint([b"", {"image": b""}, {"image": np.zeros(0, np.uint8)}])
        assert all(isinstance(e, DataError) for e in errors), errors


def test_a_damaged_request_fails_alone(contents: list[bytes]) -> None:
    bad = [b"not an image", contents[0][:200], b"", "text", None, np.zeros((2, 2), np.uint8), {"imag": b""}, {}]
    with Endpoint(classify()) as endpoint:
        good = endpoint(contents[:4])
        for one in bad:
            (error,) = endpoint([one])
            assert isinstance(error, (DataError, ArgumentError)), one
        results = endpoint([contents[0], *bad, *contents[1:4]])
        assert all(isinstance(r, (DataError, ArgumentError)) for r in results[1:-3])
        for got, want in zip([results[0], *results[-3:]], good, strict=True):
            np.testing.assert_array_equal(got[0], want[0])
        assert "did you mean `image`" in str(results[7]) and "expected a value for 'image'" in str(results[8])


def test_requests_that_exceed_the_memory_of_a_batch_together_are_computed_alone() -> None:
    content = io.BytesIO()
    Image.new("RGB", (1500, 1000)).save(content, "JPEG")
    with Endpoint(classify(max_batch_bytes=24_000_000)) as endpoint:
        results = endpoint([content.getvalue()] * 8)
        assert all(isinstance(r, tuple) for r in results)


def test_several_threads_call_an_endpoint(contents: list[bytes]) -> None:
    png = io.BytesIO()
    Image.open(io.BytesIO(contents[0])).save(png, "PNG")  # decoded in Python
    requests = [*contents, png.getvalue(), b"bad"]
    with Endpoint(classify()) as endpoint:
        want = endpoint(requests)
        start = threading.Barrier(4, timeout=HANG_S)

        def client(seed: int) -> int:
            rng = np.random.default_rng(seed)
            start.wait()
            for _ in range(25):
                chosen = rng.integers(0, len(requests), int(rng.integers(1, 7)))
                for number, result in zip(chosen, endpoint([requests[i] for i in chosen]), strict=True):
                    if isinstance(want[number], tuple):
                        np.testing.assert_array_equal(result[0], want[number][0])
                    else:
                        assert isinstance(result, DataError)
            return 1

        with ThreadPoolExecutor(4) as pool:
            assert sum(pool.map(client, range(4))) == 4


def test_functions_in_python_run_one_batch_at_a_time() -> None:
    inside, most = [0], [0]

    def add(x: Any) -> Any:
        inside[0] += 1
        most[0] = max(most[0], inside[0])
        result = x + 1
        inside[0] -= 1
        return result

    @pipeline_def(batch_size=4, num_threads=1, device_id=None)
    def counted() -> Any:
        x = fn.external_source(name="x", dtype=types.FLOAT, ndim=1)
        return fn.python_function(x, function=add, output_dtypes=[types.FLOAT], output_ndims=[1])

    with Endpoint(counted()) as endpoint, ThreadPoolExecutor(4) as pool:
        values = [np.full(3, i, np.float32) for i in range(40)]
        for value, (result,) in zip(values, pool.map(lambda v: endpoint([v]), values), strict=True):
            np.testing.assert_array_equal(result, value + 1)
    assert most[0] == 1


def test_random_results_depend_on_the_request_alone(contents: list[bytes]) -> None:
    @pipeline_def(batch_size=8, num_threads=2, device_id=None, seed=3)
    def crops() -> Any:
        images = fn.decoders.image(fn.external_source(name="image", dtype=types.UINT8, ndim=1))
        return fn.random_resized_crop(images, size=(8, 8))

    with Endpoint(crops()) as endpoint:
        (alone,) = endpoint([contents[3]])
        np.testing.assert_array_equal(endpoint(contents[:6])[3], alone)


def test_descriptions() -> None:
    with Endpoint(classify(), ["x", "shape"]) as endpoint:
        assert endpoint.inputs == [("image", types.UINT8, (None,))]
        assert endpoint.outputs == [("x", types.FLOAT, (3, 24, 32)), ("shape", types.INT64, (3,))]
        assert "image -> x, shape" in repr(endpoint)


@pytest.mark.parametrize(
    ("name", "error", "text"),
    [
        ("reader", ArgumentError, "sources that requests feed"),
        ("callback", ArgumentError, "sources that requests feed"),
        ("nameless", ArgumentError, "sources that requests feed"),
        ("untyped", ArgumentError, "before the first request"),
        ("batch", UnsupportedError, "rows depend on each other"),
        ("statistics", UnsupportedError, "rows depend on each other"),
        ("constant", ArgumentError, "without input"),
    ],
)
def test_pipelines_that_are_no_function_of_requests(name: str, error: Any, text: str, jpegs: Path) -> None:
    @pipeline_def(batch_size=2, num_threads=1, device_id=None)
    def odd() -> Any:
        if name == "reader":
            return fn.readers.file(file_root=str(jpegs))[0]
        if name == "callback":
            return fn.external_source(source=lambda: [np.zeros(1)], name="x", dtype=types.FLOAT64, ndim=1)
        if name == "constant":
            return fn.random.uniform(range=(0, 1))
        declared = {} if name == "untyped" else {"dtype": types.FLOAT, "ndim": 1}
        x = fn.external_source(**declared, **({} if name == "nameless" else {"name": "x"}))
        if name == "statistics":
            return fn.normalize(x, batch=True)
        return fn.permute_batch(x, indices=[1, 0]) if name == "batch" else x

    with odd() as pipe, pytest.raises(error, match=text):
        Endpoint(pipe)


@pytest.mark.parametrize("arguments", [("x",), (["x"],), (["x", "x"],), ([1, 2],)])
def test_wrong_names(arguments: Any) -> None:
    with classify() as pipe, pytest.raises(ArgumentError, match="output_map"):
        Endpoint(pipe, *arguments)


def test_wrong_calls(contents: list[bytes]) -> None:
    with pytest.raises(ArgumentError, match="expected a Pipeline"):
        Endpoint(classify)  # type: ignore[arg-type]
    with Endpoint(classify()) as endpoint:
        for requests in (contents[0], {"image": contents[0]}, None):
            with pytest.raises(ArgumentError, match="list of requests"):
                endpoint(requests)
    with pytest.raises(StateError, match="closed"):
        endpoint([contents[0]])
