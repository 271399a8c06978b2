# SPDX-License-Identifier: Apache-2.0
from stoker import fn, pipeline_def


@pipeline_def(batch_size=4, num_threads=1, seed=1)
def photographs():
    # Members such as cat/1.jpg and cat/1.cls:
    files, labels = fn.readers.webdataset(
        paths="photos.tar",
        ext=["jpg;png", "cls"],
        random_shuffle=True,
    )
    return fn.resize(fn.decoders.image(files), size=(120, 160)), labels


pipe = photographs()
images, labels = pipe.run()
print(images)  # Batch(4 x (120, 160, 3), uint8, HWC)
names = [bytes(label).decode() for label in labels]
print(sorted(names))  # ['0', '1', '2', '3']

# ---- figure ----
figure = {f"label {name}": image for image, name in zip(images, names, strict=True)}
