# SPDX-License-Identifier: Apache-2.0
from stoker import fn, pipeline_def


@pipeline_def(batch_size=3, num_threads=1, seed=3)
def cut():
    files, labels = fn.readers.file(files=["cat.jpg", "coffee.jpg", "rocket.jpg"], labels=[0, 1, 2])
    others, other_labels = fn.readers.partner(files)
    images = [fn.resize(fn.decoders.image(x), size=(120, 160)) for x in (files, others)]
    weight = fn.random.beta(alpha=1.0, beta=1.0)
    return fn.cutmix(*images, labels, other_labels, weight=weight, num_classes=3)


pipe = cut()
images, labels = pipe.run()
print(labels.as_array().round(2))
# [[0.74 0.   0.26]
#  [0.11 0.89 0.  ]
#  [0.   0.35 0.65]]

# ---- figure ----
figure = {str(x.round(2)): image for image, x in zip(images, labels.as_array(), strict=True)}
