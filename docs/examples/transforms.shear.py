# SPDX-License-Identifier: Apache-2.0
from stoker import eager

matrix = eager.transforms.shear(shear=(0.4, 0.0))
print(matrix)
# [[1.  0.4 0. ]
#  [0.  1.  0. ]]

image = eager.imread("astronaut.jpg")  # uint8 (512, 512, 3)
sheared = eager.warp_affine(image, matrix=matrix, inverse_map=False, fill_value=0)
both = eager.transforms.shear(angles=(10, 20), center=(256, 256))
around = eager.warp_affine(image, matrix=both, inverse_map=False, fill_value=0)

# ---- figure ----
figure = {"image": image, "shear=(0.4, 0.0)": sheared, "angles=(10, 20), center=(256, 256)": around}
