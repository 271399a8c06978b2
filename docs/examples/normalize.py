# SPDX-License-Identifier: Apache-2.0
import numpy as np

from stoker import eager, types

image = eager.imread("coffee.jpg")
flat = eager.normalize(image, axis_names="HW")  # each channel
print(np.abs(flat.mean((0, 1))).max() < 1e-4, np.abs(flat.std((0, 1)) - 1).max() < 1e-4)  # True True
shown = eager.normalize(image, axis_names="HW", scale=50.0, shift=128.0, dtype=types.UINT8)

# ---- figure ----
figure = {"image": image, "scale=50.0, shift=128.0": shown}
