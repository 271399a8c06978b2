# SPDX-License-Identifier: Apache-2.0
from stoker import eager, types

print(eager.zeros(shape=[2, 3]))
# [[0 0 0]
#  [0 0 0]]
print(eager.zeros(shape=[2], dtype=types.FLOAT))  # [0. 0.]

# ---- figure ----
from figures import cells

figure = {"zeros(shape=[2, 3])": cells(eager.zeros(shape=[2, 3])), "shape=[2]": cells(eager.zeros(shape=[2]))}
