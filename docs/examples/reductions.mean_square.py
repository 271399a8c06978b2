# SPDX-License-Identifier: Apache-2.0
import numpy as np

from stoker import eager

x = np.array([[1, 2, 3], [4, 5, 6]], np.float32)
print(eager.reductions.mean_square(x, axes=1))  # [ 4.6666665 25.666666 ]

# ---- figure ----
from figures import bars, cells

figure = {"x": cells(x), "axes=1": bars(eager.reductions.mean_square(x, axes=1), ["row 0", "row 1"])}
