# SPDX-License-Identifier: Apache-2.0
import numpy as np

from stoker import eager

image = np.zeros((60, 90, 3), np.uint8)
polygons = np.array([[0, 0, 3], [1, 3, 6], [1, 6, 9]], np.int32)  # the second object has two parts
vertices = [(5, 50), (25, 8), (45, 50), (50, 10), (65, 10), (65, 30), (70, 55), (85, 35), (85, 55)]
labels = np.array([1, 2], np.int32)
masks = eager.segmentation.polygon_masks(polygons, np.array(vertices, np.float32), labels, image)
print(masks.shape, masks.sum((1, 2)))  # (2, 60, 90) [844 300]

# ---- figure ----
figure = {"first object": masks[0] * 255, "second object": masks[1] * 255}
