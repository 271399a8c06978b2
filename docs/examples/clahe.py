# SPDX-License-Identifier: Apache-2.0
from stoker import eager

image = eager.imread("coffee.jpg")  # uint8 (400, 600, 3)
dark = eager.brightness_contrast(image, brightness=0.4)
clear = eager.clahe(dark, tiles_x=8, tiles_y=8, clip_limit=3.0)

# ---- figure ----
figure = {"dark": dark, "clahe(dark)": clear, "equalize(dark)": eager.equalize(dark)}
