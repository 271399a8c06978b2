# SPDX-License-Identifier: Apache-2.0
from stoker import eager

image = eager.imread("cat.jpg")  # uint8 (300, 451, 3)
bright = eager.brightness(image, brightness=1.5)
lifted = eager.brightness(image, brightness=0.6, brightness_shift=0.3)  # 0.6 * image + 0.3 * 255

# ---- figure ----
figure = {"image": image, "brightness=1.5": bright, "brightness=0.6, brightness_shift=0.3": lifted}
