# SPDX-License-Identifier: Apache-2.0
import numpy as np

from stoker import eager

t = np.arange(32000) / 16000  # 2 seconds at 16 kHz
signal = (0.3 * np.sin(2 * np.pi * (200 * t + 1500 * t**2))).astype(np.float32)  # a rising tone

power = eager.spectrogram(signal, window_length=400, window_step=160, nfft=512)
mel = eager.mel_filter_bank(power, nfilter=80, sample_rate=16000.0)
mel = eager.to_decibels(mel, cutoff_db=-80.0)
print(eager.mfcc(mel, n_mfcc=13, normalize=True).shape)  # (13, 201)

# ---- figure ----
from figures import spectrum

figure = {
    "80 mel bands, dB": spectrum(mel),
    "n_mfcc=13, normalize=True": spectrum(eager.mfcc(mel, n_mfcc=13, normalize=True)),
}
