# SPDX-License-Identifier: Apache-2.0
from stoker import eager

image = eager.imread("cat.jpg")  # uint8 (300, 451, 3)
dark = eager.experimental.erode(image, mask_size=9)
opened = eager.experimental.dilate(dark, mask_size=9)  # bright spots are gone

# ---- figure ----
figure = {"image": image, "mask_size=9": dark, "dilate(erode(image))": opened}
