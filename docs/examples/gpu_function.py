# SPDX-License-Identifier: Apache-2.0
import numpy as np

import stoker
from stoker import fn, pipeline_def


def halve(images):  # on a GPU, tensors of PyTorch; else arrays of NumPy
    return [x[::2, ::2] for x in images]


@pipeline_def(batch_size=2, num_threads=1)
def halved(on_gpu):
    files, _ = fn.readers.file(file_root="photos")
    images = fn.resize(fn.decoders.image(files), size=(160, 200))
    if not on_gpu:
        return fn.python_function(images, function=halve, batch_processing=True)
    shape = lambda image: (image[0] // 2, image[1] // 2, image[2])  # noqa: E731
    return fn.gpu_function(images.gpu(), function=halve, output_shapes=shape)


try:
    (halves,) = halved(True, device_id=0).run()
except (stoker.DeviceError, stoker.ResourceError):  # there is no GPU, or no PyTorch
    (halves,) = halved(False).run()
half = np.array(halves.as_cpu()[0])
print(half.shape)  # (80, 100, 3)

# ---- figure ----
figure = {"halve(images)": half}
