# SPDX-License-Identifier: Apache-2.0
from stoker import eager

image = eager.imread("astronaut.jpg")  # uint8 (512, 512, 3)
# From the output's (x, y, 1) to the input's:
matrix = [1.2, 0.3, -90, 0.0, 1.3, -40, 0.0, 0.0009, 1.0]
tilted = eager.experimental.warp_perspective(image, matrix=matrix, fill_value=(255, 120, 0))
inverse = eager.experimental.warp_perspective(image, matrix=matrix, inverse_map=False)

# ---- figure ----
figure = {"image": image, "matrix=matrix": tilted, "inverse_map=False": inverse}
