# SPDX-License-Identifier: Apache-2.0
import numpy as np

from stoker import eager

x = np.arange(6)
print(eager.reshape(x, shape=[2, 3]))
# [[0 1 2]
#  [3 4 5]]
print(eager.reshape(x, shape=[-1, 2]).shape)  # (3, 2)

image = eager.imread("cat.jpg")
print(eager.reshape(image, rel_shape=[1, -1]).shape)  # (300, 1353)

# A new axis before the channels:
print(eager.reshape(image, src_dims=[0, 1, -1, 2]).shape)  # (300, 451, 1, 3)

# ---- figure ----
from figures import cells

figure = {
    "x": cells(x),
    "shape=[2, 3]": cells(eager.reshape(x, shape=[2, 3])),
    "shape=[-1, 2]": cells(eager.reshape(x, shape=[-1, 2])),
}
