# SPDX-License-Identifier: Apache-2.0
import numpy as np

from stoker import eager, types

x = np.zeros((2, 3), np.uint8)
print(eager.ones_like(x))
# [[1 1 1]
#  [1 1 1]]
print(eager.ones_like(x, dtype=types.FLOAT).dtype)  # float32

# ---- figure ----
from figures import cells

figure = {"x": cells(x), "ones_like(x)": cells(eager.ones_like(x))}
