# SPDX-License-Identifier: Apache-2.0
import numpy as np

from stoker import eager, types

image = eager.imread("cat.jpg")  # uint8 (300, 451, 3)
sharpen = np.array([[0, -1, 0], [-1, 5, -1], [0, -1, 0]], np.float32)
edges = np.array([[-1, 0, 1], [-2, 0, 2], [-1, 0, 1]], np.float32)
sharp = eager.filter(image, sharpen)
slopes = eager.filter(image, edges, dtype=types.FLOAT)  # negative values too
print(sharp.dtype, slopes.dtype, slopes.min() < 0)  # uint8 float32 True

# ---- figure ----
figure = {"image": image, "sharpen": sharp, "edges, 128 + slopes / 4": 128 + slopes / 4}
