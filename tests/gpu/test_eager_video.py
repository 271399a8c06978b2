# SPDX-License-Identifier: Apache-2.0
"""Frames of ``eager.video`` in a GPU's memory, which a framework reads on its own stream."""

from __future__ import annotations

import os
import subprocess
import sys

import numpy as np
import pytest

from stoker import eager
from tests.clips import write_video

torch = pytest.importorskip("torch", reason="torch is not installed")
pytest.importorskip("av", reason="PyAV is not installed")

AT_EXIT = """
import sys
from stoker import eager
video = eager.video.open(sys.argv[1], device="gpu")
frames = video[:4]
print(frames.shape, flush=True)
"""


@pytest.fixture(scope="module")
def path(tmp_path_factory: pytest.TempPathFactory) -> str:
    return str(write_video(tmp_path_factory.mktemp("video") / "a.mp4", "libx264", frames=30, size=(144, 160), gop=15))


@pytest.mark.leaks("the first use of the device opens it for the process")
def test_memory_is_written_again_after_its_readers(path: str) -> None:
    """A block goes to later frames while a slow kernel has yet to read the earlier ones."""
    with eager.video.open(path) as cpu:
        expected = cpu[:]
    stream = torch.cuda.Stream()
    with eager.video.open(path, device="gpu") as gpu, torch.cuda.stream(stream):
        addresses, copies = set(), []
        for turn in range(90):
            torch.cuda._sleep(4_000_000)
            frames = torch.from_dlpack(gpu[turn % 28 : turn % 28 + 2])
            addresses.add(frames.data_ptr())
            copies.append(frames.clone())
            del frames
        stream.synchronize()
    assert len(addresses) < 60, "memory is used again"
    for turn, copy in enumerate(copies):
        np.testing.assert_array_equal(copy.cpu().numpy(), expected[turn % 28 : turn % 28 + 2])


@pytest.mark.leaks("the first use of the device opens it for the process")
def test_frames_are_read_in_place(path: str) -> None:
    with eager.video.open(path, device="gpu", dimension_order="NCHW") as gpu, eager.video.open(path) as cpu:
        frames = gpu[3:9:2]
        tensor = torch.from_dlpack(frames)
        assert tensor.is_cuda and tensor.data_ptr() == frames.pointer and tensor.shape == (3, 3, 144, 160)
        np.testing.assert_array_equal(tensor.cpu().numpy(), cpu[3:9:2].transpose(0, 3, 1, 2))
        row = torch.as_tensor(gpu[4], device="cuda")
        np.testing.assert_array_equal(row.cpu().numpy(), cpu[4].transpose(2, 0, 1))


def test_a_process_ends_with_open_videos(path: str) -> None:
    done = subprocess.run(
        [sys.executable, "-c", AT_EXIT, path], capture_output=True, text=True, check=False, timeout=300,
        env={**os.environ, "PYTHONWARNINGS": "error"},
    )  # fmt: skip
    assert (done.returncode, done.stdout, done.stderr) == (0, "(4, 144, 160, 3)\n", "")
