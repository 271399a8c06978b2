# SPDX-License-Identifier: Apache-2.0
from stoker import eager

image = eager.imread("cat.jpg")
some = eager.coarse_dropout(image, seed=3)
cutout = eager.coarse_dropout(image, holes=1, height=0.5, width=0.4, fill_value=128, seed=1)

# ---- figure ----
figure = {"image": image, "coarse_dropout": some, "holes=1, height=0.5, width=0.4": cutout}
