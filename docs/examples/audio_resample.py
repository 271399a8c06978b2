# SPDX-License-Identifier: Apache-2.0
import numpy as np

from stoker import eager

t = np.arange(44100) / 44100
tones = (0.4 * np.sin(2 * np.pi * 3000 * t) + 0.4 * np.sin(2 * np.pi * 9000 * t)).astype(np.float32)
clean = eager.audio_resample(tones, in_rate=44100.0, out_rate=16000.0)  # 9 kHz is gone
print(clean.shape)  # (16000,)
aliased = eager.audio_resample(tones, in_rate=44100.0, out_rate=16000.0, filter="dali")
faster = eager.audio_resample(tones, scale=0.9)  # speed perturbation
print(faster.shape)  # (39690,)

# ---- figure ----
from figures import spectrum


def shown(x):
    return spectrum(eager.to_decibels(eager.spectrogram(x), cutoff_db=-80.0))


figure = {"44.1 kHz": shown(tones), "16 kHz": shown(clean), 'filter="dali"': shown(aliased)}
