# SPDX-License-Identifier: Apache-2.0
import numpy as np

from stoker import eager

speech = np.zeros(16000, np.float32)
speech[4000:9000] = 0.2 * np.sin(np.arange(5000) * 0.1)
cut = eager.trim_silence(speech, window_length=256, margin=100)
print(cut.shape)  # (5709,)

# ---- figure ----
from figures import wave

figure = {"signal": wave(speech), "trim_silence": wave(cut)}
