# SPDX-License-Identifier: Apache-2.0
"""Transfer of files to a GPU (the null device).

Pinned memory of a file is reused once it has been copied. Full blocks are sent while others are read. The CPU still
finds the bytes of rows that fall back to it.
"""

from __future__ import annotations

import io
from pathlib import Path
from typing import Any

import emulated_stages
import numpy as np
import pytest
from PIL import Image

from stoker import DataError, fn, pipeline_def, settings
from stoker.device.gpu import Gpu

BATCH, FILES = 8, 16
PADDING = 20 * 65000  # three files per block of 4 MiB, so that a batch has several


@pytest.fixture
def idle(folder: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    opened(monkeypatch, emulated_stages.IdleGpu, folder)


@pytest.fixture
def emulated(folder: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    opened(monkeypatch, emulated_stages.EmulatedGpu, folder)


def opened(monkeypatch: pytest.MonkeyPatch, kind: Any, folder: Any) -> None:
    """Open a GPU without a memory limit: a real one, if there is one."""

    def open_gpu(number: int, memory_limit: int | None = None) -> Any:
        gpu = kind(folder)
        gpu.quota.limit = 2**64 - 1 if memory_limit is None else memory_limit
        return gpu

    monkeypatch.setattr(Gpu, "open", staticmethod(open_gpu))


def photograph(i: int) -> bytes:
    pixels = np.random.default_rng(i).integers(0, 256, (5, 4 + i % 3, 3), np.uint8).repeat(6, 0).repeat(6, 1)
    out = io.BytesIO()
    Image.fromarray(pixels).save(out, "JPEG", quality=88)
    return out.getvalue()


def padded(data: bytes, byte: int, bytes_more: int = PADDING) -> bytes:
    """Add comments of one value before the tables, so that a mix-up with other files' memory is visible."""
    comment = b"\xff\xfe" + (64998).to_bytes(2, "big") + bytes([byte]) * 64996
    return data[:2] + comment * (bytes_more // 65000) + data[2:]


@pytest.fixture(scope="module")
def files(tmp_path_factory: pytest.TempPathFactory) -> list[str]:
    """Write files. One in five is truncated, which the GPU finds and Pillow handles; one is larger than a block."""
    place, paths = tmp_path_factory.mktemp("files"), []
    for i in range(FILES):
        data = padded(photograph(i), i, 5_000_000 if i == 9 else PADDING)
        if i % 5 == 2:
            data = data[:-30] + b"\xff\xd9"
        paths.append(str(place / f"{i:02}.jpg"))
        Path(paths[-1]).write_bytes(data)
    return paths


@pipeline_def(batch_size=BATCH, num_threads=3, seed=11)
def decoding(files: list[str], device: Any) -> Any:
    data, _ = fn.readers.file(files=files, random_shuffle=True)
    x = fn.decoders.image_random_crop(data, device=device, random_area=(0.3, 1.0))
    return fn.cast(x, dtype=np.int16)


def same(pipe: Any, plain: Any, batches: int) -> None:
    for _ in range(batches):
        for got, want in zip(pipe.run()[0].as_cpu(), plain.run()[0], strict=True):
            np.testing.assert_array_equal(got, want)


WAYS: dict[str, dict[str, Any]] = {
    "sent while others are read": {"gpu_decoder_load": 1.0, "prefetch_queue_depth": 4},
    "sent with the batch": {"gpu_decoder_load": 1.0, "prefetch_queue_depth": 4, "gpu_memory_limit": 1 << 30},
    "held on the host": {"gpu_decoder_load": 1.0, "prefetch_queue_depth": {"cpu_size": 4, "gpu_size": 1}},
    "known files": {"gpu_decoder_load": 1.0, "prefetch_queue_depth": 4, "gpu_jpeg_index": 1 << 20},
    "shared out": {"gpu_decoder_load": 0.6, "prefetch_queue_depth": 4},
    "many threads": {"gpu_decoder_load": 1.0, "prefetch_queue_depth": 4, "num_threads": 6},
    "on the caller's thread": {"gpu_decoder_load": 1.0, "exec_pipelined": False},
}


@pytest.mark.parametrize("way", WAYS)
def test_rows_that_the_gpu_gives_up_are_read_again(emulated: None, files: list[str], way: str) -> None:
    batches = 2 * FILES // BATCH
    with decoding(files, "mixed", device_id=0, **WAYS[way]) as pipe, decoding(files, "cpu") as plain:
        same(pipe, plain, batches)
        decoded: Any = pipe.report().decoding
    assert decoded.reasons["the GPU gave it up"] >= FILES // 5 // 2, decoded.reasons
    assert decoded.rows_on_gpu > 0


def pinned_bytes(pipe: Any) -> int:
    return int(pipe.execution.run.pinned_bytes)


@pytest.mark.parametrize("threads", [2, 6])
def test_files_take_turns_in_the_same_memory(idle: None, files: list[str], threads: int) -> None:
    """Issued batches hold no such memory. 17 are in flight, of up to 14 MB; each thread reads one."""
    prefetching: dict[str, Any] = {"gpu_decoder_load": 1.0, "prefetch_queue_depth": 16}
    with decoding(files, "mixed", num_threads=threads, device_id=0, **prefetching) as pipe:
        for _ in range(40):
            pipe.run()
        pinned = pinned_bytes(pipe)
    assert 10e6 < pinned < (threads + 4) * (16 << 20)


@pytest.mark.parametrize(
    ("device", "num_threads", "threads"), [("mixed", None, 15), ("mixed", 16, 16), ("cpu", None, 16)]
)
def test_one_core_is_left_to_the_consumer(
    idle: None, files: list[str], monkeypatch: pytest.MonkeyPatch, device: str, num_threads: int | None, threads: int
) -> None:
    monkeypatch.delenv("STOKER_NUM_THREADS", raising=False)
    monkeypatch.setattr(settings, "default_threads", lambda: 16)
    with decoding(files, device, num_threads=num_threads, device_id=0) as pipe:
        pipe.build()
        assert pipe.num_threads == threads


def test_blocks_of_whole_batches(idle: None, files: list[str]) -> None:
    """With many threads, blocks grow to the size of batches, and smaller blocks are released."""
    with decoding(files, "mixed", num_threads=6, device_id=0, gpu_decoder_load=1.0, prefetch_queue_depth=1) as pipe:
        for _ in range(24):
            pipe.run()
        pinned = pinned_bytes(pipe)
    assert pinned > 0 and pinned % (16 << 20) == 0, "14 MB and an eighth, in steps of 4 MiB"


def test_a_batch_that_fails_after_a_part_was_sent(emulated: None, files: list[str], tmp_path: Path) -> None:
    """Files become unreadable after a part of the batch was sent: memory is released, and the next batch is right."""
    gone = str(tmp_path / "gone.jpg")
    some = [*files[:7], gone]

    @pipeline_def(batch_size=BATCH, num_threads=3, seed=11)
    def in_order(device: Any) -> Any:
        data, _ = fn.readers.file(files=some)
        return fn.decoders.image(data, device=device)

    with in_order("mixed", device_id=0, prefetch_queue_depth=2) as pipe, in_order("cpu") as plain:
        for _ in range(3):
            with pytest.raises(DataError, match=r"gone\.jpg"):
                pipe.run()
            with pytest.raises(DataError, match=r"gone\.jpg"):
                plain.run()
        Path(gone).write_bytes(photograph(3))
        for _ in range(3):
            try:
                got = pipe.run()[0].as_cpu()
            except DataError:
                continue  # prefetched
            break
    with in_order("cpu") as plain:
        for a, b in zip(got, plain.run()[0], strict=True):
            np.testing.assert_array_equal(a, b)


def test_stopping_early(emulated: None, files: list[str]) -> None:
    for batches in range(3):
        pipe = decoding(files, "mixed", device_id=0, prefetch_queue_depth=4)
        pipe.build()
        for _ in range(batches):
            pipe.run()
        pipe.close()
