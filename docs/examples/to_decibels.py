# SPDX-License-Identifier: Apache-2.0
import numpy as np

from stoker import eager

power = np.array([1.0, 0.1, 0.001, 0.0], np.float32)
print(eager.to_decibels(power, cutoff_db=-80.0))  # [  0.       -10.       -29.999998 -80.      ]
print(eager.to_decibels(power, multiplier=20.0, reference=0.1, cutoff_db=-80.0))
# [ 20.   0. -40. -80.]

# ---- figure ----
from figures import cells

figure = {"power": cells(power), "cutoff_db=-80.0": cells(eager.to_decibels(power, cutoff_db=-80.0))}
