# SPDX-License-Identifier: Apache-2.0
from stoker import fn, pipeline_def


@pipeline_def(batch_size=4, num_threads=1, seed=1)
def photographs(dataset):
    data = fn.readers.huggingface(dataset, columns=["image", "label"], random_shuffle=True)
    return fn.resize(fn.decoders.image(data["image"]), size=(120, 160)), data["label"]


pipe = photographs("photos-hf")  # a folder, or a datasets.Dataset
images, labels = pipe.run()
print(images, labels)  # Batch(4 x (120, 160, 3), uint8, HWC) Batch(4 x (1,), int32)

# ---- figure ----
figure = {f"label {int(label[0])}": image for image, label in zip(images, labels, strict=True)}
