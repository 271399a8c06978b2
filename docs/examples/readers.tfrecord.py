# SPDX-License-Identifier: Apache-2.0
from stoker import fn, pipeline_def, tfrecord


@pipeline_def(batch_size=4, num_threads=1, seed=1)
def photographs():
    data = fn.readers.tfrecord(
        path="photos.tfrecord",
        features={
            "image/encoded": tfrecord.FixedLenFeature((), tfrecord.string),
            "image/class/label": tfrecord.FixedLenFeature([1], tfrecord.int64),
        },
        random_shuffle=True,
    )
    images = fn.decoders.image(data["image/encoded"])
    return fn.resize(images, size=(120, 160)), data["image/class/label"]


pipe = photographs()
images, labels = pipe.run()
print(images, labels)  # Batch(4 x (120, 160, 3), uint8, HWC) Batch(4 x (1,), int64)

# ---- figure ----
figure = {f"label {int(label[0])}": image for image, label in zip(images, labels, strict=True)}
