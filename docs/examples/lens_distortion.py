# SPDX-License-Identifier: Apache-2.0
from stoker import eager

image = eager.imread("coffee.jpg")
barrel = eager.lens_distortion(image, radial=[0.6, 0.3])
cushion = eager.lens_distortion(image, radial=-0.5)

# ---- figure ----
figure = {"image": image, "radial=[0.6, 0.3]": barrel, "radial=-0.5": cushion}
