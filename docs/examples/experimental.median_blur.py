# SPDX-License-Identifier: Apache-2.0
from stoker import eager

image = eager.imread("astronaut.jpg")  # uint8 (512, 512, 3)
noisy = eager.noise.salt_and_pepper(image, prob=0.2, seed=1)
clean = eager.experimental.median_blur(noisy, window_size=5)

# ---- figure ----
figure = {"noisy": noisy, "median_blur(noisy, window_size=5)": clean}
