# SPDX-License-Identifier: Apache-2.0
from stoker import eager

print(eager.random.coin_flip(shape=[12], seed=1))  # [1 0 1 1 0 0 1 1 0 0 1 1]
draws = eager.random.coin_flip(probability=0.1, shape=[3000], seed=1)
print(0.08 < draws.mean() < 0.12)  # True

# ---- figure ----
from figures import histogram

figure = {"3000 draws with probability=0.1": histogram(draws, (0, 2), 2)}
