# SPDX-License-Identifier: Apache-2.0
import numpy as np

from stoker import eager

# Centre, width, height, degrees.
boxes = np.array([[50, 50, 40, 10, 30], [51, 50, 40, 10, 32], [50, 50, 40, 10, 120]], np.float32)
scores = np.array([0.9, 0.8, 0.7], np.float32)
print(eager.nms_rotated(boxes, scores, iou_threshold=0.5))  # [0 2]

# ---- figure ----
from figures import cells

kept = eager.nms_rotated(boxes, scores, iou_threshold=0.5)
figure = {"boxes": cells(boxes, rows=np.isin(range(3), kept)), "kept": cells(boxes[kept])}
