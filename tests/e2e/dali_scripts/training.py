# SPDX-License-Identifier: Apache-2.0
"""A classification pipeline, the most common script for DALI. Arguments: folder of class folders."""

import sys

import nvidia.dali.fn as fn
import nvidia.dali.types as types
from nvidia.dali import pipeline_def


@pipeline_def(batch_size=8, num_threads=2, device_id=None, seed=12)
def training(data_dir, crop, size, shard_id=0, num_shards=1, dali_cpu=True, is_training=True):
    images, labels = fn.readers.file(
        file_root=data_dir, shard_id=shard_id, num_shards=num_shards, random_shuffle=is_training, pad_last_batch=True,
        name="Reader",
    )  # fmt: skip
    decoder = "cpu" if dali_cpu else "mixed"
    if is_training:
        images = fn.decoders.image_random_crop(
            images, device=decoder, output_type=types.RGB, random_aspect_ratio=[0.8, 1.25], random_area=[0.1, 1.0],
            num_attempts=100,
        )  # fmt: skip
        images = fn.resize(images, resize_x=crop, resize_y=crop, interp_type=types.INTERP_TRIANGULAR)
        mirror = fn.random.coin_flip(probability=0.5)
    else:
        images = fn.decoders.image(images, device=decoder, output_type=types.RGB)
        images = fn.resize(images, size=size, mode="not_smaller", interp_type=types.INTERP_TRIANGULAR)
        mirror = False
    images = fn.crop_mirror_normalize(
        images, dtype=types.FLOAT, output_layout="CHW", crop=(crop, crop),
        mean=[0.485 * 255, 0.456 * 255, 0.406 * 255], std=[0.229 * 255, 0.224 * 255, 0.225 * 255], mirror=mirror,
    )  # fmt: skip
    return images, labels


for training_mode in (True, False):
    pipe = training(sys.argv[1], crop=48, size=56, is_training=training_mode)
    pipe.build()
    images, labels = pipe.run()
    assert images.shape() == [(3, 48, 48)] * 8, images.shape()
    assert len(labels) == 8 and labels.at(0).shape == (1,)
    assert abs(float(images.as_array().mean())) < 3
    assert pipe.epoch_size("Reader") == pipe.reader_meta("Reader")["epoch_size"] > 8
print("fine")
