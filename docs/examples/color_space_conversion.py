# SPDX-License-Identifier: Apache-2.0
from stoker import eager, types

image = eager.imread("astronaut.jpg")  # uint8 (512, 512, 3), RGB
gray = eager.color_space_conversion(image, image_type=types.RGB, output_type=types.GRAY)
ycbcr = eager.color_space_conversion(image, image_type=types.RGB, output_type=types.YCbCr)
print(gray.shape, ycbcr.shape)  # (512, 512, 1) (512, 512, 3)

# ---- figure ----
figure = {"image": image, "GRAY": gray, "YCbCr: Y": ycbcr[..., 0], "Cb": ycbcr[..., 1], "Cr": ycbcr[..., 2]}
