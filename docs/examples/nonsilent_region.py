# SPDX-License-Identifier: Apache-2.0
import numpy as np

from stoker import eager

speech = np.zeros(16000, np.float32)
speech[4000:9000] = 0.2 * np.sin(np.arange(5000) * 0.1)
begin, length = eager.nonsilent_region(speech, window_length=256, reset_interval=1024)
print(begin, length)  # 3746 5509
cut = eager.slice(speech, start=begin, shape=length, axes=[0])
print(cut.shape)  # (5509,)

# ---- figure ----
from figures import wave

figure = {"signal": wave(speech), "region": wave(cut)}
