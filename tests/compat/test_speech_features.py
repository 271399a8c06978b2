# SPDX-License-Identifier: Apache-2.0
"""Front ends of speech models against those of transformers and torchaudio: ``make test-features``.

The bounds are those that docs/guides/audio.md states.
"""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from stoker import eager

torch = pytest.importorskip("torch")
transformers = pytest.importorskip("transformers")


def import_kaldi() -> Any:
    """Import torchaudio's Kaldi functions, without its library, which needs those of CUDA."""
    glob = Path.glob

    def without_library(self: Path, pattern: str) -> Any:
        return iter(()) if self.parts[-2:] == ("torchaudio", "lib") else glob(self, pattern)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(Path, "glob", without_library)
        return pytest.importorskip("torchaudio.compliance.kaldi")


kaldi = import_kaldi()  # before transformers imports torchaudio
SIZES = (40000, 16000 * 31, 1777)


def speech(size: int) -> Any:
    tone = 0.2 * np.sin(np.arange(size) * 0.05)
    return (tone + np.random.default_rng(size).normal(0, 0.05, size)).astype(np.float32)


def close(got: Any, want: Any, bound: float) -> None:
    got, want = np.asarray(got), np.asarray(want)
    assert got.shape == want.shape
    worst = float(np.abs(got - want).max())
    assert worst <= bound, f"the largest difference is {worst:.3g}"


@pytest.mark.parametrize("size", SIZES)
@pytest.mark.parametrize("mels", [80, 128])
def test_whisper(size: int, mels: int) -> None:
    x = speech(size)
    extractor = transformers.WhisperFeatureExtractor(feature_size=mels)
    want = extractor(x, sampling_rate=16000, return_tensors="np").input_features[0]
    close(eager.features.whisper(x, n_mels=mels), want, 1e-4)


@pytest.mark.parametrize("size", SIZES)
@pytest.mark.parametrize(
    ("made", "called", "ours"),
    [
        ({}, {"padding": False}, {"padding": "do_not_pad"}),
        ({}, {"truncation": False}, {"truncation": False}),
        ({}, {"do_normalize": True}, {"do_normalize": True}),
        ({"padding_value": 0.25}, {"do_normalize": True}, {"padding_value": 0.25, "do_normalize": True}),
        ({"chunk_length": 10, "hop_length": 200}, {}, {"chunk_length": 10, "hop_length": 200}),
        ({"n_fft": 512}, {}, {"n_fft": 512}),
    ],
)  # fmt: skip
def test_settings_of_whisper(size: int, made: dict[str, Any], called: dict[str, Any], ours: dict[str, Any]) -> None:
    x = speech(size)
    extractor = transformers.WhisperFeatureExtractor(**made)
    want = extractor(x, sampling_rate=16000, return_tensors="np", **called).input_features[0]
    close(eager.features.whisper(x, **ours), want, 1e-4)


@pytest.mark.parametrize("size", SIZES)
@pytest.mark.parametrize("normalizes", [True, False])
@pytest.mark.parametrize("masked", [True, False])
def test_settings_of_wav2vec2(size: int, normalizes: bool, masked: bool) -> None:
    x = speech(size)
    extractor = transformers.Wav2Vec2FeatureExtractor(
        do_normalize=normalizes, return_attention_mask=masked, padding_value=0.25
    )
    more = {"padding": "max_length", "max_length": 48000}
    want = extractor(x, sampling_rate=16000, return_tensors="np", truncation=True, **more).input_values[0]
    got = eager.features.wav2vec2(x, do_normalize=normalizes, mask_padding=masked, padding_value=0.25, **more)
    close(got, want, 2e-6)


@pytest.mark.parametrize("size", SIZES)
def test_wav2vec2(size: int) -> None:
    x = speech(size)
    extractor = transformers.Wav2Vec2FeatureExtractor(do_normalize=True)
    close(eager.features.wav2vec2(x), extractor(x, sampling_rate=16000, return_tensors="np").input_values[0], 1e-6)


@pytest.mark.parametrize("size", SIZES)
def test_nemo(size: int) -> None:
    x = speech(size)
    extractor = transformers.ParakeetFeatureExtractor()
    want = extractor(x, sampling_rate=16000, return_tensors="pt").input_features[0].numpy().T
    got = np.asarray(eager.features.nemo(x))
    close(got, want[:, : got.shape[1]], 3e-4)


@pytest.mark.parametrize("size", SIZES)
@pytest.mark.parametrize(
    "arguments",
    [
        {},
        {"num_mel_bins": 80, "snip_edges": False, "window_type": "hamming", "preemphasis_coefficient": 0.0},
        {"num_mel_bins": 20, "sample_frequency": 8000.0, "window_type": "blackman", "remove_dc_offset": False},
        {"window_type": "rectangular", "use_power": False, "high_freq": -200.0},
        {"window_type": "hanning", "round_to_power_of_two": False, "use_log_fbank": False, "frame_shift": 12.5},
    ],
)
def test_kaldi_fbank(size: int, arguments: dict[str, Any]) -> None:
    x = speech(size)
    want = kaldi.fbank(torch.from_numpy(x)[None], **arguments).numpy()
    close(
        eager.features.kaldi_fbank(x, **arguments),
        want,
        1e-3 if arguments.get("use_log_fbank", True) else 4e-6 * float(want.max()),
    )


def test_the_bound_rejects_another_window() -> None:
    x = speech(40000)
    want = np.asarray(eager.features.kaldi_fbank(x, window_type="hanning"))
    rejects: Callable[..., None] = close
    with pytest.raises(AssertionError, match="largest difference"):
        rejects(eager.features.kaldi_fbank(x), want, 1e-3)
