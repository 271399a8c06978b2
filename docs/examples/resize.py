# SPDX-License-Identifier: Apache-2.0
from stoker import eager, types

image = eager.imread("cat.jpg")  # uint8 (300, 451, 3)
small = eager.resize(image, size=(150, 150))
shorter = eager.resize(image, resize_shorter=150)  # keeps the aspect ratio
within = eager.resize(image, size=(150, 150), mode="not_larger")
region = eager.resize(image, size=(150, 150), roi_start=(40, 130), roi_end=(190, 280))
print(small.shape, shorter.shape, within.shape, region.shape)
# (150, 150, 3) (150, 226, 3) (100, 150, 3) (150, 150, 3)

tiny = eager.resize(image, size=(20, 30))
blocky = eager.resize(tiny, size=(200, 300), interp_type=types.INTERP_NN)
smooth = eager.resize(tiny, size=(200, 300), interp_type=types.INTERP_CUBIC)

# ---- figure ----
figure = {
    "image": image, "size=(150, 150)": small, "resize_shorter=150": shorter, 'mode="not_larger"': within,
    "roi_start, roi_end": region, "INTERP_NN, enlarged": blocky, "INTERP_CUBIC, enlarged": smooth,
}  # fmt: skip
