# SPDX-License-Identifier: Apache-2.0
import numpy as np

from stoker import eager

image = eager.imread("coffee.jpg")  # uint8 (400, 600, 3)
shapes = [np.array(image.shape)] * 4
# Four rows, and one draw per row:
anchors, windows = eager.random_crop_generator(shapes, random_area=(0.05, 0.3), seed=3)
print(anchors[0], windows[0])  # [ 85 158] [222 219]

# ---- figure ----
from figures import outlined

boxes = [(*a, *(a + w)) for a, w in zip(anchors, windows, strict=True)]
figure = {"four windows": outlined(image, *boxes)}
