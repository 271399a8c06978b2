# SPDX-License-Identifier: Apache-2.0
"""Arithmetic, math, indexing and conditions on nodes."""

import numpy as np
import nvidia.dali.fn as fn
import nvidia.dali.math as math
import nvidia.dali.types as types
from nvidia.dali import pipeline_def

BATCH = [np.float32([[i, 2.0], [3.0, 4.0]]) for i in range(4)]


@pipeline_def(batch_size=4, num_threads=1, device_id=None, enable_conditionals=True)
def logic():
    x = fn.external_source(source=lambda: BATCH, dtype=types.FLOAT, ndim=2)
    first = x[0, 0]
    if first > 1.5:
        y = math.sqrt(x) + types.Constant(np.float32([1.0, 10.0]))
    elif first == 1.0:
        y = -x
    else:
        y = x
    cropped = fn.slice(x, rel_start=[0.0, 0.5], rel_shape=[1.0, 0.5], axes=[0, 1])
    chosen = fn.cast(math.clamp(x * 100, 0, 255), dtype=types.UINT8)
    return y, cropped, chosen, fn.stack(first, x[1, 1]), math.max(x, 2.5)


pipe = logic()
pipe.build()
y, cropped, chosen, stacked, larger = pipe.run()
assert (y.at(0) == BATCH[0]).all() and (y.at(1) == -BATCH[1]).all()
assert np.allclose(y.at(2), np.sqrt(BATCH[2]) + np.float32([1, 10]))
assert cropped.at(0).ravel().tolist() == [2.0, 4.0]
assert chosen.at(3).ravel().tolist() == [255, 200, 255, 255]
assert stacked.at(2).tolist() == [2.0, 4.0] and larger.at(1).ravel().tolist() == [2.5, 2.5, 3.0, 4.0]
print("fine")
