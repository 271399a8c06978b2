# SPDX-License-Identifier: Apache-2.0
"""Ray Serve as the guide on servers has it, on one node in a network of its own: `make test-ray`."""

from __future__ import annotations

import json
import urllib.error
import urllib.request
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest
import ray
from ray import serve

from tests.run.pipelines import files_of
from tests.serve.guide import blocks_for

WAIT_S = 100.0
pytestmark = pytest.mark.leaks("Ray's threads and files outlive the tests")


def test_ray_serve_as_in_the_guide(jpegs: Path) -> None:
    names: dict[str, Any] = {"__name__": "__main__"}
    exec(compile("\n".join(blocks_for("ray")), "servers.md", "exec"), names)
    contents = [Path(file).read_bytes() for file in files_of(jpegs)[:12]]
    endpoint = names["Endpoint"](names["preprocess"]())
    want = [float(image.mean()) for image in endpoint(contents)]
    endpoint.close()
    ray.init("local", num_cpus=2, include_dashboard=False, log_to_driver=False)
    serve.start(http_options={"host": "127.0.0.1", "port": 18123})
    try:
        serve.run(names["ray_app"])

        def send(content: bytes) -> tuple[int, Any]:
            request = urllib.request.Request("http://127.0.0.1:18123/", data=content)
            try:
                with urllib.request.urlopen(request, timeout=WAIT_S) as answer:
                    return answer.status, json.load(answer)
            except urllib.error.HTTPError as error:
                with error:
                    return error.code, json.load(error)

        with ThreadPoolExecutor(6) as pool:
            answers = list(pool.map(send, [*contents, b"not an image"]))
    finally:
        serve.shutdown()
        ray.shutdown()
    assert answers[:-1] == [(200, {"mean": mean}) for mean in want]
    assert answers[-1][0] == 422 and "expected an image" in answers[-1][1]["error"]
