# SPDX-License-Identifier: Apache-2.0
import numpy as np

from stoker import fn, pipeline_def


def add_noise(image, rng):
    noisy = image + rng.normal(0, 25, image.shape)
    return np.clip(noisy, 0, 255).astype(np.uint8)


@pipeline_def(batch_size=2, num_threads=1, seed=1)
def noisy_photographs():
    files, _ = fn.readers.file(file_root="photos")
    images = fn.resize(fn.decoders.image(files), size=(160, 200))
    return images, fn.python_function(images, function=add_noise)


pipe = noisy_photographs()
images, noisy = pipe.run()
print(noisy)  # Batch(2 x (160, 200, 3), uint8)

# ---- figure ----
figure = {"image": images[0], "add_noise(image, rng)": noisy[0]}
