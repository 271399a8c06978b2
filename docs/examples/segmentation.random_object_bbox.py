# SPDX-License-Identifier: Apache-2.0
import numpy as np

from stoker import eager

labels = np.array(
    [
        [0, 1, 1, 0, 0],
        [0, 1, 0, 0, 2],
        [0, 0, 0, 2, 2],
    ],
    np.uint8,
)
anchor, shape, label = eager.segmentation.random_object_bbox(labels, output_class=True, seed=3)
print(anchor, shape, label)  # [0 1] [2 2] 1

# ---- figure ----
from figures import cells

figure = {"labels": cells(labels), "window": cells(labels[0:2, 1:3])}
