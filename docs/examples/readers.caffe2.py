# SPDX-License-Identifier: Apache-2.0
from stoker import fn, pipeline_def


@pipeline_def(batch_size=4, num_threads=1, seed=1)
def photographs():
    files, labels = fn.readers.caffe2(path="photos.caffe2", random_shuffle=True)
    return fn.resize(fn.decoders.image(files), size=(120, 160)), labels


pipe = photographs()
images, labels = pipe.run()
print(images, labels)  # Batch(4 x (120, 160, 3), uint8, HWC) Batch(4 x (1,), int32)

# ---- figure ----
figure = {f"label {int(label[0])}": image for image, label in zip(images, labels, strict=True)}
