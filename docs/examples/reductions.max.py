# SPDX-License-Identifier: Apache-2.0
import numpy as np

from stoker import eager

x = np.array([[3, 9, 1], [7, 5, 8]], np.uint8)
print(eager.reductions.max(x))  # 9
print(eager.reductions.max(x, axes=0))  # [7 9 8]
print(eager.reductions.max(x, axes=1, keep_dims=True))
# [[9]
#  [8]]

# ---- figure ----
from figures import cells

figure = {
    "x": cells(x),
    "max(x)": cells(eager.reductions.max(x)),
    "axes=0": cells(eager.reductions.max(x, axes=0)),
    "axes=1, keep_dims=True": cells(eager.reductions.max(x, axes=1, keep_dims=True)),
}
