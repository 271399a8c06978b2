# SPDX-License-Identifier: Apache-2.0
from stoker import eager

image = eager.imread("cat.jpg")  # uint8 (300, 451, 3)
moved = eager.motion_blur(image, size=31, angle=20.0)
ended = eager.motion_blur(image, size=31, angle=20.0, direction=1.0)

# ---- figure ----
figure = {"image": image, "size=31, angle=20.0": moved, "direction=1.0": ended}
