# SPDX-License-Identifier: Apache-2.0
from stoker import eager

matrix = eager.transforms.crop(from_start=(150, 20), from_end=(300, 200), to_end=(512, 512))
print(matrix)
# [[   3.4133334    0.        -512.       ]
#  [   0.           2.8444445  -56.88889  ]]

image = eager.imread("astronaut.jpg")  # uint8 (512, 512, 3)
enlarged = eager.warp_affine(image, matrix=matrix, inverse_map=False)

# ---- figure ----
from figures import outlined

figure = {"image, from_start to from_end": outlined(image, (20, 150, 200, 300)), "warp_affine(image, matrix)": enlarged}
