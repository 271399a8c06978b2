# SPDX-License-Identifier: Apache-2.0
import numpy as np

from stoker import eager

gray = np.zeros((300, 451), np.uint8)
print(eager.expand_dims(gray, axes=[2]).shape)  # (300, 451, 1)
print(eager.expand_dims(gray, axes=[0, 3]).shape)  # (1, 300, 451, 1)
