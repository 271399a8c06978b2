# SPDX-License-Identifier: Apache-2.0
import numpy as np

from stoker import eager

print(eager.random.choice(np.array([10, 20, 30]), seed=1))  # 10

# Numbers from 0 to 5:
print(eager.random.choice(np.int64(6), shape=[8], seed=1))  # [5 1 5 3 0 2 3 0]
draws = eager.random.choice(np.int64(3), shape=[3000], p=[1, 2, 3], seed=1)

# ---- figure ----
from figures import histogram

figure = {"3000 draws with p=[1, 2, 3]": histogram(draws, (0, 3), 3)}
