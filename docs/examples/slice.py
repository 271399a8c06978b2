# SPDX-License-Identifier: Apache-2.0
from stoker import eager

image = eager.imread("astronaut.jpg")  # uint8 (512, 512, 3)
face = eager.slice(image, start=(20, 150), shape=(180, 150), axes=(0, 1))
lower = eager.slice(image, rel_start=[0.5], axis_names="H")
outside = {"out_of_bounds_policy": "pad", "fill_values": (255, 120, 0)}
padded = eager.slice(image, start=(-60, 300), shape=(400, 300), axes=(0, 1), **outside)
print(face.shape, lower.shape, padded.shape)  # (180, 150, 3) (256, 512, 3) (400, 300, 3)

# ---- figure ----
from figures import outlined

figure = {
    "image": outlined(image, (20, 150, 200, 300), (256, 0, 511, 511)), "start=(20, 150), shape=(180, 150)": face,
    "rel_start=[0.5]": lower, "pad": padded,
}  # fmt: skip
