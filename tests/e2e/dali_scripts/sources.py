# SPDX-License-Identifier: Apache-2.0
"""Data from Python: iterators, callbacks with arguments, processes, and ``feed_input``."""

import numpy as np
import nvidia.dali.fn as fn
import nvidia.dali.types as types
from nvidia.dali import Pipeline, pipeline_def


class Batches:
    """Source with random access by batch."""

    def __init__(self, batch_size):
        self.batch_size = batch_size

    def __iter__(self):
        self.i = 0
        return self

    def __next__(self):
        if self.i >= 12:
            raise StopIteration
        images = [np.full((4, 5, 3), self.i + k, np.uint8) for k in range(self.batch_size)]
        labels = [np.array([self.i + k], np.int32) for k in range(self.batch_size)]
        self.i += self.batch_size
        return images, labels


pipe = Pipeline(batch_size=4, num_threads=1, device_id=None)
with pipe:
    images, labels = fn.external_source(source=Batches(4), num_outputs=2, layout=["HWC", None])
    pipe.set_outputs(fn.brightness(images, brightness=2.0), labels)
pipe.build()
out, labels = pipe.run()
assert out.at(3).max() == 6 and labels.as_array().ravel().tolist() == [0, 1, 2, 3]


class Sampled:
    """Callback that receives the number of the sample."""

    def __init__(self, count, batch_size):
        self.full_iterations = count // batch_size

    def __call__(self, info):
        if info.iteration >= self.full_iterations:
            raise StopIteration
        return np.full((2, 2), info.idx_in_epoch, np.float32), np.int32([info.epoch_idx])


@pipeline_def(batch_size=4, num_threads=1, device_id=None, py_num_workers=2, py_start_method="fork")
def parallel():
    x, epoch = fn.external_source(
        source=Sampled(18, 4), num_outputs=2, batch=False, parallel=True, dtype=[types.FLOAT, types.INT32]
    )
    return x + 1, epoch


pipe = parallel()
pipe.build()
for epoch in range(2):
    seen = []
    try:
        while True:
            x, number = pipe.run()
            seen += [float(x.at(i)[0, 0]) for i in range(4)]
            assert number.as_array().ravel().tolist() == [epoch] * 4
    except StopIteration:
        pipe.reset()
    assert seen == [float(i + 1) for i in range(16)], seen
del pipe


@pipeline_def(batch_size=3, num_threads=1, device_id=None, prefetch_queue_depth=1)
def fed():
    return fn.external_source(name="numbers", dtype=types.INT32, ndim=1) * 2


pipe = fed()
pipe.build()
pipe.feed_input("numbers", [np.int32([i]) for i in range(3)])
assert pipe.run()[0].as_array().ravel().tolist() == [0, 2, 4]
print("fine")
