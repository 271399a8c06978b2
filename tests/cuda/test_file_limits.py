# SPDX-License-Identifier: Apache-2.0
"""Limits on files and batches hold where a GPU decodes, too: on the emulated GPU, with an index, with a CPU share."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import emulated_stages
import pytest
from PIL import Image

from stoker import DataError, Pipeline, fn, pipeline_def
from stoker.device.gpu import Gpu
from tests.hostile_images import claiming_jpeg, with_scans
from tests.run.pipelines import files_of, labels_of

WAYS: dict[str, dict[str, Any]] = {
    "gpu": {"gpu_decoder_load": 1.0}, "cpu": {"gpu_decoder_load": 0.0}, "index": {"gpu_jpeg_index": 1 << 20},
}  # fmt: skip


@pipeline_def(batch_size=8, num_threads=2, seed=1, error_limit=1, device_id=0)
def decoding(files: list[str]) -> Any:
    data, labels = fn.readers.file(files=files, labels=list(range(len(files))))
    return fn.decoders.image(data, device="mixed"), labels


HOSTILE = {
    "pixels": (claiming_jpeg(65500, 65500), "65500 x 65500"),
    "scans": (with_scans(600, 1024), "600 .*`max_scan_pixels`"),
}


@pytest.mark.parametrize("kind", HOSTILE)
@pytest.mark.parametrize("way", WAYS)
def test_hostile_files_are_bad_rows(way: str, kind: str, emulated_gpu: None, jpegs: Path, tmp_path: Path) -> None:
    hostile = tmp_path / "hostile.jpg"
    data, text = HOSTILE[kind]
    hostile.write_bytes(data)
    files = [name for good in files_of(jpegs)[:4] for name in (good, str(hostile))]
    with decoding(files, on_error="skip", **WAYS[way]) as pipe:
        for _ in range(2):
            assert labels_of([x.as_cpu() for x in pipe.run()]) == [0, 2, 4, 6]
        assert {e.path for e in pipe.errors} == {str(hostile)}
    with decoding(files, **WAYS[way]) as pipe, pytest.raises(DataError, match=r"hostile\.jpg.*") as raised:
        pipe.run()
    assert raised.match(text)


# ---- memory of a batch ----

SIDES = (50, 500, 100, 120)  # of images of 8, 750, 30 and 43 kB


@pytest.fixture
def idle_gpu(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Make pipelines open a GPU whose kernels do nothing."""

    def opened(number: int, memory_limit: int | None = None) -> emulated_stages.IdleGpu:
        return emulated_stages.IdleGpu(folder)

    monkeypatch.setattr(Gpu, "open", staticmethod(opened))


def sides(tmp_path: Path) -> list[str]:
    for side in SIDES:
        Image.new("RGB", (side, side), (1, 2, 3)).save(tmp_path / f"{side}.jpg")
    return [str(tmp_path / f"{side}.jpg") for side in SIDES]


@pipeline_def(batch_size=4, num_threads=2, seed=1, error_limit=1, device_id=0)
def outputs(files: list[str]) -> Any:
    """Images in GPU memory."""
    data, labels = fn.readers.file(files=files, labels=list(range(len(files))))
    return fn.decoders.image(data, device="mixed"), labels


@pipeline_def(batch_size=4, num_threads=2, seed=1, error_limit=1, device_id=0)
def intermediate(files: list[str]) -> Any:
    """Images that are no outputs, in GPU memory."""
    data, labels = fn.readers.file(files=files, labels=list(range(len(files))))
    images = fn.decoders.image(data, device="mixed")
    return fn.flip(fn.gaussian_blur(images, window_size=3), horizontal=1)[:2, :2], labels


@pipeline_def(batch_size=4, num_threads=2, seed=1, error_limit=1, device_id=0)
def uploaded(files: list[str]) -> Any:
    """Images that the CPU decodes and a GPU resizes."""
    data, labels = fn.readers.file(files=files, labels=list(range(len(files))))
    return fn.resize(fn.decoders.image(data), device="gpu", size=(4, 4)), labels


CHAINS = {"outputs": outputs, "intermediate": intermediate, "uploaded": uploaded}
LOADS = {"on the GPU": 1.0, "on the CPU": 0.0}


@pytest.mark.parametrize("load", LOADS.values(), ids=LOADS)
@pytest.mark.parametrize("chain", CHAINS.values(), ids=CHAINS)
def test_memory_of_a_batch_is_limited_on_the_gpu(chain: Any, load: float, idle_gpu: None, tmp_path: Path) -> None:
    def made(limit: int, **settings: Any) -> Pipeline:
        pipe: Pipeline = chain(sides(tmp_path), max_batch_bytes=limit, gpu_decoder_load=load, **settings)
        return pipe

    with made(0) as pipe:
        assert len(pipe.run()[0]) == 4
    with made(650_000, on_error="skip") as pipe:
        for _ in range(2):
            assert labels_of([x.as_cpu() for x in pipe.run()]) == [0, 2, 3]
        assert Path(pipe.errors[0].path).stem == "500"
        assert "for this row alone" in pipe.errors[0].reason


@pytest.mark.parametrize("load", LOADS.values(), ids=LOADS)
def test_a_batch_on_the_gpu_names_its_largest_row(load: float, idle_gpu: None, tmp_path: Path) -> None:
    limit = 800_000 if load else 1_550_000  # with the pixels that the CPU makes and sends
    text = r"GPU memory for a batch \(`max_batch_bytes`\), got .*for this row — sample 1 \(.*500\.jpg\) in a batch of 4"
    with outputs(sides(tmp_path), max_batch_bytes=limit, gpu_decoder_load=load, on_error="skip") as pipe:
        for _ in range(2):
            with pytest.raises(DataError, match=text):
                pipe.run()


def test_the_default_on_a_gpu_is_what_is_free(idle_gpu: None, tmp_path: Path) -> None:
    with outputs(sides(tmp_path)) as pipe:
        pipe.run()
        run = pipe.execution.run
        assert run is not None and pipe.execution.gpu is not None
        assert run.limits.device >= 256 << 20
    with outputs(sides(tmp_path), gpu_memory_limit=1 << 30) as pipe:
        pipe.run()
        run = pipe.execution.run
        assert run is not None and run.limits.device == 0
