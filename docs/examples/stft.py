# SPDX-License-Identifier: Apache-2.0
import numpy as np

from stoker import eager

t = np.arange(32000) / 16000  # 2 seconds at 16 kHz
signal = (0.3 * np.sin(2 * np.pi * (200 * t + 1500 * t**2))).astype(np.float32)  # a rising tone

spectra = eager.stft(signal, window_length=512, window_step=128)
print(spectra.shape)  # (257, 251, 2)
numbers = np.asarray(spectra).view(np.complex64)[..., 0]
print(numbers.shape, numbers.dtype)  # (257, 251) complex64

# ---- figure ----
from figures import spectrum, wave

figure = {"signal": wave(signal[:1600]), "magnitudes": spectrum(np.log(np.abs(numbers) + 1e-2))}
