# SPDX-License-Identifier: Apache-2.0
import numpy as np

from stoker import eager

x = [np.array([10]), np.array([20, 21]), np.array([30])]  # three rows
print(list(eager.permute_batch(x, indices=[2, 0, 0])))
# [array([30], dtype=int64), array([10], dtype=int64), array([10], dtype=int64)]

# ---- figure ----
from figures import ragged

figure = {"x": ragged(x), "indices=[2, 0, 0]": ragged(eager.permute_batch(x, indices=[2, 0, 0]))}
