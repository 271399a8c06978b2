# SPDX-License-Identifier: Apache-2.0
import numpy as np

from stoker import eager

points = np.array([[0, 0], [2, 0], [2, 1]], np.float32)  # x and y
print(eager.coord_transform(points, M=2, T=[1, 5]))
# [[1. 5.]
#  [5. 5.]
#  [5. 7.]]

# A quarter turn, as a matrix with the translation as last column:
turned = eager.coord_transform(points, MT=[0, -1, 3, 1, 0, 4])
print(turned)
# [[3. 4.]
#  [3. 6.]
#  [2. 6.]]

# ---- figure ----
from figures import cells

figure = {
    "points": cells(points),
    "M=2, T=[1, 5]": cells(eager.coord_transform(points, M=2, T=[1, 5])),
    "MT=[0, -1, 3, 1, 0, 4]": cells(turned),
}
