# SPDX-License-Identifier: Apache-2.0
from stoker import eager

matrix = eager.transforms.scale(scale=(0.5, 0.75), center=(256, 256))
print(matrix)
# [[  0.5    0.   128.  ]
#  [  0.     0.75  64.  ]]
print(eager.transforms.scale(scale=[2], ndim=3).shape)  # (3, 4)

image = eager.imread("astronaut.jpg")  # uint8 (512, 512, 3)
scaled = eager.warp_affine(image, matrix=matrix, inverse_map=False, fill_value=0)

# ---- figure ----
figure = {"image": image, "scale=(0.5, 0.75), center=(256, 256)": scaled}
