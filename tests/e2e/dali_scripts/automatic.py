# SPDX-License-Identifier: Apache-2.0
"""Automatic augmentations, as their documentation uses them, and imports from groups of operators."""

import sys

from nvidia.dali import pipeline_def, types
from nvidia.dali.auto_aug import augmentations, auto_augment, rand_augment, trivial_augment
from nvidia.dali.auto_aug.core import Policy
from nvidia.dali.fn import crop_mirror_normalize, peek_image_shape, resize
from nvidia.dali.fn.decoders import image as decode
from nvidia.dali.fn.readers import file as read

SHEAR = augmentations.shear_x.augmentation((0, 0.5), True)
TURN = augmentations.rotate.augmentation((0, 40), True)
POLICY = Policy(
    "SimplePolicy",
    num_magnitude_bins=11,
    sub_policies=[
        [(SHEAR, 0.8, 7), (augmentations.invert, 0.8, None)],
        [(TURN, 0.6, 7), (augmentations.equalize, 0.2, None)],
        [(SHEAR, 0.4, 3)],
    ],
)


@pipeline_def(enable_conditionals=True, batch_size=6, num_threads=2, device_id=None, seed=5)
def training(folder, kind):
    jpegs, labels = read(file_root=folder, name="Reader", random_shuffle=True)
    shapes = peek_image_shape(jpegs)
    images = decode(jpegs, output_type=types.RGB)
    if kind == "image_net":
        images = auto_augment.auto_augment_image_net(images, shape=shapes)
    elif kind == "rand":
        images = rand_augment.rand_augment(images, n=3, m=17, max_translate_abs=20, fill_value=0)
    elif kind == "trivial":
        images = trivial_augment.trivial_augment_wide(images)
    elif kind == "mine":
        images = auto_augment.apply_auto_augment(POLICY, images, fill_value=None)
    images = resize(images, size=[32, 32])
    return crop_mirror_normalize(images, mean=[128.0], std=[64.0]), labels


plain = training(sys.argv[1], "none").run()[0].as_array()
for kind in ("image_net", "rand", "trivial", "mine"):
    pipe = training(sys.argv[1], kind)
    pipe.build()
    batch, labels = pipe.run()
    assert batch.as_array().shape == (6, 3, 32, 32) and len(labels) == 6
    assert (batch.as_array() != plain).any()
print("fine")
