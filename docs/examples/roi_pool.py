# SPDX-License-Identifier: Apache-2.0
import numpy as np

from stoker import eager

features = np.arange(64, dtype=np.float32).reshape(8, 8, 1)
boxes = np.array([[0, 0, 3, 3], [2, 2, 7, 7]], np.float32)
pooled = eager.roi_pool(features, boxes, output_size=2)
print(pooled[0, ..., 0])
# [[ 9. 11.]
#  [25. 27.]]

# ---- figure ----
from figures import cells

figure = {"features": cells(features[..., 0]), "first box": cells(pooled[0, ..., 0])}
