# SPDX-License-Identifier: Apache-2.0
import numpy as np

from stoker import eager

x = np.zeros((2, 3), np.uint8)
print(eager.full_like(x, np.uint8(7)))
# [[7 7 7]
#  [7 7 7]]

# ---- figure ----
from figures import cells

figure = {"x": cells(x), "full_like(x, 7)": cells(eager.full_like(x, np.uint8(7)))}
