# SPDX-License-Identifier: Apache-2.0
from stoker import eager

image = eager.imread("astronaut.jpg")
half = eager.solarize(image)  # from 128 on
high = eager.solarize(image, threshold=200)

# ---- figure ----
figure = {"image": image, "threshold=128": half, "threshold=200": high}
