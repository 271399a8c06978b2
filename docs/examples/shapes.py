# SPDX-License-Identifier: Apache-2.0
import numpy as np

from stoker import eager

x = [np.zeros((300, 451, 3), np.uint8), np.zeros((512, 512, 3), np.uint8)]  # two rows
print(list(eager.shapes(x)))
# [array([300, 451,   3], dtype=int64), array([512, 512,   3], dtype=int64)]

# ---- figure ----
from figures import cells

figure = {"shapes(x), a line per row": cells(np.stack(list(eager.shapes(x))))}
