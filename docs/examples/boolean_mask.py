# SPDX-License-Identifier: Apache-2.0
import numpy as np

from stoker import eager

boxes = np.array([[10, 10, 60, 60], [12, 9, 61, 58], [80, 20, 140, 90], [5, 70, 30, 95]])
scores = np.array([0.9, 0.3, 0.8, 0.1], np.float32)
kept = eager.boolean_mask(boxes, scores > 0.5)
print(kept)
# [[ 10  10  60  60]
#  [ 80  20 140  90]]

# ---- figure ----
from figures import cells

figure = {
    "boxes": cells(boxes, rows=scores > 0.5),
    "scores > 0.5": cells(scores > 0.5, column=True),
    "kept": cells(kept),
}
