# SPDX-License-Identifier: Apache-2.0
from stoker import eager

image = eager.imread("coffee.jpg")  # uint8 (400, 600, 3)
centre = eager.resize_crop_mirror(image, resize_shorter=256, crop=(224, 224))
mirrored = eager.resize_crop_mirror(image, resize_shorter=256, crop=(224, 224), mirror=1)
print(centre.shape, mirrored.shape)  # (224, 224, 3) (224, 224, 3)

# ---- figure ----
figure = {"image": image, "resize_shorter=256, crop=(224, 224)": centre, "mirror=1": mirrored}
