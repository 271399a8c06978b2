# SPDX-License-Identifier: Apache-2.0
from pathlib import Path

from stoker import eager, types

data = Path("cat.jpg").read_bytes()
image = eager.decoders.image(data)
gray = eager.decoders.image(data, output_type=types.GRAY)
eighth = eager.decoders.image(data, scale_denom=8)
print(image.shape, gray.shape, eighth.shape, image.dtype)
# (300, 451, 3) (300, 451, 1) (38, 57, 3) uint8

floats = eager.decoders.image(data, dtype=types.FLOAT)  # 0 to 1
print(floats.dtype, floats.max() <= 1)  # float32 True

# ---- figure ----
figure = {"image": image, "output_type=types.GRAY": gray, "scale_denom=8": eighth}
