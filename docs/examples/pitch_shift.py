# SPDX-License-Identifier: Apache-2.0
import numpy as np

from stoker import eager

t = np.arange(16000) / 16000
tone = (0.3 * np.sin(2 * np.pi * 100 * t) * (t % 0.25 < 0.15)).astype(np.float32)
high = eager.pitch_shift(tone, n_steps=12, window_length=1024, window_step=256)
print(high.shape)  # (16000,)

# ---- figure ----
from figures import wave

figure = {"signal": wave(tone[:3000]), "n_steps=12": wave(high[:3000])}
