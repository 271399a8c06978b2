# SPDX-License-Identifier: Apache-2.0
import numpy as np

from stoker import eager

labels = np.array([7, 3, 9, 9, 1], np.int32)
kept = np.array([4, 0, -2], np.int32)
print(eager.gather(labels, kept))  # [1 7 9]
table = np.arange(12, dtype=np.float32).reshape(3, 4)
print(eager.gather(table, np.array([2, 0], np.int32), axis=1))
# [[ 2.  0.]
#  [ 6.  4.]
#  [10.  8.]]

# ---- figure ----
from figures import cells

figure = {"table": cells(table), "columns 2, 0": cells(table[:, [2, 0]])}
