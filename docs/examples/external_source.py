# SPDX-License-Identifier: Apache-2.0
import numpy as np

from stoker import fn, pipeline_def


def batches():
    rng = np.random.default_rng(0)
    for _ in range(3):
        yield [rng.integers(0, 10, 4) for _ in range(2)]  # two rows of four numbers


@pipeline_def(batch_size=2, num_threads=1)
def doubled():
    return fn.external_source(batches) * 2


pipe = doubled()
(out,) = pipe.run()
print(out.as_array())
# [[16 12 10  4]
#  [ 6  0  0  0]]

# ---- figure ----
from figures import cells

figure = {"first batch of the source": cells(out.as_array() // 2), "output": cells(out.as_array())}
