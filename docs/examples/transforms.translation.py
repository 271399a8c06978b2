# SPDX-License-Identifier: Apache-2.0
from stoker import eager

matrix = eager.transforms.translation(offset=(120, -60))
print(matrix)
# [[  1.   0. 120.]
#  [  0.   1. -60.]]

image = eager.imread("astronaut.jpg")  # uint8 (512, 512, 3)
moved = eager.warp_affine(image, matrix=matrix, inverse_map=False, fill_value=0)

# ---- figure ----
figure = {"image": image, "offset=(120, -60)": moved}
