# SPDX-License-Identifier: Apache-2.0
from stoker import eager

image = eager.imread("cat.jpg")  # uint8 (300, 451, 3)
wide = eager.experimental.dilate(image, mask_size=9)
beam = eager.experimental.dilate(image, mask_size=[41, 1], anchor=[0, 0])  # (width, height)

# ---- figure ----
figure = {"image": image, "mask_size=9": wide, "mask_size=[41, 1], anchor=[0, 0]": beam}
