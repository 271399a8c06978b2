# SPDX-License-Identifier: Apache-2.0
import numpy as np

from stoker import eager

gray = np.zeros((300, 451), np.uint8)
print(eager.expand_dims(gray, axes=[2]).shape)  # (300, 451, 1)
print(eager.expand_dims(gray, axes=[0, 3]).shape)  # (1, 300, 451, 1)

# ---- figure ----
from figures import cells


def extents(x):
    return cells(np.array(x.shape))


figure = {
    "extents": extents(gray),
    "axes=[2]": extents(eager.expand_dims(gray, axes=[2])),
    "axes=[0, 3]": extents(eager.expand_dims(gray, axes=[0, 3])),
}
