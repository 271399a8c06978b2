# SPDX-License-Identifier: Apache-2.0
from stoker import eager

image = eager.imread("cat.jpg")
small = eager.experimental.resize(image, resize_shorter=100)
print(small.shape)  # (100, 150, 3)

# ---- figure ----
figure = {"image": image, "resize_shorter=100": small}
