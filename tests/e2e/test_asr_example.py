# SPDX-License-Identifier: Apache-2.0
"""The examples of speech recognition learn."""

from __future__ import annotations

import importlib
import re
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from tests.forked import ForkServer
from tests.idle_clock import HANG_S

pytest.importorskip("torch", exc_type=ModuleNotFoundError)
TRAIN = Path(__file__).resolve().parents[2] / "examples" / "asr" / "train.py"


def test_the_example_learns(tmp_path: Path, forked: ForkServer) -> None:
    done = forked.run(TRAIN, "--fast", "--folder", tmp_path, timeout=HANG_S)
    assert done.returncode == 0, done.stdout + done.stderr
    losses = [float(x) for x in re.findall(r"loss ([0-9.]+)", done.stdout)]
    assert len(losses) == 5 and losses[-1] < 0.2 * losses[0]
    assert len(list((tmp_path / "train").glob("*.wav"))) == 240


def test_the_transducer_learns(tmp_path: Path, forked: ForkServer) -> None:
    done = forked.run(TRAIN.with_name("transducer.py"), "--fast", "--folder", tmp_path, timeout=HANG_S)
    assert done.returncode == 0, done.stdout + done.stderr
    losses = [float(x) for x in re.findall(r"loss ([0-9.]+)", done.stdout)]
    assert len(losses) == 12 and losses[-1] < 0.1 * losses[0]


@pytest.fixture
def transducer(monkeypatch: pytest.MonkeyPatch) -> Any:
    monkeypatch.syspath_prepend(str(TRAIN.parent))
    return importlib.import_module("transducer")


def test_the_loss_of_the_transducer(transducer: Any) -> None:
    """It is the probability of all alignments, by the definition: one decision after the other."""
    import torch

    rng = np.random.default_rng(3)
    scores = torch.from_numpy(rng.normal(0, 1, (3, 7, 5, 4))).log_softmax(-1)
    tokens = torch.from_numpy(rng.integers(1, 4, (3, 4)))
    lengths, sizes = torch.tensor([7, 5, 1]), torch.tensor([4, 2, 0])
    want = []
    for p, labels, frames, count in zip(scores.exp().numpy(), tokens.numpy(), lengths, sizes, strict=True):
        alpha = np.zeros((frames, count + 1))
        for t in range(frames):
            for u in range(count + 1):
                waited = alpha[t - 1, u] * p[t - 1, u, 0] if t else 0.0
                emitted = alpha[t, u - 1] * p[t, u - 1, labels[u - 1]] if u else 0.0
                alpha[t, u] = waited + emitted if t or u else 1.0
        want.append(-np.log(alpha[-1, -1] * p[frames - 1, count, 0]))
    found = transducer.transducer_loss(scores, tokens, lengths, sizes)
    assert abs(float(found) - np.mean(want)) < 1e-9


def test_frames_are_stacked(transducer: Any, tmp_path: Path) -> None:
    """Three neighbouring frames are one, in their order; batches have clips of like length."""
    manifest = transducer.corpus.write(tmp_path, 12, seed=1)
    batches = transducer.loader(manifest, 4, False)
    found = [batch["features"] for batch in batches]
    batches.close()
    assert all(features.shape == (4, lengths.max(), transducer.WIDTH) for features, lengths in found)
    ranges = [(int(lengths.min()), int(lengths.max())) for _, lengths in found]
    assert len(found) == 3 and ranges[0][1] - ranges[0][0] < ranges[-1][1] - ranges[0][0]
    with transducer.clips(str(manifest), None, False, batch_size=4) as pipe:
        (stacked, _) = pipe.run()
    frames = np.asarray(stacked[0]).reshape(-1, transducer.train.FEATURES)
    assert len(frames) % transducer.STACKED == 0
    assert np.abs(frames.mean(0)).max() < 0.2 and np.abs(frames.std(0) - 1).max() < 0.2  # normalized per feature
