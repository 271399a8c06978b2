# SPDX-License-Identifier: Apache-2.0
import numpy as np

from stoker import eager

t = np.arange(32000) / 16000  # 2 seconds at 16 kHz
signal = (0.3 * np.sin(2 * np.pi * (200 * t + 1500 * t**2))).astype(np.float32)  # a rising tone

sharp = eager.preemphasis_filter(signal)  # y[t] = x[t] - 0.97 x[t - 1]
print(sharp.shape, sharp.dtype)  # (32000,) float32

# ---- figure ----
from figures import wave

figure = {"signal": wave(signal), "preemph_coeff=0.97": wave(sharp)}
