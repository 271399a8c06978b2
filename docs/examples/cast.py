# SPDX-License-Identifier: Apache-2.0
import numpy as np

from stoker import eager, types

x = np.array([-3.0, 0.5, 1.5, 99.7, 300.0, np.nan], np.float32)
print(eager.cast(x, dtype=types.UINT8))  # [  0   0   2 100 255   0]
print(eager.cast(x, dtype=types.INT16))  # [ -3   0   2 100 300   0]
print(eager.cast(x, dtype=types.BOOL))  # [ True  True  True  True  True  True]

# ---- figure ----
from figures import cells

figure = {
    "x": cells(x),
    "dtype=UINT8": cells(eager.cast(x, dtype=types.UINT8)),
    "dtype=INT16": cells(eager.cast(x, dtype=types.INT16)),
    "dtype=BOOL": cells(eager.cast(x, dtype=types.BOOL)),
}
