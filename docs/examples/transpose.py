# SPDX-License-Identifier: Apache-2.0
import numpy as np

from stoker import eager

x = np.array([[1, 2, 3], [4, 5, 6]])
print(eager.transpose(x))
# [[1 4]
#  [2 5]
#  [3 6]]

image = eager.imread("cat.jpg")  # uint8 (300, 451, 3), HWC
chw = eager.transpose(image, perm=[2, 0, 1])
print(chw.shape)  # (3, 300, 451)
turned = eager.transpose(image, perm=[1, 0, 2])

# ---- figure ----
figure = {"image": image, "perm=[1, 0, 2]": turned}
