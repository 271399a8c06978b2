# SPDX-License-Identifier: Apache-2.0
from stoker import eager

image = eager.imread("coffee.jpg")  # uint8 (400, 600, 3)
gray = eager.saturation(image, saturation=0)
faded = eager.saturation(image, saturation=0.5)
vivid = eager.saturation(image, saturation=2)

# ---- figure ----
figure = {"image": image, "saturation=0": gray, "saturation=0.5": faded, "saturation=2": vivid}
