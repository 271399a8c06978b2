# SPDX-License-Identifier: Apache-2.0
from stoker import eager

print(eager.random.beta(alpha=0.4, beta=0.4, shape=(5,), seed=1).round(3))
# [1.    0.064 0.998 0.202 0.381]

# ---- figure ----
from figures import histogram

figure = {
    "alpha 0.4, beta 0.4": histogram(eager.random.beta(alpha=0.4, beta=0.4, shape=(20000,), seed=1), (0, 1)),
    "alpha 2, beta 5": histogram(eager.random.beta(alpha=2, beta=5, shape=(20000,), seed=1), (0, 1)),
}
