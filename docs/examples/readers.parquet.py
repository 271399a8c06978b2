# SPDX-License-Identifier: Apache-2.0
from stoker import fn, pipeline_def, samplers


@pipeline_def(batch_size=4, num_threads=1, seed=1)
def photographs():
    order = samplers.Windowed(block=2, window=2)
    data = fn.readers.parquet(paths="photos.parquet", columns=["image", "label"], sampler=order)
    return fn.resize(fn.decoders.image(data["image"]), size=(120, 160)), data["label"]


pipe = photographs()
images, labels = pipe.run()
print(images, labels)  # Batch(4 x (120, 160, 3), uint8, HWC) Batch(4 x (1,), int64)

# ---- figure ----
figure = {f"label {int(label[0])}": image for image, label in zip(images, labels, strict=True)}
