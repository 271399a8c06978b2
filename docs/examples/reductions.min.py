# SPDX-License-Identifier: Apache-2.0
import numpy as np

from stoker import eager

x = np.array([[3, 9, 1], [7, 5, 8]], np.uint8)
print(eager.reductions.min(x))  # 1
print(eager.reductions.min(x, axes=0))  # [3 5 1]
print(eager.reductions.min(x, axes=1, keep_dims=True))
# [[1]
#  [5]]
