# SPDX-License-Identifier: Apache-2.0
from stoker import eager

image = eager.imread("cat.jpg")  # uint8 (300, 451, 3)
turned = eager.rotate(image, angle=30, fill_value=0)  # the canvas grows
same_size = eager.rotate(image, angle=30, keep_size=True, fill_value=128)
edges = eager.rotate(image, angle=30, keep_size=True)  # outside: the nearest edge pixel
print(turned.shape, same_size.shape)  # (486, 541, 3) (300, 451, 3)

# ---- figure ----
figure = {
    "image": image, "angle=30": turned, "keep_size=True, fill_value=128": same_size, "keep_size=True": edges,
}  # fmt: skip
