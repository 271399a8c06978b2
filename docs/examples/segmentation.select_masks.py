# SPDX-License-Identifier: Apache-2.0
import numpy as np

from stoker import eager

polygons = np.array([[0, 0, 3], [1, 3, 6], [1, 6, 9]], np.int32)
vertices = np.arange(18, dtype=np.float32).reshape(9, 2)
masks = np.array([1], np.int32)
kept, points = eager.segmentation.select_masks(masks, polygons, vertices, reindex_masks=True)
print(kept.tolist(), points.shape)  # [[0, 0, 3], [0, 3, 6]] (6, 2)

# ---- figure ----
from figures import cells

figure = {"polygons": cells(polygons), "kept": cells(kept)}
