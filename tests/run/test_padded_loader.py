# SPDX-License-Identifier: Apache-2.0
"""Padded batches with lengths, and buckets of like length: states, shards, files."""

from __future__ import annotations

import json
import wave
from itertools import chain
from pathlib import Path
from typing import Any

import numpy as np
import pytest

torch = pytest.importorskip("torch", exc_type=ModuleNotFoundError)

from stoker import ArgumentError, fn, pipeline_def, samplers  # noqa: E402
from stoker.torch import Loader, Padded  # noqa: E402

ROWS = [np.full((n, 3), n, np.float32) for n in (4, 2, 7, 4, 4)]


@pipeline_def(num_threads=2)
def rows(layout: str = "tf") -> Any:
    return fn.external_source(ROWS, batch=False, layout=layout), fn.external_source(
        [np.int32(k) for k in range(5)], batch=False
    )


def test_rows_are_filled_up() -> None:
    loader = Loader(rows(batch_size=3), ragged="padded", padding_value=-1, size=1)
    padded, labels = next(iter(loader))
    assert isinstance(padded, Padded) and padded.data.shape == (3, 7, 3)
    assert padded.lengths.tolist() == [4, 2, 7] and padded.lengths.dtype == torch.int64
    for row, have, n in zip(ROWS, padded.data, padded.lengths, strict=False):
        np.testing.assert_array_equal(have[:n], row)
        assert (have[n:] == -1).all()
    assert labels.tolist() == [0, 1, 2], "a label is no sequence"
    loader.close()


def test_rows_of_one_shape_are_padded_too() -> None:
    loader = Loader(rows(batch_size=2), ragged="padded", size=2)
    kinds = [type(padded) for padded, _ in loader]
    assert kinds == [Padded, Padded]
    loader.close()
    one = Loader(rows(batch_size=1), ragged="padded", size=1)
    padded, _ = next(iter(one))
    assert padded.data.shape == (1, 4, 3) and padded.lengths.tolist() == [4]
    one.close()


@pytest.mark.parametrize(("layout", "lengths"), [("ft", [3, 3]), ("", [[4, 3], [2, 3]]), ("HW", [[4, 3], [2, 3]])])
def test_lengths_are_along_time(layout: str, lengths: Any) -> None:
    loader = Loader(rows(batch_size=2, layout=layout or None), ragged="padded", size=1)
    padded, _ = next(iter(loader))
    assert padded.lengths.tolist() == lengths
    loader.close()


def test_numbers_are_checked() -> None:
    for args in ({"ragged": "pad"}, {"padding_value": 1.0}, {"ragged": "padded", "padding_value": "x"}):
        with pytest.raises(ArgumentError, match="Loader"):
            Loader(rows(batch_size=2), size=1, **args)


@pytest.fixture
def manifest(tmp_path: Path) -> tuple[str, list[float]]:
    rng = np.random.default_rng(0)
    durations = [float(d) for d in rng.integers(5, 60, 41) / 100]
    with open(tmp_path / "manifest.json", "w") as file:
        for k, seconds in enumerate(durations):
            with wave.open(str(tmp_path / f"{k}.wav"), "wb") as clip:
                clip.setparams((1, 2, 8000, 0, "NONE", ""))
                clip.writeframes(rng.integers(-999, 999, round(seconds * 8000)).astype(np.int16).tobytes())
            entry = {"audio_filepath": f"{k}.wav", "duration": seconds, "text": "x" * (k % 5 + 1)}
            file.write(json.dumps(entry) + "\n")
    return str(tmp_path / "manifest.json"), durations


@pipeline_def(batch_size=4, num_threads=2, seed=5)
def clips(path: str, sampler: Any, **shards: int) -> Any:
    audio, _, text, number = fn.readers.nemo_asr(manifest_filepaths=path, read_idxs=True, sampler=sampler, **shards)
    return audio, text, fn.spec_augment(fn.features.nemo(audio, sample_rate=8000.0, features=16)), number


def epoch_of(loader: Loader) -> list[list[int]]:
    return [batch[-1].tolist() for batch in loader]


def test_buckets_of_a_manifest_have_little_padding(manifest: tuple[str, list[float]]) -> None:
    path, durations = manifest
    loader = Loader(clips(path, samplers.Bucketed(durations, 4, buckets=5)), ragged="padded")
    filled = total = 0
    for audio, text, features, number in loader:
        assert audio.lengths.tolist() == [round(durations[n] * 8000) for n in number.tolist()]
        assert text.lengths.tolist() == [n % 5 + 1 for n in number.tolist()]
        assert (features.lengths == audio.lengths // 80).all() and features.data.shape[1] == 16
        filled += int(audio.lengths.sum())
        total += audio.data.numel()
    assert filled == sum(round(d * 8000) for d in durations)
    assert total < 1.25 * filled
    loader.close()


def test_buckets_resume(manifest: tuple[str, list[float]]) -> None:
    path, durations = manifest
    sampler = samplers.Bucketed(durations, 4)
    loader = Loader(clips(path, sampler), ragged="padded")
    whole = [epoch_of(loader), epoch_of(loader)]
    assert whole[0] != whole[1] and all(sorted(chain(*e)) == list(range(41)) for e in whole)
    loader.close()
    loader = Loader(clips(path, sampler), ragged="padded")
    batches = iter(loader)
    first = [next(batches)[-1].tolist() for _ in range(4)]
    state = loader.state_dict()
    loader.close()
    loader = Loader(clips(path, sampler), ragged="padded")
    loader.load_state_dict(state)
    assert first + epoch_of(loader) == whole[0]
    assert epoch_of(loader) == whole[1]
    loader.close()


def test_shards_share_the_groups(manifest: tuple[str, list[float]]) -> None:
    path, durations = manifest
    sampler = samplers.Bucketed(durations, 8, buckets=4)
    parts = []
    for k in range(2):
        loader = Loader(clips(path, sampler, num_shards=2, shard_id=k), ragged="padded", last_batch_policy="partial")
        parts.append(epoch_of(loader))
        loader.close()
    assert sorted(chain(*parts[0], *parts[1])) == list(range(41))
    loader = Loader(clips(path, sampler))
    single = list(chain(*epoch_of(loader)))
    loader.close()
    for step, (a, b) in enumerate(zip(parts[0], parts[1], strict=False)):
        group = single[8 * step : 8 * step + 8]
        assert group[0::2] == a and group[1::2] == b
