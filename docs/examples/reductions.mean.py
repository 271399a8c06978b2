# SPDX-License-Identifier: Apache-2.0
import numpy as np

from stoker import eager, types

x = np.array([[3, 9, 1], [7, 5, 8]], np.uint8)
print(eager.reductions.mean(x))  # 5.5
print(eager.reductions.mean(x, axes=0))  # [5.  7.  4.5]
print(eager.reductions.mean(x, axes=0, dtype=types.UINT8))  # [5 7 4]

image = eager.imread("cat.jpg")  # uint8 (300, 451, 3), HWC
per_channel = eager.reductions.mean(image, axis_names="HW")
print(per_channel.shape)  # (3,)

# ---- figure ----
from figures import bars

figure = {"image": image, 'axis_names="HW"': bars(per_channel, ["red", "green", "blue"])}
