# SPDX-License-Identifier: Apache-2.0
from stoker import eager

image = eager.imread("cat.jpg")  # uint8 (300, 451, 3)
some = eager.noise.salt_and_pepper(image, prob=0.05, seed=1)
salt = eager.noise.salt_and_pepper(image, prob=0.2, salt_vs_pepper=0.9, seed=1)

# ---- figure ----
figure = {"image": image, "prob=0.05": some, "prob=0.2, salt_vs_pepper=0.9": salt}
