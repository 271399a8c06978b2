# SPDX-License-Identifier: Apache-2.0
from stoker import eager

image = eager.imread("coffee.jpg")
four, eight = (eager.posterize(image, bits=bits) for bits in (2, 3))  # values of each channel

# ---- figure ----
figure = {"image": image, "bits=2": four, "bits=3": eight}
