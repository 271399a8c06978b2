# SPDX-License-Identifier: Apache-2.0
from stoker import eager

image = eager.imread("astronaut.jpg")  # uint8 (512, 512, 3)
some = eager.noise.shot(image, factor=5.0, seed=1)
much = eager.noise.shot(image, factor=40.0, seed=1)

# ---- figure ----
figure = {"image": image, "factor=5.0": some, "factor=40.0": much}
