# SPDX-License-Identifier: Apache-2.0
import numpy as np

from stoker import eager

t = np.arange(32000) / 16000
quiet = (0.02 * np.sin(2 * np.pi * 300 * t)).astype(np.float32)
loud = eager.loudness_normalize(quiet, target=-16.0)
print(round(float(eager.loudness(loud)), 2))  # -16.0

# ---- figure ----
from figures import wave

figure = {"signal": wave(quiet[:800]), "target=-16": wave(loud[:800])}
