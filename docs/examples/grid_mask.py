# SPDX-License-Identifier: Apache-2.0
from stoker import eager

image = eager.imread("cat.jpg")  # uint8 (300, 451, 3)
plain = eager.grid_mask(image, tile=80)
turned = eager.grid_mask(image, tile=60, ratio=0.4, angle=0.5)

# ---- figure ----
figure = {"image": image, "tile=80": plain, "tile=60, ratio=0.4, angle=0.5": turned}
