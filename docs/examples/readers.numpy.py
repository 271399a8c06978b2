# SPDX-License-Identifier: Apache-2.0
import numpy as np

from stoker import fn, pipeline_def

np.save("volume.npy", np.arange(4 * 6, dtype=np.float32).reshape(4, 6))


@pipeline_def(batch_size=1, num_threads=1)
def windows():
    return fn.readers.numpy(files=["volume.npy"], roi_start=[1, 2], roi_shape=[2, 3])


pipe = windows()
(arrays,) = pipe.run()
print(arrays[0])
# [[ 8.  9. 10.]
#  [14. 15. 16.]]

# ---- figure ----
from figures import cells

volume = np.load("volume.npy")
figure = {"volume.npy": cells(volume), "roi_start=[1, 2], roi_shape=[2, 3]": cells(np.asarray(arrays[0]))}
