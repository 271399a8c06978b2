# SPDX-License-Identifier: Apache-2.0
import numpy as np

from stoker import eager, types

image = eager.imread("coffee.jpg")
flat = eager.normalize(image, axis_names="HW")  # each channel
print(np.round(flat.std((0, 1), dtype=np.float64), 4))  # [1. 1. 1.]
shown = eager.normalize(image, axis_names="HW", scale=50.0, shift=128.0, dtype=types.UINT8)

# ---- figure ----
figure = {"image": image, "scale=50.0, shift=128.0": shown}
