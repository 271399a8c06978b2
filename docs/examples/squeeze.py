# SPDX-License-Identifier: Apache-2.0
import numpy as np

from stoker import eager

x = np.zeros((1, 300, 451, 1), np.uint8)
print(eager.squeeze(x, axes=[0]).shape)  # (300, 451, 1)
print(eager.squeeze(x, axes=[0, -1]).shape)  # (300, 451)

# ---- figure ----
from figures import cells


def extents(x):
    return cells(np.array(x.shape))


figure = {
    "extents": extents(x),
    "axes=[0]": extents(eager.squeeze(x, axes=[0])),
    "axes=[0, -1]": extents(eager.squeeze(x, axes=[0, -1])),
}
