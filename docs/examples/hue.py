# SPDX-License-Identifier: Apache-2.0
from stoker import eager

image = eager.imread("coffee.jpg")  # uint8 (400, 600, 3)
turned = [eager.hue(image, hue=degrees) for degrees in (60, 120, 180, 240, 300)]

# ---- figure ----
figure = {"image": image} | {f"hue={60 * (i + 1)}": one for i, one in enumerate(turned)}
