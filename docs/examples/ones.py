# SPDX-License-Identifier: Apache-2.0
from stoker import eager, types

print(eager.ones(shape=[2, 3]))
# [[1 1 1]
#  [1 1 1]]
print(eager.ones(shape=[2], dtype=types.FLOAT))  # [1. 1.]

# ---- figure ----
from figures import cells

figure = {"ones(shape=[2, 3])": cells(eager.ones(shape=[2, 3])), "shape=[2]": cells(eager.ones(shape=[2]))}
