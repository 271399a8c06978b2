# SPDX-License-Identifier: Apache-2.0
import numpy as np

from stoker import eager

t = np.arange(32000) / 16000  # 2 seconds at 16 kHz
signal = (0.3 * np.sin(2 * np.pi * (200 * t + 1500 * t**2))).astype(np.float32)  # a rising tone

features = eager.features.kaldi_fbank(signal, num_mel_bins=80)
print(features.shape)  # (198, 80)

# ---- figure ----
from figures import spectrum, wave

figure = {"signal": wave(signal[:1600]), "features.kaldi_fbank": spectrum(features.T)}
