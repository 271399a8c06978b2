# SPDX-License-Identifier: Apache-2.0
from stoker import eager, types

print(eager.ones(shape=[2, 3]))
# [[1 1 1]
#  [1 1 1]]
print(eager.ones(shape=[2], dtype=types.FLOAT))  # [1. 1.]
