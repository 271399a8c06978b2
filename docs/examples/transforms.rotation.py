# SPDX-License-Identifier: Apache-2.0
from stoker import eager

matrix = eager.transforms.rotation(angle=30, center=(256, 256))
print(matrix)
# [[  0.8660254  -0.5       162.2975   ]
#  [  0.5         0.8660254 -93.70251  ]]
in_space = eager.transforms.rotation(angle=90, axis=(0, 0, 1))
print(in_space.shape)  # (3, 4)

image = eager.imread("astronaut.jpg")  # uint8 (512, 512, 3)
turned = eager.warp_affine(image, matrix=matrix, inverse_map=False, fill_value=0)

# ---- figure ----
figure = {"image": image, "angle=30, center=(256, 256)": turned}
