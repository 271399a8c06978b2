# SPDX-License-Identifier: Apache-2.0
from pathlib import Path

from stoker import eager

data = Path("astronaut.jpg").read_bytes()  # 512 x 512
centre = eager.decoders.image_crop(data, crop=(224, 224))
corner = eager.decoders.image_crop(data, crop_h=160, crop_w=320, crop_pos_x=1.0, crop_pos_y=0.0)
print(centre.shape, corner.shape)  # (224, 224, 3) (160, 320, 3)

# ---- figure ----
from figures import outlined

image = eager.decoders.image(data)
figure = {
    "the file": outlined(image, (144, 144, 368, 368), (0, 192, 160, 512)),
    "crop=(224, 224)": centre,
    "crop_h=160, crop_w=320": corner,
}
