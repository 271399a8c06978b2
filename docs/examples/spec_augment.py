# SPDX-License-Identifier: Apache-2.0
import numpy as np

from stoker import eager

t = np.arange(32000) / 16000  # 2 seconds at 16 kHz
signal = (0.3 * np.sin(2 * np.pi * (200 * t + 1500 * t**2))).astype(np.float32)  # a rising tone

features = eager.features.nemo(signal)
some = eager.spec_augment(features, freq_width=15, time_width=40, seed=4)
print(some.shape)  # (80, 200)

# ---- figure ----
from figures import spectrum

figure = {"features": spectrum(features), "spec_augment": spectrum(some)}
