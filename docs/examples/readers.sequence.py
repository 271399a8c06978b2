# SPDX-License-Identifier: Apache-2.0
import tempfile
from pathlib import Path

import numpy as np
from PIL import Image

from stoker import fn, pipeline_def

root = tempfile.TemporaryDirectory()
stream = Path(root.name, "stream")
stream.mkdir()
for i in range(6):
    Image.fromarray(np.full((60, 80, 3), 40 * i, np.uint8)).save(stream / f"{i}.png")


@pipeline_def(batch_size=2, num_threads=1)
def sequences():
    return fn.readers.sequence(file_root=root.name, sequence_length=3, step=2)


frames = sequences().run()[0]
print(frames)  # Batch(2 x (3, 60, 80, 3), uint8, FHWC)
print([int(f[0, 0, 0]) for f in frames[1]])  # [80, 120, 160]

# ---- figure ----
figure = {f"frame {i}": frame for i, frame in enumerate(frames[0])}
root.cleanup()
