# SPDX-License-Identifier: Apache-2.0
import numpy as np

from stoker import eager

boxes = np.array([[10, 10, 60, 60], [12, 9, 61, 58], [80, 20, 140, 90]], np.float32)
scores = np.array([0.9, 0.85, 0.8], np.float32)
kept, decayed = eager.soft_nms(boxes, scores, sigma=0.5)
print(kept)  # [0 2 1]
print(decayed.round(3))  # [0.9   0.8   0.176]

# ---- figure ----
from figures import cells

figure = {"scores": cells(scores[kept], column=True), "decayed": cells(decayed.round(2), column=True)}
