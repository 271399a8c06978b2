# SPDX-License-Identifier: Apache-2.0
import numpy as np

from stoker import eager

print(eager.full(np.float32(0.5), shape=[2, 3]))
# [[0.5 0.5 0.5]
#  [0.5 0.5 0.5]]
print(eager.full(np.array([1, 2, 3]), shape=[2, 3]))
# [[1 2 3]
#  [1 2 3]]

# ---- figure ----
from figures import cells

figure = {
    "full(0.5, shape=[2, 3])": cells(eager.full(np.float32(0.5), shape=[2, 3])),
    "full([1, 2, 3], shape=[2, 3])": cells(eager.full(np.array([1, 2, 3]), shape=[2, 3])),
}
