# SPDX-License-Identifier: Apache-2.0
import numpy as np

from stoker import eager

t = np.arange(32000) / 16000  # 2 seconds at 16 kHz
signal = (0.3 * np.sin(2 * np.pi * (200 * t + 1500 * t**2))).astype(np.float32)  # a rising tone

power = eager.spectrogram(signal, window_length=400, window_step=160, nfft=512)
print(power.shape)  # (257, 201)
by_time = eager.spectrogram(signal, window_length=400, window_step=160, nfft=512, layout="tf")
print(by_time.shape)  # (201, 257)

# ---- figure ----
from figures import spectrum, wave

figure = {"signal": wave(signal[:1600]), "spectrogram": spectrum(eager.to_decibels(power, cutoff_db=-60.0))}
