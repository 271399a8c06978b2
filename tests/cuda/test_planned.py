# SPDX-License-Identifier: Apache-2.0
"""Plans of whole chains on a GPU, as text snapshots. Review each change."""

from __future__ import annotations

import os
import re
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from stoker import fn, pipeline_def, types
from stoker.device.gpu import Gpu
from stoker.native import _native

SNAPSHOTS = Path(__file__).parent / "snapshots"


class Blank(Gpu):
    """Null device whose kernels do nothing."""

    def compiled(self, source: str) -> bytes:
        return b""


@pytest.fixture(autouse=True)
def null_gpu(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(Gpu, "open", staticmethod(lambda number, limit=None: Blank(_native.gpu.open_null(), 1 << 30)))


@pytest.fixture
def files(tmp_path: Path) -> list[str]:
    (tmp_path / "a.jpg").write_bytes(b"")  # no data are read
    return [str(tmp_path / "a.jpg")]


def training(files: list[str]) -> Any:
    data, labels = fn.readers.file(files=files)
    images = fn.decoders.image_random_crop(data, device="mixed")
    images = fn.resize(images, resize_x=224, resize_y=224)
    mean, std = [123.0, 117.0, 104.0], [58.0, 57.0, 57.0]
    images = fn.crop_mirror_normalize(images, mirror=fn.random.coin_flip(), mean=mean, std=std, dtype=types.FLOAT16)
    return images, labels.gpu()


def augmentation(files: list[str]) -> Any:
    """Augment arrays that are on the GPU: one stage each, except steps that need whole images."""
    x = fn.external_source(source=lambda: np.zeros((2, 9, 9, 3), np.uint8), device="gpu", layout="HWC", dtype="uint8",
                           ndim=3)  # fmt: skip
    x = fn.resize(fn.flip(x, horizontal=fn.random.coin_flip()), size=(32, 24))
    x = fn.brightness(x, brightness=fn.random.uniform(range=(0.5, 1.5)))
    return fn.equalize(x), fn.reductions.mean(x, axis_names="HW", dtype=types.BFLOAT16)


CHAINS = {
    "training": (training, {}),
    "training_of_known_files": (training, {"gpu_jpeg_index": 1 << 20}),
    "augmentation": (augmentation, {}),
}


@pytest.mark.parametrize("name", CHAINS)
def test_plans_equal_their_snapshots(name: str, files: list[str]) -> None:
    chain, settings = CHAINS[name]

    @pipeline_def(batch_size=2, num_threads=1, seed=1, device_id=0, **settings)
    def graph() -> Any:
        return chain(files)

    with graph() as pipe:
        text = pipe.show()
    plan = text[text.index("\nplan\n") + 1 :]
    plan = re.sub(r"<(\w+) \d+>", r"<\1>", plan)  # objects and their addresses
    path = SNAPSHOTS / f"{name}.txt"
    if os.environ.get("STOKER_SNAPSHOTS") == "write":
        path.write_text(plan)
    assert plan == path.read_text(), f"STOKER_SNAPSHOTS=write renews {path}"


def test_steps_that_fall_back_to_the_cpu_are_shown_on_the_cpu(files: list[str]) -> None:
    @pipeline_def(batch_size=2, num_threads=1, seed=1)
    def graph() -> Any:
        return training(files)

    with graph(device_id=0) as on_gpu, graph(device_id=None, without_gpu="cpu") as on_cpu:
        assert on_gpu.show().count(" on the GPU\n") >= 2
        assert " on the GPU" not in on_cpu.show()
