# SPDX-License-Identifier: Apache-2.0
"""Batches of clips of one size (`size_group`): they resume at every batch, and shards divide them."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
from clips import write_video

from stoker import fn, pipeline_def

pytest.importorskip("av", reason="PyAV is not installed")
SIZES = [((48, 80), 24), ((80, 48), 16), ((48, 80), 12), ((64, 64), 8)]  # and the number of frames
CLIPS, LENGTH = 30, 2
Row = tuple[tuple[int, ...], int, int]  # shape of the clip, number of its file, first frame


@pytest.fixture(autouse=True)
def _own_cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("STOKER_INDEX_CACHE", str(tmp_path / "cache"))


@pytest.fixture(scope="module")
def paths(tmp_path_factory: pytest.TempPathFactory) -> list[str]:
    folder = tmp_path_factory.mktemp("clips")
    return [
        str(
            write_video(
                folder / f"{i}.mp4", "libx264", {"threads": "1"}, frames=count, size=size,
                make=lambda number, size=size: np.full((*size, 3), 5 * number, np.uint8),
            )
        )
        for i, (size, count) in enumerate(SIZES)
    ]  # fmt: skip


def open_pipe(paths: list[str], batch_size: int, **more: Any) -> Any:
    @pipeline_def(batch_size=batch_size, num_threads=2, seed=9)
    def clips() -> Any:
        return fn.readers.video(
            filenames=paths, labels=[], sequence_length=LENGTH, enable_frame_num="scalar", random_shuffle=True, **more
        )

    return clips()


def batch_of(pipe: Any) -> list[Row]:
    video, label, first = pipe.run()
    return [
        (np.asarray(clip).shape, int(np.asarray(n)[0]), int(np.asarray(f)[0]))
        for clip, n, f in zip(video, label, first, strict=True)
    ]


def test_resume_at_every_batch(paths: list[str]) -> None:
    """From the state after each batch of two epochs, the next batch is the same one."""
    with open_pipe(paths, 3, size_group=3) as pipe:
        whole = [(batch_of(pipe), pipe.get_state()) for _ in range(2 * CLIPS // 3)]
    for k, (_, state) in enumerate(whole[:-1]):
        with open_pipe(paths, 3, size_group=3) as pipe:
            pipe.build()
            pipe.set_state(state)
            assert batch_of(pipe) == whole[k + 1][0], k


@pytest.mark.parametrize("shards", [2, 3])
def test_shards_divide_the_clips(paths: list[str], shards: int) -> None:
    """Every clip is in one shard, and the shards' batches of one step have one size, except for the last ones."""
    batch = 2
    steps = CLIPS // (batch * shards)
    found, mixed = list[Row](), 0
    parts = []
    for shard in range(shards):
        with open_pipe(paths, batch, size_group=batch * shards, num_shards=shards, shard_id=shard) as pipe:
            parts.append([batch_of(pipe) for _ in range(steps)])
    for step in range(steps):
        rows = [row for part in parts for row in part[step]]
        mixed += len({row[0] for row in rows}) > 1
        found += rows
    assert len(found) == len(set(found)) == steps * batch * shards  # no clip twice
    assert mixed <= 2  # what is left of three sizes
    with open_pipe(paths, CLIPS) as pipe:
        assert set(found) <= set(batch_of(pipe))


def test_a_run_on_two_shards_goes_on_with_one(paths: list[str]) -> None:
    """Elastic shards: the states of both shards after some batches, resumed by one process, give the other clips."""
    states, before = [], list[Row]()
    for shard in range(2):
        with open_pipe(paths, 3, size_group=6, num_shards=2, shard_id=shard) as pipe:
            for _ in range(2):
                before += batch_of(pipe)
            states.append(pipe.get_state())
    with open_pipe(paths, 6, size_group=6) as pipe:
        pipe.build()
        pipe.set_state(states[0])
        after = [row for _ in range((CLIPS - len(before)) // 6) for row in batch_of(pipe)]
    assert len(before) == 12 and len(set(before + after)) == CLIPS
