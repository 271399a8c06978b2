# SPDX-License-Identifier: Apache-2.0
from stoker import eager

image = eager.imread("astronaut.jpg")  # uint8 (512, 512, 3)
some = eager.noise.gaussian(image, stddev=20.0, seed=1)
much = eager.noise.gaussian(image, mean=30.0, stddev=60.0, seed=1)

# ---- figure ----
figure = {"image": image, "stddev=20.0": some, "mean=30.0, stddev=60.0": much}
