# SPDX-License-Identifier: Apache-2.0
import numpy as np

from stoker import eager

features = np.arange(64, dtype=np.float32).reshape(8, 8, 1)
boxes = np.array([[0, 0, 4, 4], [2, 2, 8, 8]], np.float32)
pooled = eager.roi_align(features, boxes, output_size=2, aligned=True)
print(pooled.shape)  # (2, 2, 2, 1)
print(pooled[0, ..., 0])
# [[ 4.5  6.5]
#  [20.5 22.5]]

# ---- figure ----
from figures import cells

figure = {"features": cells(features[..., 0]), "first box": cells(pooled[0, ..., 0])}
