# SPDX-License-Identifier: Apache-2.0
import wave

import numpy as np

from stoker import fn, pipeline_def

for name, step in (("low", 0.05), ("high", 0.4)):  # two made tones
    with wave.open(f"{name}.wav", "wb") as file:
        file.setparams((1, 2, 8000, 0, "NONE", ""))
        file.writeframes((8000 * np.sin(np.arange(4000) * step)).astype(np.int16).tobytes())


@pipeline_def(batch_size=2, num_threads=1)
def tones():
    return fn.readers.audio(files=["low.wav", "high.wav"], texts=["a low tone", "a high tone"])


pipe = tones()
audio, rate, text = pipe.run()
print(audio[0].shape, float(rate[0]), bytes(text[0]).decode())  # (4000,) 8000.0 a low tone

# ---- figure ----
from figures import wave as drawn

figure = {f"{bytes(t).decode()}": drawn(x[:400]) for x, t in zip(audio, text, strict=True)}
