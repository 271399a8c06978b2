# SPDX-License-Identifier: Apache-2.0
import numpy as np

from stoker import eager

image = eager.imread("cat.jpg")  # uint8 (300, 451, 3)
boxes = np.array([[0.25, 0.125, 0.5, 0.75], [0.55, 0.3, 0.75, 0.6]], np.float32)
labels = np.array([1, 2], np.int32)
anchor, shape, kept, names = eager.random_bbox_crop(
    boxes,
    labels,
    scaling=(0.3, 1.0),
    aspect_ratio=(0.5, 2.0),
    thresholds=(0.1, 0.3),
    seed=5,
    num_attempts=50,
)
window = eager.slice(image, anchor, shape, axis_names="WH")
print(names, kept.round(2))
# [1 2] [[0.25 0.12 0.5  0.75]
#  [0.55 0.3  0.75 0.6 ]]

# ---- figure ----
from figures import outlined


def marked(picture, boxes):
    height, width = picture.shape[:2]
    return outlined(picture, *((y0 * height, x0 * width, y1 * height, x1 * width) for x0, y0, x1, y1 in boxes))


figure = {"image, boxes": marked(image, boxes), "window, kept": marked(window, kept)}
