# SPDX-License-Identifier: Apache-2.0
import numpy as np

from stoker import eager

x = np.array([[3, 4], [6, 8]], np.float32)
print(eager.reductions.rms(x, axes=1))  # [3.535534 7.071068]

# ---- figure ----
from figures import bars, cells

figure = {"x": cells(x), "axes=1": bars(eager.reductions.rms(x, axes=1), ["row 0", "row 1"])}
