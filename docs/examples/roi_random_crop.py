# SPDX-License-Identifier: Apache-2.0
from stoker import eager

image = eager.imread("cat.jpg")  # uint8 (300, 451, 3)
region = {"roi_start": (40, 100, 0), "roi_end": (180, 220, 3)}
start = eager.roi_random_crop(image, crop_shape=(200, 200, 3), seed=1, **region)
y, x = start[:2]
window = image[y : y + 200, x : x + 200]
print(start)  # [ 7 38  0]

# ---- figure ----
from figures import outlined

figure = {"image, region": outlined(image, (40, 100, 180, 220)), "window": window}
