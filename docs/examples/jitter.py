# SPDX-License-Identifier: Apache-2.0
from stoker import eager

image = eager.imread("cat.jpg")
some, much = (eager.jitter(image, nDegree=degree, seed=1) for degree in (5, 25))

# ---- figure ----
figure = {"image": image, "nDegree=5": some, "nDegree=25": much}
