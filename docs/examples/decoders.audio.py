# SPDX-License-Identifier: Apache-2.0
import io
import wave

import numpy as np

from stoker import eager

tone = 8000 * np.hanning(16000) * np.sin(np.arange(16000) * np.linspace(0, 0.3, 16000))
file = io.BytesIO()
with wave.open(file, "wb") as writer:
    writer.setparams((1, 2, 16000, 0, "NONE", ""))
    writer.writeframes(tone.astype(np.int16).tobytes())
data = np.frombuffer(file.getvalue(), np.uint8)

samples, rate = eager.decoders.audio(data)
print(samples.shape, samples.dtype, rate)  # (16000, 1) float32 16000.0
part, _ = eager.decoders.audio(data, offset=0.25, duration=0.5, downmix=True)
print(part.shape)  # (8000,)

# ---- figure ----
from figures import wave as drawn

figure = {"samples": drawn(samples), "offset=0.25, duration=0.5": drawn(part)}
