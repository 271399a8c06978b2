# SPDX-License-Identifier: Apache-2.0
from stoker import eager

print(eager.random.beta(alpha=0.4, beta=0.4, shape=(5,), seed=1).round(3))
# [1.    0.064 0.998 0.202 0.381]
