# SPDX-License-Identifier: Apache-2.0
from stoker import eager

draws = eager.random.normal(mean=10.0, stddev=2.0, shape=[5000], seed=1)
print(draws.shape, draws.dtype)  # (5000,) float32

# ---- figure ----
from figures import histogram

figure = {"5000 draws with mean=10, stddev=2": histogram(draws, (2, 18), 48)}
