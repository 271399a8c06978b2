# SPDX-License-Identifier: Apache-2.0
import numpy as np

from stoker import eager

corners = [[10, 10, 60, 60], [12, 9, 61, 58], [80, 20, 140, 90], [5, 70, 30, 95]]
boxes = np.array(corners, np.float32)
scores = np.array([0.9, 0.3, 0.8, 0.1], np.float32)
kept = eager.nms(boxes, scores, iou_threshold=0.5)
print(kept)  # [0 2 3]
print(eager.nms(boxes, scores, labels=[0, 1, 0, 0]))  # [0 2 1 3]

# ---- figure ----
from figures import cells

figure = {"boxes": cells(boxes, rows=np.isin(range(4), kept)), "kept": cells(boxes[kept])}
