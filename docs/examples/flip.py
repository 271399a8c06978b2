# SPDX-License-Identifier: Apache-2.0
from stoker import eager

image = eager.imread("cat.jpg")  # uint8 (300, 451, 3)
mirrored = eager.flip(image)
upside_down = eager.flip(image, horizontal=0, vertical=1)

# ---- figure ----
figure = {"image": image, "flip(image)": mirrored, "horizontal=0, vertical=1": upside_down}
