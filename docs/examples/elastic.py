# SPDX-License-Identifier: Apache-2.0
from stoker import eager

image = eager.imread("astronaut.jpg")
soft = eager.elastic(image, alpha=200.0, sigma=12.0, seed=1)
strong = eager.elastic(image, alpha=120.0, sigma=5.0, seed=1)

# ---- figure ----
figure = {"image": image, "alpha=200.0, sigma=12.0": soft, "alpha=120.0, sigma=5.0": strong}
