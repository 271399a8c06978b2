# SPDX-License-Identifier: Apache-2.0
from stoker import fn, pipeline_def


@pipeline_def(batch_size=4, num_threads=1)
def joined():
    cats = fn.readers.file(files=["cat.jpg"], labels=[0])
    others = fn.readers.file(files=["coffee.jpg", "rocket.jpg", "astronaut.jpg"], labels=[0, 1, 2])
    files, labels, parts = fn.readers.concat([cats, others], label_offsets="disjoint")
    return fn.resize(fn.decoders.image(files), size=(120, 160)), labels, parts


pipe = joined()
images, labels, parts = pipe.run()
print(labels.as_array().ravel(), parts.as_array().ravel())  # [0 1 2 3] [0 1 1 1]

# ---- figure ----
figure = {f"label {int(x[0])}, part {int(p[0])}": image for image, x, p in zip(images, labels, parts, strict=True)}
