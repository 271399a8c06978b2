# SPDX-License-Identifier: Apache-2.0
"""Pipelines on a GPU: the CPU's bits for all kinds of files, delivery to frameworks, memory, stopping."""

from __future__ import annotations

import gc
import io
import os
import time
from itertools import cycle, islice
from pathlib import Path
from typing import Any

import jpeg_writer as jw
import numpy as np
import pytest
import torch
from PIL import Image

from stoker import DataError, fn, pipeline_def, types
from stoker.torch import Loader
from tests.run.pipelines import files_of

SOAK = int(os.environ.get("STOKER_GPU_SOAK", "2000"))


@pipeline_def(batch_size=16, num_threads=4, seed=3)
def training(files: list[str], device: str, size: int = 48) -> Any:
    where = "mixed" if device == "gpu" else "cpu"
    data, labels = fn.readers.file(files=files, random_shuffle=True, name="Reader")
    images = fn.decoders.image_random_crop(data, device=where)
    images = fn.resize(images, resize_x=size, resize_y=size)
    images = fn.crop_mirror_normalize(
        images, mirror=fn.random.coin_flip(), mean=[120.0], std=[60.0], dtype=types.FLOAT16
    )
    return images, labels


@pipeline_def(batch_size=8, num_threads=4)
def decoding(files: list[str], device: str, output_type: Any = types.RGB) -> Any:
    data, labels = fn.readers.file(files=files)
    return fn.decoders.image(data, device="mixed" if device == "gpu" else "cpu", output_type=output_type), labels


def on_gpu(make: Any, *args: Any, **settings: Any) -> Any:
    return make(*args, device="gpu", device_id=0, **settings)


def decoders(pipe: Any) -> list[Any]:
    return list(pipe.execution.decoders)


def equal(a: Any, b: Any) -> None:
    for x, y in zip(a.as_cpu(), b.as_cpu(), strict=True):
        np.testing.assert_array_equal(x, y)


@pytest.mark.parametrize("settings", [{}, {"exec_async": False}, {"prefetch_queue_depth": 4, "num_threads": 2}])
def test_training_gives_the_cpus_bits(images: Path, settings: dict[str, Any]) -> None:
    files = [f for f in files_of(images) if f.lower().endswith((".jpg", ".jpeg"))]
    with on_gpu(training, files, **settings) as gpu, training(files, "cpu") as cpu:
        for _ in range(2 * len(files) // 16 + 1):
            (a, labels), (b, wanted) = gpu.run(), cpu.run()
            assert (a.device, labels.device) == ("gpu", "cpu")
            equal(a, b)
            equal(labels, wanted)


@pytest.mark.parametrize("output_type", [types.RGB, types.BGR, types.GRAY, types.YCbCr, types.ANY_DATA])
def test_decoding_gives_the_cpus_bits(images: Path, output_type: Any) -> None:
    files = files_of(images)
    with on_gpu(decoding, files, output_type=output_type) as gpu, decoding(files, "cpu", output_type) as cpu:
        for _ in range(-(-len(files) // 8)):
            equal(gpu.run()[0], cpu.run()[0])
        assert sum(d.rows_on_gpu for d in decoders(gpu)) > len(files) / 2


def encode(pixels: np.ndarray, form: str, **options: Any) -> bytes:
    out = io.BytesIO()
    Image.fromarray(pixels).save(out, form, **options)
    return out.getvalue()


def test_rows_that_the_gpu_leaves_to_the_cpu(tmp_path: Path) -> None:
    rng = np.random.default_rng(1)
    pixels = np.kron(rng.integers(0, 256, (9, 11, 3), np.uint8), np.ones((8, 8, 1), np.uint8))
    good = encode(pixels, "JPEG", quality=90)
    contents = {
        "plain.jpg": good,
        "progressive.jpg": encode(pixels, "JPEG", progressive=True),
        "image.png": encode(pixels, "PNG"),
        "restarts.jpg": encode(pixels, "JPEG", restart_marker_rows=1),
        "ends.jpg": good[: len(good) - 40] + b"\xff\xd9",
        "gray.jpg": encode(pixels[..., 0], "JPEG"),
    }
    for name, content in contents.items():
        (tmp_path / name).write_bytes(content)
    files = [str(tmp_path / name) for name in contents]
    with on_gpu(decoding, files, gpu_decoder_load=1.0) as gpu, decoding(files, "cpu") as cpu:
        equal(gpu.run()[0], cpu.run()[0])
        (decoder,) = decoders(gpu)
        assert decoder.rows_on_cpu >= 2
        assert {"not a JPEG file", "the GPU gave it up"} <= set(decoder.reasons), decoder.reasons


@pytest.mark.parametrize("share", [0.0, 0.3, 1.0])
def test_the_split_changes_no_bit(images: Path, share: float) -> None:
    files = [f for f in files_of(images) if f.lower().endswith((".jpg", ".jpeg"))]
    with on_gpu(training, files, gpu_decoder_load=1 - share) as gpu, training(files, "cpu") as cpu:
        for _ in range(4):
            equal(gpu.run()[0], cpu.run()[0])
        (decoder,) = decoders(gpu)
        assert (decoder.rows_on_cpu > 0) == (share > 0)
        assert (decoder.rows_on_gpu > 0) == (share < 1)


def test_damaged_files(images: Path, tmp_path: Path) -> None:
    rng = np.random.default_rng(4)
    sources = [f for f in files_of(images) if f.lower().endswith((".jpg", ".jpeg"))][:16]
    files = []
    for i in range(96):
        data = bytearray(Path(sources[i % len(sources)]).read_bytes())
        for at in rng.integers(len(data) // 3, len(data), int(rng.integers(1, 8))):
            data[at] = int(rng.integers(0, 256))
        if i % 4 == 0:
            del data[int(rng.integers(len(data) // 2, len(data))) :]
        files.append(str(tmp_path / f"{i:03}.jpg"))
        Path(files[-1]).write_bytes(data)
    results: list[list[Any]] = []
    for device in ("gpu", "cpu"):
        found: list[Any] = []
        with decoding(files, device, batch_size=1, device_id=0, gpu_decoder_load=1.0) as pipe:
            for _ in files:
                try:
                    found.append(pipe.run()[0].as_cpu()[0])
                except DataError as error:
                    found.append(str(error).split("made at")[0])
            if device == "gpu":
                (decoder,) = decoders(pipe)
                assert decoder.rows_on_gpu > 0, "it finds no damage in some of them"
        results.append(found)
    for i, (a, b) in enumerate(zip(*results, strict=True)):
        if isinstance(a, str) or isinstance(b, str):
            assert a == b, f"file {i}"
        else:
            np.testing.assert_array_equal(a, b, err_msg=f"file {i}")


def test_files_that_are_slow_on_purpose(tmp_path: Path) -> None:
    """The GPU gives them up within their budget: no hang, the CPU's pixels, and unaffected neighbours."""
    rng = np.random.default_rng(41)
    files = []
    for i in range(16):
        if i % 4 == 1:
            data = jw.unsynchronised(rng, 320, 408)
        else:
            out = io.BytesIO()
            Image.fromarray(rng.integers(0, 256, (90, 120, 3), np.uint8)).save(out, "JPEG")
            data = out.getvalue()
        files.append(str(tmp_path / f"{i:02}.jpg"))
        Path(files[-1]).write_bytes(data)
    began = time.monotonic()
    with on_gpu(decoding, files, gpu_decoder_load=1.0) as gpu, decoding(files, "cpu") as cpu:
        for _ in range(4):
            equal(gpu.run()[0], cpu.run()[0])
        (decoder,) = decoders(gpu)
        print(f"\n{gpu.report().decoding}")
        assert decoder.rows_on_cpu >= 8 and decoder.rows_on_gpu >= 24
    assert time.monotonic() - began < 60


def test_an_error_is_that_of_the_cpu(images: Path, tmp_path: Path) -> None:
    bad = tmp_path / "bad.jpg"
    bad.write_bytes(b"\xff\xd8\xff\xe0 no image")
    files = [*files_of(images)[:3], str(bad), *files_of(images)[3:12]]
    with on_gpu(decoding, files, batch_size=4) as gpu:
        with pytest.raises(DataError, match=r"bad\.jpg"):
            gpu.run()
        assert len(gpu.run()[0]) == 4, "the pipeline stays usable"


# ---- frameworks ----


INDEX = {"gpu_jpeg_index": 1 << 24, "gpu_decoder_load": 1.0, "exec_pipelined": False}


def test_later_epochs_read_in_part(images: Path, tmp_path: Path) -> None:
    """Also for files that change between epochs, and in the first epoch of a pipeline with an index on disk."""
    paths = []
    for i, file in enumerate(f for f in files_of(images)[:64] if f.lower().endswith((".jpg", ".jpeg"))):
        paths.append(str(tmp_path / f"{i}.jpg"))
        Path(paths[-1]).write_bytes(Path(file).read_bytes())
    epoch = -(-len(paths) // 16)
    options = {**INDEX, "gpu_jpeg_index_path": tmp_path / "index"}
    with on_gpu(training, paths, **options) as gpu, training(paths, "cpu", exec_pipelined=False) as cpu:
        for n in range(4 * epoch):
            if n == 2 * epoch:
                Path(paths[0]).write_bytes(Path(paths[1]).read_bytes())
            equal(gpu.run()[0], cpu.run()[0])
        known = gpu.report().codecs["jpeg"].known
    assert known.parts > len(paths) and known.wrong <= 1
    with on_gpu(training, paths, **options) as gpu, training(paths, "cpu", exec_pipelined=False) as cpu:
        for _ in range(epoch):
            equal(gpu.run()[0], cpu.run()[0])
        assert gpu.report().codecs["jpeg"].known.parts > len(paths) // 2


def test_torch_gets_tensors_on_the_gpu(images: Path) -> None:
    files = [f for f in files_of(images) if f.lower().endswith((".jpg", ".jpeg"))]
    gpu, cpu = Loader(on_gpu(training, files)), Loader(training(files, "cpu"))
    try:
        count = 0
        for (x, y), (want, label) in zip(gpu, cpu, strict=True):
            assert x.device == torch.device("cuda", 0)
            assert torch.equal(x.cpu(), want)
            assert torch.equal(y, label)
            count += 1
        assert count == len(gpu)
    finally:
        gpu.close()
        cpu.close()


def test_a_batch_is_shared_without_a_copy(images: Path) -> None:
    files = [f for f in files_of(images) if f.lower().endswith((".jpg", ".jpeg"))]
    with on_gpu(training, files) as pipe:
        batch = pipe.run()[0]
        tensor = torch.from_dlpack(batch)
        again = torch.as_tensor(batch, device="cuda")
        assert tensor.data_ptr() == again.data_ptr()
        np.testing.assert_array_equal(tensor.cpu().numpy(), batch.as_cpu().as_array())


@pytest.mark.parametrize("background", [False, True])
def test_outputs_are_not_overwritten(images: Path, background: bool) -> None:
    """Batches that the consumer keeps or reads late on a slow stream are not overwritten."""
    found = [f for f in files_of(images) if f.lower().endswith((".jpg", ".jpeg"))]
    # An epoch of 12 whole batches, for any number of files: a loader ends its epoch with a smaller batch.
    files = list(islice(cycle(found), 12 * 16))
    with training(files, "cpu") as cpu:
        want = [cpu.run()[0].as_array() for _ in range(12)]
    weight = torch.randn(4096, 4096, device="cuda")
    side = torch.cuda.Stream()
    with on_gpu(training, files, prefetch_queue_depth=3) as pipe:
        tensors = [torch.from_dlpack(pipe.run()[0]) for _ in range(12)]
        for tensor, expected in zip(tensors, want, strict=True):
            np.testing.assert_array_equal(tensor.cpu().numpy(), expected)
    loader = Loader(on_gpu(training, files, prefetch_queue_depth=3), background=background)
    copies = []
    with torch.cuda.stream(side):
        for x, _ in loader:
            for _ in range(20):
                weight = weight @ weight * 1e-4  # the copy below waits for this
            copies.append(x.clone())
            del x
    side.synchronize()
    loader.close()
    for tensor, expected in zip(copies, want, strict=True):
        np.testing.assert_array_equal(tensor.cpu().numpy(), expected)


# ---- memory, lifetime ----


def test_two_pipelines_in_one_process(images: Path) -> None:
    files = [f for f in files_of(images) if f.lower().endswith((".jpg", ".jpeg"))]
    with on_gpu(training, files) as a, on_gpu(training, files, seed=4) as b, training(files, "cpu") as c:
        for _ in range(5):
            x, y, z = a.run()[0], b.run()[0], c.run()[0]
            equal(x, z)
            assert not np.array_equal(y.as_cpu().as_array(), z.as_array())


def test_kernels_on_some_of_the_multiprocessors(images: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    files = [f for f in files_of(images) if f.lower().endswith((".jpg", ".jpeg"))]
    monkeypatch.setenv("STOKER_GPU_MULTIPROCESSORS", "16")
    with on_gpu(training, files) as pipe, training(files, "cpu") as cpu:
        for _ in range(5):
            equal(pipe.run()[0], cpu.run()[0])


def test_memory_stays_flat(images: Path, gpu_to_itself: bool) -> None:
    """Check the pipeline's count, and the GPU's own count if the test has the GPU alone."""
    files = [f for f in files_of(images) if f.lower().endswith((".jpg", ".jpeg"))]
    with on_gpu(training, files) as pipe:
        for _ in range(200):
            pipe.run()
        torch.cuda.synchronize()
        free, counted = torch.cuda.mem_get_info(0)[0], pipe.execution.gpu.quota.taken
        for _ in range(SOAK):
            pipe.run()
        torch.cuda.synchronize()
        assert 0 < pipe.execution.gpu.quota.taken <= counted + (64 << 20)
        assert not gpu_to_itself or free - torch.cuda.mem_get_info(0)[0] <= 64 << 20


def test_a_limit_of_memory_holds(images: Path) -> None:
    files = [f for f in files_of(images) if f.lower().endswith((".jpg", ".jpeg"))]
    with on_gpu(training, files, gpu_memory_limit=1 << 20) as pipe, pytest.raises(DataError, match="memory"):
        pipe.run()


def test_closing_with_batches_in_flight(images: Path) -> None:
    files = [f for f in files_of(images) if f.lower().endswith((".jpg", ".jpeg"))]
    for n in range(30):
        pipe = on_gpu(training, files, prefetch_queue_depth=4)
        if n:
            pipe.run()
        pipe.close()
    gc.collect()
