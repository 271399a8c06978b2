# SPDX-License-Identifier: Apache-2.0
import numpy as np

from stoker import eager

clicks = np.zeros(16000, np.float32)
clicks[[1000, 7000, 9000]] = 0.5
rng = np.random.default_rng(0)
room = (rng.normal(0, 0.3, 4000) * np.exp(-np.arange(4000) / 800)).astype(np.float32)
room[0] = 1.0  # the direct sound

print(eager.convolve(clicks, room).shape)  # (19999,)
heard = eager.convolve(clicks, room, mode="first")
print(heard.shape)  # (16000,)

# ---- figure ----
from figures import wave

figure = {"signal": wave(clicks), "impulse response": wave(room), "convolve": wave(heard)}
