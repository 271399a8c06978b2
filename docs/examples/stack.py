# SPDX-License-Identifier: Apache-2.0
import numpy as np

from stoker import eager

a, b = np.array([1, 2, 3]), np.array([4, 5, 6])
print(eager.stack(a, b))
# [[1 2 3]
#  [4 5 6]]
print(eager.stack(a, b, axis=1))
# [[1 4]
#  [2 5]
#  [3 6]]

# ---- figure ----
from figures import cells

figure = {
    "a": cells(a),
    "b": cells(b),
    "stack(a, b)": cells(np.stack([a, b])),
    "stack(a, b, axis=1)": cells(np.stack([a, b], 1)),
}
