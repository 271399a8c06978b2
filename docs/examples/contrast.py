# SPDX-License-Identifier: Apache-2.0
from stoker import eager

image = eager.imread("cat.jpg")  # uint8 (300, 451, 3)
strong = eager.contrast(image, contrast=1.8)
flat = eager.contrast(image, contrast=0.4)  # around contrast_center, 128 for uint8

# ---- figure ----
figure = {"image": image, "contrast=1.8": strong, "contrast=0.4": flat}
