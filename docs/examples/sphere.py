# SPDX-License-Identifier: Apache-2.0
from stoker import eager, types

image = eager.imread("astronaut.jpg")  # uint8 (512, 512, 3)
shown = eager.sphere(image, interp_type=types.INTERP_LINEAR)

# ---- figure ----
figure = {"image": image, "sphere": shown}
