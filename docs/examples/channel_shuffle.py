# SPDX-License-Identifier: Apache-2.0
from stoker import eager

image = eager.imread("coffee.jpg")
shuffled = [eager.channel_shuffle(image, seed=seed) for seed in (1, 3)]

# ---- figure ----
figure = {"image": image, "seed=1": shuffled[0], "seed=3": shuffled[1]}
