# SPDX-License-Identifier: Apache-2.0
from stoker import eager

image = eager.imread("astronaut.jpg")  # uint8 (512, 512, 3)
soft = eager.gaussian_blur(image, sigma=4.0)
wide = eager.gaussian_blur(image, sigma=[1.0, 16.0], window_size=[7, 97])  # (vertical, horizontal)

# ---- figure ----
figure = {"image": image, "sigma=4.0": soft, "sigma=[1.0, 16.0]": wide}
