# SPDX-License-Identifier: Apache-2.0
from stoker import fn, pipeline_def


@pipeline_def(batch_size=3, num_threads=1, seed=3)
def pairs():
    files, labels = fn.readers.file(files=["cat.jpg", "coffee.jpg", "rocket.jpg"], labels=[0, 1, 2])
    others, other_labels = fn.readers.partner(files)
    images = [fn.resize(fn.decoders.image(x), size=(120, 160)) for x in (files, others)]
    return *images, labels, other_labels


pipe = pairs()
images, others, labels, other_labels = pipe.run()
print(labels.as_array().ravel(), other_labels.as_array().ravel())  # [0 1 2] [2 0 1]

# ---- figure ----
figure = {}
for image, other, x, y in zip(images, others, labels, other_labels, strict=True):
    figure |= {f"sample {int(x[0])}": image, f"partner of {int(x[0])}: {int(y[0])}": other}
