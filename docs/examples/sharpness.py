# SPDX-License-Identifier: Apache-2.0
from stoker import eager

image = eager.imread("astronaut.jpg")
smooth = eager.sharpness(image, factor=0.0)
sharp = eager.sharpness(image, factor=4.0)

# ---- figure ----
figure = {"image": image, "factor=0.0": smooth, "factor=4.0": sharp}
