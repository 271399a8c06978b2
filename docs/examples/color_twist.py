# SPDX-License-Identifier: Apache-2.0
from stoker import eager

image = eager.imread("coffee.jpg")  # uint8 (400, 600, 3)
turned = eager.color_twist(image, hue=60)
faded = eager.color_twist(image, saturation=0.3, brightness=1.2)
strong = eager.color_twist(image, contrast=1.4, saturation=1.8)

# ---- figure ----
figure = {
    "image": image, "hue=60": turned, "saturation=0.3, brightness=1.2": faded, "contrast=1.4, saturation=1.8": strong,
}  # fmt: skip
