# SPDX-License-Identifier: Apache-2.0
import numpy as np

from stoker import eager

x = np.array([[3, 9, 1], [7, 5, 8]], np.uint8)
print(eager.reductions.min(x))  # 1
print(eager.reductions.min(x, axes=0))  # [3 5 1]
print(eager.reductions.min(x, axes=1, keep_dims=True))
# [[1]
#  [5]]

# ---- figure ----
from figures import cells

figure = {
    "x": cells(x),
    "min(x)": cells(eager.reductions.min(x)),
    "axes=0": cells(eager.reductions.min(x, axes=0)),
    "axes=1, keep_dims=True": cells(eager.reductions.min(x, axes=1, keep_dims=True)),
}
