# SPDX-License-Identifier: Apache-2.0
import numpy as np

from stoker import eager

boxes = np.array([[10, 10, 60, 60], [12, 9, 61, 58], [80, 20, 140, 90]], np.float32)
scores = np.array([0.9, 0.3, 0.8], np.float32)
print(eager.batched_nms(boxes, scores, np.array([0, 0, 0])))  # [0 2]
print(eager.batched_nms(boxes, scores, np.array([0, 1, 0])))  # [0 2 1]

# ---- figure ----
from figures import cells

kept = eager.batched_nms(boxes, scores, np.array([0, 1, 0]))
figure = {"boxes": cells(boxes), "kept": cells(boxes[kept])}
