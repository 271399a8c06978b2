# SPDX-License-Identifier: Apache-2.0
from stoker import fn, pipeline_def


@pipeline_def(batch_size=4, num_threads=1, seed=1)
def photographs():
    files = fn.readers.bagz(paths="photos.bag", random_shuffle=True)
    return fn.resize(fn.decoders.image(files), size=(120, 160))


pipe = photographs()
images = pipe.run()[0]
print(images)  # Batch(4 x (120, 160, 3), uint8, HWC)

# ---- figure ----
figure = {f"row {i}": image for i, image in enumerate(images)}
