# SPDX-License-Identifier: Apache-2.0
import numpy as np

from stoker import eager

image = eager.imread("coffee.jpg")
dark = eager.brightness_contrast(image, brightness=0.5, contrast=0.5)
equal = eager.equalize(dark)
print(int(np.ptp(dark)) < 200, int(np.ptp(equal)))  # True 255

# ---- figure ----
from figures import histogram

figure = {
    "dark": dark, "equalize(dark)": equal,
    "values of dark": histogram(dark, (0, 256)), "values of equalize(dark)": histogram(equal, (0, 256)),
}  # fmt: skip
