# SPDX-License-Identifier: Apache-2.0
import numpy as np

from stoker import fn, pipeline_def

np.save("numbers.npy", np.asarray([[-1.5, 0.5, 2.5], [300, 1, 3.7]], np.float32))


@pipeline_def(batch_size=1, num_threads=1)
def numbers():
    content, _ = fn.readers.file(files=["numbers.npy"])
    return fn.decoders.numpy(content, dtype=np.uint8)  # rounded half to even, limited to 0..255


pipe = numbers()
(decoded,) = pipe.run()
print(np.asarray(decoded[0]).tolist())  # [[0, 0, 2], [255, 1, 4]]

# ---- figure ----
from figures import cells

figure = {"decoded": cells(decoded[0])}
