# SPDX-License-Identifier: Apache-2.0
from stoker import eager

image = eager.imread("astronaut.jpg")  # uint8 (512, 512, 3), HWC
mean, std = [123.675, 116.28, 103.53], [58.395, 57.12, 57.375]  # of ImageNet
out = eager.crop_mirror_normalize(image, crop=(224, 224), mirror=1, mean=mean, std=std)
print(out.shape, out.dtype)  # (3, 224, 224) float32

# ---- figure ----
from figures import rescaled

figure = {"image": image, "channel R": rescaled(out[0]), "G": rescaled(out[1]), "B": rescaled(out[2])}
