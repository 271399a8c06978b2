# SPDX-License-Identifier: Apache-2.0
import numpy as np

from stoker import eager

image = eager.imread("cat.jpg")  # uint8 (300, 451, 3)
points = np.array([[130, 60], [225, 60], [180, 120]], np.float32)  # x and y in pixels
mirrored = eager.flip(image)
moved = eager.coord_flip(points, center_x=451 / 2)
print(moved)
# [[321.  60.]
#  [226.  60.]
#  [271. 120.]]

# ---- figure ----
from figures import outlined


def marked(picture, points):
    return outlined(picture, *((y - 6, x - 6, y + 6, x + 6) for x, y in points))


figure = {"image, points": marked(image, points), "flip(image), coord_flip(points)": marked(mirrored, moved)}
