# SPDX-License-Identifier: Apache-2.0
import numpy as np

from stoker import eager

t = np.arange(16000) / 16000
tone = (0.3 * np.sin(2 * np.pi * 50 * t) * (t % 0.25 < 0.15)).astype(np.float32)
slow = eager.time_stretch(tone, rate=0.5, window_length=512, window_step=128)
print(slow.shape)  # (32000,)

# ---- figure ----
from figures import wave

figure = {"signal": wave(tone[:6000]), "rate=0.5": wave(slow[:6000])}
