# SPDX-License-Identifier: Apache-2.0
import numpy as np

from stoker import eager

video = np.array([[10, 11], [20, 21], [30, 31]])  # three frames of two numbers
print(eager.sequence_rearrange(video, new_order=[2, 1, 0]))
# [[30 31]
#  [20 21]
#  [10 11]]
print(eager.sequence_rearrange(video, new_order=[0, 0, 2, 1]))
# [[10 11]
#  [10 11]
#  [30 31]
#  [20 21]]

# ---- figure ----
from figures import cells

figure = {
    "video": cells(video),
    "new_order=[2, 1, 0]": cells(eager.sequence_rearrange(video, new_order=[2, 1, 0])),
    "new_order=[0, 0, 2, 1]": cells(eager.sequence_rearrange(video, new_order=[0, 0, 2, 1])),
}
