# SPDX-License-Identifier: Apache-2.0
import numpy as np

from stoker import eager

a = np.array([[1, 2, 3], [4, 5, 6]])
b = np.array([[7, 8, 9]])
rows = eager.cat(a, b)
print(rows)
# [[1 2 3]
#  [4 5 6]
#  [7 8 9]]

columns = eager.cat(a, a, axis=1)
print(columns)
# [[1 2 3 1 2 3]
#  [4 5 6 4 5 6]]

# ---- figure ----
from figures import cells

figure = {"a": cells(a), "b": cells(b), "cat(a, b)": cells(rows), "cat(a, a, axis=1)": cells(columns)}
