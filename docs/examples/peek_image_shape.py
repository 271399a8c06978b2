# SPDX-License-Identifier: Apache-2.0
from pathlib import Path

from stoker import eager, types

data = Path("cat.jpg").read_bytes()
print(eager.peek_image_shape(data))  # [300 451   3]
print(eager.peek_image_shape(data, image_type=types.GRAY))  # [300 451   1]
print(eager.peek_image_shape(data, scale_denom=4))  # [ 75 113   3]

# ---- figure ----
from figures import cells

figure = {
    "cat.jpg": eager.imread("cat.jpg"),
    "peek_image_shape": cells(eager.peek_image_shape(data)),
    "scale_denom=4": cells(eager.peek_image_shape(data, scale_denom=4)),
}
