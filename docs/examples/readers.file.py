# SPDX-License-Identifier: Apache-2.0
from stoker import fn, pipeline_def


@pipeline_def(batch_size=4, num_threads=1, seed=1)
def photographs():
    # A folder per class:
    files, labels = fn.readers.file(file_root="photos", random_shuffle=True, name="Reader")
    return fn.resize(fn.decoders.image(files), size=(120, 160)), labels


pipe = photographs()
print(pipe.epoch_size("Reader"))  # 8
images, labels = pipe.run()
print(images, labels)  # Batch(4 x (120, 160, 3), uint8, HWC) Batch(4 x (1,), int32)

# ---- figure ----
figure = {f"label {int(label[0])}": image for image, label in zip(images, labels, strict=True)}
