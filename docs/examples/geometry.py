# SPDX-License-Identifier: Apache-2.0
import numpy as np

from stoker import eager

image = eager.imread("cat.jpg")  # uint8 (300, 451, 3)
boxes = np.array([[113, 37, 226, 225], [10, 10, 40, 30]], np.float32)
labels = np.array([7, 8])
turn = eager.transforms.rotation(angle=20.0, center=(225.0, 150.0))
zoom = eager.transforms.scale(scale=(1.3, 1.3), center=(225.0, 150.0))
moved, kept, names = eager.geometry(
    image, boxes=boxes, labels=labels, ops=[turn, zoom], min_visibility=0.3, fill_value=0.0
)
print(kept.round(1), names)  # [[ 54.8   0.  276.5 242.1]] [7]

# ---- figure ----
from figures import outlined


def marked(picture, boxes):
    return outlined(picture, *((y0, x0, y1, x1) for x0, y0, x1, y1 in boxes))


figure = {"image, boxes": marked(image, boxes), "moved, kept": marked(moved, kept)}
