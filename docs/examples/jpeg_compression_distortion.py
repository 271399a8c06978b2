# SPDX-License-Identifier: Apache-2.0
from stoker import eager

image = eager.imread("cat.jpg")  # uint8 (300, 451, 3)
poor = eager.jpeg_compression_distortion(image, quality=5)

# ---- figure ----
figure = {"image": image, "quality=5": poor}
