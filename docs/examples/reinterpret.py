# SPDX-License-Identifier: Apache-2.0
import numpy as np

from stoker import eager, types

data = np.array([[1, 0, 2, 0], [255, 1, 0, 0]], np.uint8)
print(eager.reinterpret(data, dtype=types.UINT16))
# [[  1   2]
#  [511   0]]
print(eager.reinterpret(data, dtype=types.UINT16, shape=[-1]))  # [  1   2 511   0]

# ---- figure ----
from figures import cells

figure = {"data": cells(data), "dtype=UINT16": cells(eager.reinterpret(data, dtype=types.UINT16))}
