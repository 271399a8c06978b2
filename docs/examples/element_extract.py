# SPDX-License-Identifier: Apache-2.0
import numpy as np

from stoker import eager

video = np.stack([eager.flip(eager.imread("cat.jpg"), horizontal=i) for i in (0, 1)])
first, second = eager.element_extract(video, element_map=[0, 1])
print(video.shape, first.shape)  # (2, 300, 451, 3) (300, 451, 3)

# ---- figure ----
figure = {"element 0": first, "element 1": second}
