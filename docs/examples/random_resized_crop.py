# SPDX-License-Identifier: Apache-2.0
from stoker import eager

image = eager.imread("astronaut.jpg")  # uint8 (512, 512, 3)
crops = eager.random_resized_crop([image] * 5, size=(160, 160), seed=1)  # one draw per row
print(crops)  # Batch(5 x (160, 160, 3), uint8, HWC)

# ---- figure ----
figure = {"image": eager.resize(image, size=160)} | {f"row {i}": crop for i, crop in enumerate(crops)}
