# SPDX-License-Identifier: Apache-2.0
import numpy as np

from stoker import eager

print(eager.copy(np.array([1, 2, 3])))  # [1 2 3]

# ---- figure ----
from figures import cells

figure = {"x": cells(np.array([1, 2, 3])), "copy(x)": cells(eager.copy(np.array([1, 2, 3])))}
