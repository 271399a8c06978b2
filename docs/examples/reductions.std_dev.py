# SPDX-License-Identifier: Apache-2.0
import numpy as np

from stoker import eager

x = np.array([[1, 2, 3], [4, 5, 9]], np.float32)
mean = eager.reductions.mean(x, axes=1)
print(eager.reductions.std_dev(x, mean, axes=1))  # [0.8164966 2.1602468]
print(eager.reductions.std_dev(x, mean, axes=1, ddof=1))  # [1.        2.6457512]

# ---- figure ----
from figures import bars, cells

rows = ["row 0", "row 1"]
figure = {
    "x": cells(x),
    "mean": bars(mean, rows),
    "axes=1": bars(eager.reductions.std_dev(x, mean, axes=1), rows),
    "axes=1, ddof=1": bars(eager.reductions.std_dev(x, mean, axes=1, ddof=1), rows),
}
