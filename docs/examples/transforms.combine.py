# SPDX-License-Identifier: Apache-2.0
from stoker import eager

shift = eager.transforms.translation(offset=(100, 0))
turn = eager.transforms.rotation(angle=30)
both = eager.transforms.combine(shift, turn)
print(both)
# [[ 0.8660254 -0.5       86.60254  ]
#  [ 0.5        0.8660254 50.       ]]

image = eager.imread("astronaut.jpg")
shift_first = eager.warp_affine(image, matrix=both, inverse_map=False, fill_value=0)
swapped = eager.transforms.combine(turn, shift)
turn_first = eager.warp_affine(image, matrix=swapped, inverse_map=False, fill_value=0)

# ---- figure ----
figure = {"image": image, "combine(shift, turn)": shift_first, "combine(turn, shift)": turn_first}
