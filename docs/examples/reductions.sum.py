# SPDX-License-Identifier: Apache-2.0
import numpy as np

from stoker import eager, types

x = np.array([[3, 9, 1], [7, 5, 8]], np.uint8)
print(eager.reductions.sum(x))  # 33
print(eager.reductions.sum(x, axes=0).dtype)  # uint64
print(eager.reductions.sum(x, axes=1, dtype=types.FLOAT))  # [13. 20.]

# ---- figure ----
from figures import cells

figure = {
    "x": cells(x),
    "sum(x)": cells(eager.reductions.sum(x)),
    "axes=0": cells(eager.reductions.sum(x, axes=0)),
    "axes=1": cells(eager.reductions.sum(x, axes=1), column=True),
}
