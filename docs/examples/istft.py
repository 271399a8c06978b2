# SPDX-License-Identifier: Apache-2.0
import numpy as np

from stoker import eager

signal = (0.3 * np.sin(np.arange(16000) * 0.05)).astype(np.float32)

spectra = np.array(eager.stft(signal, window_length=512, window_step=128))
spectra[40:] = 0  # remove high frequencies
back = eager.istft(spectra, window_length=512, window_step=128, length=16000)
print(back.shape, bool(np.abs(back - signal).max() < 0.05))  # (16000,) True

# ---- figure ----
from figures import wave

figure = {"signal": wave(signal[:1600]), "istft": wave(back[:1600])}
