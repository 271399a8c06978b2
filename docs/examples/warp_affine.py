# SPDX-License-Identifier: Apache-2.0
from stoker import eager

image = eager.imread("astronaut.jpg")  # uint8 (512, 512, 3)
matrix = [0.9, 0.3, -60, -0.2, 1.1, 40]  # from the output's (x, y) to the input's
warped = eager.warp_affine(image, matrix=matrix, fill_value=0)
edges = eager.warp_affine(image, matrix=matrix)  # outside: the nearest edge pixel
inverse = eager.warp_affine(image, matrix=matrix, inverse_map=False, fill_value=0)

# ---- figure ----
figure = {"image": image, "fill_value=0": warped, "without fill_value": edges, "inverse_map=False": inverse}
