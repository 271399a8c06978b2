# SPDX-License-Identifier: Apache-2.0
import numpy as np

from stoker import eager

boxes = np.array([[0.5, 0.25, 0.5, 0.5]], np.float32)  # x, y, w, h
print(eager.bbox_paste(boxes, ratio=2.0, paste_x=0.0, paste_y=1.0))  # [[0.25  0.625 0.25  0.25 ]]

# ---- figure ----
from figures import cells

figure = {
    "boxes": cells(boxes),
    "ratio=2, paste_x=0, paste_y=1": cells(eager.bbox_paste(boxes, ratio=2, paste_x=0, paste_y=1)),
}
