# SPDX-License-Identifier: Apache-2.0
import numpy as np

from stoker import eager

image = eager.resize(eager.imread("coffee.jpg"), size=(300, 400))
other = eager.resize(eager.imread("cat.jpg"), size=(300, 400))
y, x = np.mgrid[:300, :400]
cup = ((y - 150) ** 2 / 100**2 + (x - 200) ** 2 / 130**2 < 1).astype(np.uint8)[None]
face = ((y - 130) ** 2 / 100**2 + (x - 150) ** 2 / 70**2 < 1).astype(np.uint8)[None]
pasted, boxes, masks, names = eager.copy_paste(
    image, other, masks=[cup, face], labels=[np.array([1]), np.array([0])], probability=1.0
)
print(names, boxes.tolist(), masks.sum((1, 2)))
# [1 0] [[71.0, 51.0, 330.0, 250.0], [81.0, 31.0, 220.0, 230.0]] [21371 21953]

# ---- figure ----
from figures import outlined

figure = {
    "image": image,
    "other": other,
    "pasted, boxes": outlined(pasted, *((y0, x0, y1, x1) for x0, y0, x1, y1 in boxes)),
}
