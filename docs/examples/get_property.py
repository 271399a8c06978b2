# SPDX-License-Identifier: Apache-2.0
from stoker import eager, fn, pipeline_def

image = eager.imread("cat.jpg")


@pipeline_def(batch_size=1, num_threads=1)
def layouts():
    x = fn.external_source(lambda info: image, batch=False, dtype="uint8", ndim=3, layout="HWC")
    transposed = fn.transpose(x, perm=[2, 0, 1])
    return fn.get_property(x, key="layout"), fn.get_property(transposed, key="layout")


with layouts() as pipe:
    print(*[bytes(batch[0]).decode() for batch in pipe.run()])  # HWC CHW

# ---- figure ----
import numpy as np

from figures import cells

extents = np.array(image.shape)
figure = {"image": image, "HWC": cells(extents), "CHW": cells(extents[[2, 0, 1]])}
