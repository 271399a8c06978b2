# SPDX-License-Identifier: Apache-2.0
import numpy as np

from stoker import eager

t = np.arange(32000) / 16000  # 2 seconds at 16 kHz
signal = (0.3 * np.sin(2 * np.pi * (200 * t + 1500 * t**2))).astype(np.float32)  # a rising tone

power = eager.power_spectrum(signal[:512])
print(power.shape, int(power.argmax()) * 16000 / 512)  # (257,) 250.0

# ---- figure ----
from figures import wave

figure = {"512 samples": wave(signal[:512]), "power of 257 bins": wave(power)}
