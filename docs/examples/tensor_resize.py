# SPDX-License-Identifier: Apache-2.0
from stoker import eager

image = eager.imread("cat.jpg")  # uint8 (300, 451, 3)
wide = eager.tensor_resize(image, scales=(0.5, 0.8), axes=(0, 1))
few = eager.tensor_resize(image, sizes=(40,), axes=(0,), mode="stretch", interp_type="INTERP_NN")
print(wide.shape, few.shape)  # (150, 361, 3) (40, 451, 3)

# ---- figure ----
figure = {"image": image, "scales=(0.5, 0.8)": wide}
