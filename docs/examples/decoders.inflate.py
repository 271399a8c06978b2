# SPDX-License-Identifier: Apache-2.0
import numpy as np

from stoker import eager

# Four literal bytes, a copy of four bytes from two bytes before, and two more literal bytes:
block = bytes([0x40, 1, 2, 3, 4, 2, 0, 0x20, 5, 6])
inflated = eager.decoders.inflate(np.frombuffer(block, np.uint8), shape=[2, 5])
print(np.asarray(inflated).tolist())  # [[1, 2, 3, 4, 3], [4, 3, 4, 5, 6]]

# ---- figure ----
from figures import cells

figure = {"decompressed": cells(inflated)}
