# SPDX-License-Identifier: Apache-2.0
from stoker import eager, types

draws = eager.random.uniform(range=[2.0, 5.0], shape=[5000], seed=1)
print(draws.min() >= 2, draws.max() < 5)  # True True
print(eager.random.uniform(values=[1, 2, 7], shape=[8], dtype=types.INT32, seed=1))
# [7 1 7 2 1 2 2 1]

# ---- figure ----
from figures import histogram

figure = {"5000 draws with range=[2, 5]": histogram(draws, (0, 7), 42)}
