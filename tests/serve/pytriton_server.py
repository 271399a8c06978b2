# SPDX-License-Identifier: Apache-2.0
"""Server of one model by PyTriton, until its input ends: the program of a test. PyTriton needs a process of its own."""

from __future__ import annotations

import sys
from typing import Any

from pytriton.triton import Triton, TritonConfig

from stoker import fn, pipeline_def, types
from stoker.serve import Endpoint
from stoker.triton import bind


@pipeline_def(batch_size=8, num_threads=2, device_id=None, seed=3)
def classify() -> Any:
    """Return float32 CHW and the shape of an image file."""
    images = fn.decoders.image(fn.external_source(name="image", dtype=types.UINT8, ndim=1), max_pixels=10_000_000)
    return fn.crop_mirror_normalize(fn.resize(images, size=(24, 32)), mean=[127.5], std=[64.0]), fn.shapes(images)


def main(http: int, grpc: int) -> None:
    """Serve on these ports of this machine."""
    config = TritonConfig(
        http_address="127.0.0.1", http_port=http, grpc_address="127.0.0.1", grpc_port=grpc, allow_metrics=False
    )
    with Triton(config=config) as triton, Endpoint(classify()) as endpoint:
        bind(triton, "classify", endpoint)
        triton.run()
        print("ready", flush=True)
        sys.stdin.read()


if __name__ == "__main__":
    main(int(sys.argv[1]), int(sys.argv[2]))
