# SPDX-License-Identifier: Apache-2.0
import json
import wave

import numpy as np

from stoker import fn, pipeline_def

with wave.open("speech.wav", "wb") as file:  # a made clip
    file.setparams((1, 2, 8000, 0, "NONE", ""))
    file.writeframes((8000 * np.sin(np.arange(16000) ** 2 * 2e-5)).astype(np.int16).tobytes())
entries = [
    {"audio_filepath": "speech.wav", "duration": 0.5, "text": "slow"},
    {"audio_filepath": "speech.wav", "offset": 1.0, "duration": 0.75, "text": "fast"},
    {"audio_filepath": "speech.wav", "duration": 30.0, "text": "too long"},
]
with open("manifest.json", "w") as manifest:
    manifest.write("\n".join(json.dumps(entry) for entry in entries))


@pipeline_def(batch_size=2, num_threads=1)
def speech():
    return fn.readers.nemo_asr(manifest_filepaths=["manifest.json"], max_duration=20.0)


pipe = speech()
audio, rate, text = pipe.run()
print([x.shape for x in audio], bytes(text[1]).decode())  # [(4000,), (6000,)] fast

# ---- figure ----
from figures import wave as drawn

figure = {bytes(t).decode(): drawn(x[:800]) for x, t in zip(audio, text, strict=True)}
