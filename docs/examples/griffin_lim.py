# SPDX-License-Identifier: Apache-2.0
import numpy as np

from stoker import eager

t = np.arange(16000) / 16000
signal = (0.3 * np.sin(2 * np.pi * (200 * t + 500 * t**2))).astype(np.float32)  # a rising tone
hann = 0.5 - 0.5 * np.cos(2 * np.pi * np.arange(512) / 512)
frames = {"window_length": 512, "window_step": 128, "window_fn": hann}

power = eager.spectrogram(signal, **frames)  # the phases are lost
back = eager.griffin_lim(power, n_iter=32, **frames)
print(back.shape)  # (16000,)

# ---- figure ----
from figures import wave

figure = {"signal": wave(signal[4000:5600]), "griffin_lim": wave(back[4000:5600])}
