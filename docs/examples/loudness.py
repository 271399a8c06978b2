# SPDX-License-Identifier: Apache-2.0
import numpy as np

from stoker import eager

t = np.arange(48000 * 3) / 48000
tone = np.sin(2 * np.pi * 1000 * t).astype(np.float32)
print(round(float(eager.loudness(tone, sample_rate=48000.0)), 2))  # -3.0
print(round(float(eager.loudness(tone * 0.1, sample_rate=48000.0)), 2))  # -23.0

# ---- figure ----
from figures import wave

figure = {"-3 LUFS": wave(tone[:960]), "-23 LUFS": wave(0.1 * tone[:960])}
