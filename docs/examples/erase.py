# SPDX-License-Identifier: Apache-2.0
from stoker import eager

image = eager.imread("cat.jpg")  # uint8 (300, 451, 3)
one = eager.erase(image, anchor=[50, 100], shape=[120, 200])  # rows 50 to 169, columns 100 to 299
anchors, shapes = [0.1, 0.1, 0.6, 0.5], [0.3, 0.2, 0.3, 0.4]
two = eager.erase(image, anchor=anchors, shape=shapes, normalized=True, fill_value=[200, 60, 60])

# ---- figure ----
figure = {"image": image, "one region": one, "two regions": two}
