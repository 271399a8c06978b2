# SPDX-License-Identifier: Apache-2.0
import numpy as np

from stoker import eager

mask = np.zeros((6, 8), np.uint8)
mask[4, 1:4] = 1
print(eager.segmentation.random_mask_pixel(mask, foreground=1, seed=2))  # [4 3]

# ---- figure ----
from figures import cells

figure = {"mask": cells(mask)}
