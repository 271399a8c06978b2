# SPDX-License-Identifier: Apache-2.0
"""Made corpus: words whose letters are chords of two tones, with pauses, noise and a NeMo manifest."""

from __future__ import annotations

import json
import wave
from pathlib import Path

import numpy as np

ALPHABET = "abcdefghij"
RATE = 16000
_LOW = 300 * 1.25 ** np.arange(len(ALPHABET))  # Hz of a letter's lower tone
_HIGH = np.roll(_LOW, 3) * 1.5


def utter(text: str, rng: np.random.Generator) -> np.ndarray:
    """Return the sound of a text as float32 samples from -1 to 1."""
    parts = [np.zeros(rng.integers(400, 2400))]
    for letter in text:
        k, n = ALPHABET.index(letter), int(rng.integers(1300, 2600))
        t = np.arange(n) / RATE
        tone = np.sin(2 * np.pi * _LOW[k] * t + rng.uniform(0, 6)) + 0.6 * np.sin(2 * np.pi * _HIGH[k] * t)
        parts += [0.2 * tone * np.hanning(n) ** 0.5, np.zeros(rng.integers(500, 1200))]
    sound = np.concatenate(parts)
    return (sound + rng.normal(0, 0.01, len(sound))).astype(np.float32)


def write(folder: Path, count: int, seed: int) -> Path:
    """Write clips and their manifest, and return the manifest's path."""
    folder.mkdir(parents=True, exist_ok=True)
    rng = np.random.default_rng(seed)
    manifest = folder / "manifest.json"
    with open(manifest, "w") as lines:
        for i in range(count):
            text = "".join(rng.choice(list(ALPHABET), rng.integers(2, 11)))
            sound = utter(text, rng)
            with wave.open(str(folder / f"{i}.wav"), "wb") as clip:
                clip.setparams((1, 2, RATE, 0, "NONE", ""))
                clip.writeframes((sound * 32767).astype(np.int16).tobytes())
            entry = {"audio_filepath": f"{i}.wav", "duration": len(sound) / RATE, "text": text}
            lines.write(json.dumps(entry) + "\n")
    return manifest
