# SPDX-License-Identifier: Apache-2.0
import numpy as np

from stoker import fn, pipeline_def


class Tensor:
    """A capsule as an object that NumPy reads; torch.utils.dlpack.from_dlpack reads capsules."""

    def __init__(self, capsule):
        self.capsule = capsule

    def __dlpack__(self, **_):
        return self.capsule

    def __dlpack_device__(self):
        return (1, 0)  # host memory


def negatives(images):
    return [255 - np.from_dlpack(Tensor(image)) for image in images]


@pipeline_def(batch_size=2, num_threads=1)
def negative_photographs():
    files, _ = fn.readers.file(file_root="photos")
    images = fn.resize(fn.decoders.image(files), size=(160, 200))
    return images, fn.dl_tensor_python_function(images, function=negatives)


pipe = negative_photographs()
images, negative = pipe.run()
print(negative)  # Batch(2 x (160, 200, 3), uint8)

# ---- figure ----
figure = {"image": images[0], "negatives(images)": negative[0]}
