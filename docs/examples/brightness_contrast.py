# SPDX-License-Identifier: Apache-2.0
from stoker import eager

image = eager.imread("cat.jpg")  # uint8 (300, 451, 3)
strong = eager.brightness_contrast(image, brightness=1.1, contrast=1.6)
flat = eager.brightness_contrast(image, contrast=0.3, contrast_center=128)

# ---- figure ----
figure = {"image": image, "brightness=1.1, contrast=1.6": strong, "contrast=0.3": flat}
