# SPDX-License-Identifier: Apache-2.0
from stoker import eager, types

print(eager.constant(idata=[1, 2, 300], dtype=types.UINT8))  # [  1   2 255]
print(eager.constant(fdata=0.5, shape=[2, 3]))
# [[0.5 0.5 0.5]
#  [0.5 0.5 0.5]]

# ---- figure ----
from figures import cells

figure = {"idata=[1, 2, 300], dtype=UINT8": cells(eager.constant(idata=[1, 2, 300], dtype=types.UINT8))}
