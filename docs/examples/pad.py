# SPDX-License-Identifier: Apache-2.0
import numpy as np

from stoker import eager

image = eager.imread("cat.jpg")  # uint8 (300, 451, 3)
square = eager.pad(image, axis_names="HW", shape=[460, 460], fill_value=90)
print(square.shape)  # (460, 460, 3)
print(eager.pad(image, axis_names="HW", align=32).shape)  # (320, 480, 3)

boxes = [np.ones((n, 4), np.float32) for n in (2, 0, 5)]
print([rows.shape for rows in eager.pad(boxes, axes=[0])])  # [(5, 4), (5, 4), (5, 4)]

# ---- figure ----
figure = {"image": image, "shape=[460, 460], fill_value=90": square}
