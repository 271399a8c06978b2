# SPDX-License-Identifier: Apache-2.0
import numpy as np

from stoker import eager

# Three boxes: left, top, right, bottom.
anchors = (0.0, 0.0, 0.5, 0.5, 0.5, 0.5, 1.0, 1.0, 0.125, 0.25, 0.375, 0.75)
boxes = np.array([[0.5, 0.5, 1.0, 0.75]], np.float32)
targets, labels = eager.box_encoder(boxes, np.array([7], np.int32), anchors=anchors)
print(labels)  # [0 7 0]
print(targets)
# [[0.25  0.25  0.5   0.5  ]
#  [0.75  0.625 0.5   0.25 ]
#  [0.25  0.5   0.25  0.5  ]]

# ---- figure ----
from figures import cells

figure = {"boxes": cells(boxes), "targets": cells(targets)}
