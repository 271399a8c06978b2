# SPDX-License-Identifier: Apache-2.0
from pathlib import Path

from stoker import eager

data = Path("astronaut.jpg").read_bytes()
face = eager.decoders.image_slice(data, start=(150, 20), shape=(150, 180))  # (x, y)
lower = eager.decoders.image_slice(data, rel_start=(0.0, 0.5), rel_end=(1.0, 1.0))
print(face.shape, lower.shape)  # (180, 150, 3) (256, 512, 3)

# ---- figure ----
from figures import outlined

image = eager.decoders.image(data)
figure = {
    "the file": outlined(image, (20, 150, 200, 300), (256, 0, 511, 511)),
    "start=(150, 20), shape=(150, 180)": face,
    "rel_start, rel_end": lower,
}
