# SPDX-License-Identifier: Apache-2.0
import numpy as np

from stoker import eager

x = np.array([-3.0, 0.5, 1.5, 99.7, 300.0, np.nan], np.float32)
image = eager.imread("cat.jpg")  # uint8
print(eager.cast_like(x, image))  # [  0   0   2 100 255   0]

# ---- figure ----
from figures import cells

figure = {"x, float32": cells(x), "like an image, uint8": cells(eager.cast_like(x, image))}
