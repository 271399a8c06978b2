# SPDX-License-Identifier: Apache-2.0
"""The older style: a class with operators and `define_graph`. Arguments: folder of class folders."""

import sys

import nvidia.dali.ops as ops
import nvidia.dali.types as types
from nvidia.dali.pipeline import Pipeline


class SimplePipeline(Pipeline):
    def __init__(self, batch_size, num_threads, device_id, folder):
        super().__init__(batch_size, num_threads, device_id, seed=12)
        self.input = ops.readers.File(file_root=folder, random_shuffle=True, initial_fill=21)
        self.decode = ops.decoders.Image(output_type=types.RGB)
        self.resize = ops.Resize(resize_x=40, resize_y=30)
        self.rotate = ops.Rotate(fill_value=0, keep_size=True)
        self.angle = ops.random.Uniform(range=(-10.0, 10.0))
        self.coin = ops.random.CoinFlip(probability=0.3)
        self.flip = ops.Flip()

    def define_graph(self):
        jpegs, labels = self.input(name="Reader")
        images = self.resize(self.decode(jpegs))
        images = self.rotate(images, angle=self.angle())
        return self.flip(images, horizontal=self.coin()), labels


pipe = SimplePipeline(4, 1, None, sys.argv[1])
pipe.build()
images, labels = pipe.run()
assert images.is_dense_tensor() and images.as_tensor().shape() == [4, 30, 40, 3]
assert labels.as_tensor().shape() == [4, 1]
pipe = SimplePipeline(4, 1, None, sys.argv[1])
pipe.build()
pipe.schedule_run()
assert len(pipe.share_outputs()[0]) == 4
pipe.release_outputs()
print("fine")
