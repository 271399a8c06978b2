# SPDX-License-Identifier: Apache-2.0
import numpy as np

from stoker import eager

t = np.arange(16000) / 16000
speech = (0.3 * np.sin(2 * np.pi * 220 * t) * (t < 0.6)).astype(np.float32)
noise = np.random.default_rng(0).normal(0, 1, 40000).astype(np.float32)

noisy = eager.mix_noise(speech, noise, snr=10.0, seed=1)
added = noisy - speech
print(round(float(10 * np.log10((speech**2).mean() / (added**2).mean())), 3))  # 10.0

# ---- figure ----
from figures import wave

figure = {"signal": wave(speech), "snr=10": wave(noisy)}
