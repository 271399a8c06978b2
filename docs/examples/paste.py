# SPDX-License-Identifier: Apache-2.0
from stoker import eager

image = eager.imread("cat.jpg")  # uint8 (300, 451, 3)
canvas = eager.paste(image, ratio=1.5, fill_value=[40, 90, 160], paste_x=0.2, paste_y=0.8)
print(canvas.shape)  # (450, 676, 3)

# ---- figure ----
figure = {"image": image, "ratio=1.5, paste_x=0.2, paste_y=0.8": canvas}
