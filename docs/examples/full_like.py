# SPDX-License-Identifier: Apache-2.0
import numpy as np

from stoker import eager

x = np.zeros((2, 3), np.uint8)
print(eager.full_like(x, np.uint8(7)))
# [[7 7 7]
#  [7 7 7]]
