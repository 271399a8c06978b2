# SPDX-License-Identifier: Apache-2.0
from stoker import eager

image = eager.imread("coffee.jpg")  # uint8 (400, 600, 3)
turned = eager.hsv(image, hue=120)
vivid = eager.hsv(image, saturation=1.8, value=1.1)

# ---- figure ----
figure = {"image": image, "hue=120": turned, "saturation=1.8, value=1.1": vivid}
