# SPDX-License-Identifier: Apache-2.0
import numpy as np

from stoker import eager

image = eager.imread("cat.jpg")  # uint8 (300, 451, 3)
boxes = np.array([[0.25, 0.125, 0.5, 0.75]], np.float32)
turned = eager.rotate(image, angle=30.0, fill_value=0.0)
moved = eager.bbox_rotate(boxes, angle=30.0, input_shape=image.shape)
print(moved.round(3))  # [[0.216 0.3   0.569 0.75 ]]

# ---- figure ----
from figures import outlined


def marked(picture, boxes):
    height, width = picture.shape[:2]
    return outlined(picture, *((y0 * height, x0 * width, y1 * height, x1 * width) for x0, y0, x1, y1 in boxes))


figure = {"image, boxes": marked(image, boxes), "rotate(image), bbox_rotate(boxes)": marked(turned, moved)}
