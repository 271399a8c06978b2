# SPDX-License-Identifier: Apache-2.0
import numpy as np

from stoker import eager, types

x = np.ones((2, 3), np.uint8)
print(eager.zeros_like(x))
# [[0 0 0]
#  [0 0 0]]
print(eager.zeros_like(x, dtype=types.FLOAT).dtype)  # float32

# ---- figure ----
from figures import cells

figure = {"x": cells(x), "zeros_like(x)": cells(eager.zeros_like(x))}
