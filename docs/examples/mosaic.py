# SPDX-License-Identifier: Apache-2.0
import numpy as np

from stoker import eager

images = [eager.imread(name) for name in ("cat.jpg", "coffee.jpg", "rocket.jpg", "cat.jpg")]
cup = np.array([[140, 40, 460, 350]], np.float32)
cat = np.array([[113, 37, 226, 225]], np.float32)
nothing = np.zeros((0, 4), np.float32)
joined, boxes, names = eager.mosaic(
    *images,
    boxes=[cat, cup, nothing, cat],
    labels=[np.array([0]), np.array([1]), np.array([], int), np.array([0])],
    size=(300, 400),
    center=(0.6, 0.5),
    min_visibility=0.1,
)
print(joined.shape, names, boxes.round().astype(int).tolist())
# (300, 400, 3) [1 0] [[305, 0, 400, 142], [313, 217, 400, 300]]

# ---- figure ----
from figures import outlined

figure = {"joined, boxes": outlined(joined, *((y0, x0, y1, x1) for x0, y0, x1, y1 in boxes))}
