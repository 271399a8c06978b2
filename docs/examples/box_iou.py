# SPDX-License-Identifier: Apache-2.0
import numpy as np

from stoker import eager

boxes = np.array([[0, 0, 10, 10], [5, 0, 15, 10]], np.float32)
truth = np.array([[0, 0, 10, 10], [0, 0, 10, 5], [20, 20, 30, 30]], np.float32)
print(eager.box_iou(boxes, truth))
# [[1.         0.5        0.        ]
#  [0.33333334 0.2        0.        ]]
print(eager.box_iou(boxes, truth, kind="giou").round(2))
# [[ 1.    0.5  -0.78]
#  [ 0.33  0.03 -0.73]]

# ---- figure ----
from figures import cells

figure = {"iou": cells(eager.box_iou(boxes, truth).round(2))}
