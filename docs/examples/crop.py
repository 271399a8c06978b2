# SPDX-License-Identifier: Apache-2.0
from stoker import eager

image = eager.imread("astronaut.jpg")  # uint8 (512, 512, 3)
centre = eager.crop(image, crop=(224, 224))
corner = eager.crop(image, crop=(224, 224), crop_pos_x=0, crop_pos_y=0)
padded = eager.crop(image, crop=(600, 600), out_of_bounds_policy="pad", fill_values=(255, 120, 0))

# ---- figure ----
figure = {
    "image": image,
    "crop=(224, 224)": centre,
    "crop_pos_x=0, crop_pos_y=0": corner,
    "crop=(600, 600), pad": padded,
}
