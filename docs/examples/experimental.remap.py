# SPDX-License-Identifier: Apache-2.0
import numpy as np

from stoker import eager

image = eager.imread("cat.jpg")  # uint8 (300, 451, 3)
height, width = image.shape[:2]
y, x = (places.astype(np.float32) for places in np.indices((height, width)))
mirrored = eager.experimental.remap(image, width - 1 - x, y, pixel_origin="center")
swirl = np.hypot(x - width / 2, y - height / 2) / 100
turned = eager.experimental.remap(
    image,
    width / 2 + (x - width / 2) * np.cos(swirl) - (y - height / 2) * np.sin(swirl),
    height / 2 + (x - width / 2) * np.sin(swirl) + (y - height / 2) * np.cos(swirl),
)

# ---- figure ----
figure = {"image": image, "mirrored": mirrored, "turned": turned}
