# SPDX-License-Identifier: Apache-2.0
import numpy as np

from stoker import eager, types

labels = np.array([2, 0, 7], np.int32)  # 7 is no class
print(eager.one_hot(labels, num_classes=3))
# [[0. 0. 1.]
#  [1. 0. 0.]
#  [0. 0. 0.]]
print(eager.one_hot(labels[0], num_classes=3, on_value=0.9, off_value=0.05))  # [0.05 0.05 0.9 ]
print(eager.one_hot(labels, num_classes=3, axis=0, dtype=types.UINT8))
# [[0 1 0]
#  [0 0 0]
#  [1 0 0]]

# ---- figure ----
from figures import cells

figure = {"labels": cells(labels, column=True), "num_classes=3": cells(eager.one_hot(labels, num_classes=3))}
