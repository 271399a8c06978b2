# SPDX-License-Identifier: Apache-2.0
from stoker import eager

image = eager.imread("coffee.jpg")
dull = eager.brightness_contrast(image, brightness=0.6, contrast=0.4)
print(int(dull.min()) > 0, int(dull.max()) < 255)  # True True
clear = eager.autocontrast(dull)
print(int(clear.min()), int(clear.max()))  # 0 254

# ---- figure ----
figure = {"dull": dull, "autocontrast(dull)": clear}
