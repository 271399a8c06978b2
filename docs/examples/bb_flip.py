# SPDX-License-Identifier: Apache-2.0
import numpy as np

from stoker import eager

image = eager.imread("cat.jpg")  # uint8 (300, 451, 3)
boxes = np.array([[0.25, 0.125, 0.5, 0.75]], np.float32)  # left, top, right, bottom
mirrored = eager.flip(image)
moved = eager.bb_flip(boxes, ltrb=True)
print(moved)  # [[0.5   0.125 0.75  0.75 ]]

# ---- figure ----
from figures import outlined


def marked(picture, boxes):
    height, width = picture.shape[:2]
    return outlined(picture, *((y0 * height, x0 * width, y1 * height, x1 * width) for x0, y0, x1, y1 in boxes))


figure = {"image, boxes": marked(image, boxes), "flip(image), bb_flip(boxes)": marked(mirrored, moved)}
