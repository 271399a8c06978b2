# SPDX-License-Identifier: Apache-2.0
import numpy as np

from stoker import eager

tone = (0.3 * np.sin(np.arange(16000) * 0.02)).astype(np.float32)
print([eager.random_speed(tone, seed=k).shape for k in range(4)])
# [(14546,), (17778,), (14546,), (16000,)]

# ---- figure ----
from figures import wave

fast = eager.random_speed(tone, factors=1.5)
figure = {"signal": wave(tone[:2000]), "factors=1.5": wave(fast[:2000])}
