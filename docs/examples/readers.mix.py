# SPDX-License-Identifier: Apache-2.0
from stoker import fn, pipeline_def


@pipeline_def(batch_size=8, num_threads=1, seed=1)
def mixed():
    cats = fn.readers.file(files=["cat.jpg"])
    others = fn.readers.file(files=["coffee.jpg", "rocket.jpg"])
    files, _, parts = fn.readers.mix([cats, others], weights=[0.75, 0.25])
    return fn.resize(fn.decoders.image(files), size=(90, 120)), parts


pipe = mixed()
images, parts = pipe.run()
print(parts.as_array().ravel())  # [0 1 0 0 0 0 1 0]

# ---- figure ----
from figures import sheet

figure = {"a batch: three of four rows from part 0": sheet(images, 4)}
