# SPDX-License-Identifier: Apache-2.0
import numpy as np

from stoker import eager

image = eager.imread("cat.jpg")  # uint8 (300, 451, 3)
raw = np.array(image[..., 1])  # green, with red and blue pixels in every second row and column
raw[0::2, 0::2], raw[1::2, 1::2] = image[0::2, 0::2, 0], image[1::2, 1::2, 2]
colors = eager.debayer(raw, blue_position=(0, 0))
print(raw.shape, colors.shape)  # (300, 451) (300, 451, 3)

# ---- figure ----
figure = {"raw": raw, "debayer(raw)": colors}
