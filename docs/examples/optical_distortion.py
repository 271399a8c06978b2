# SPDX-License-Identifier: Apache-2.0
from stoker import eager

image = eager.imread("coffee.jpg")
distorted = [eager.optical_distortion(image, limit=[-0.6, 0.6], seed=seed) for seed in (1, 2)]

# ---- figure ----
figure = {"image": image, "seed=1": distorted[0], "seed=2": distorted[1]}
