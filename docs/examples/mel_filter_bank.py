# SPDX-License-Identifier: Apache-2.0
import numpy as np

from stoker import eager

t = np.arange(32000) / 16000  # 2 seconds at 16 kHz
signal = (0.3 * np.sin(2 * np.pi * (200 * t + 1500 * t**2))).astype(np.float32)  # a rising tone

power = eager.spectrogram(signal, window_length=400, window_step=160, nfft=512)
mel = eager.mel_filter_bank(power, nfilter=80, sample_rate=16000.0)
print(mel.shape)  # (80, 201)

# ---- figure ----
from figures import spectrum

figure = {
    "spectrogram, dB": spectrum(eager.to_decibels(power, cutoff_db=-60.0)),
    "80 mel bands, dB": spectrum(eager.to_decibels(mel, cutoff_db=-60.0)),
}
