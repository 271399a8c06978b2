# SPDX-License-Identifier: Apache-2.0
from pathlib import Path

from stoker import fn, pipeline_def


class Photographs:
    def __init__(self, folder):
        self.files = sorted(Path(folder).rglob("*.jpg"))

    def __len__(self):
        return len(self.files)

    def __getitem__(self, index):  # runs in a worker process
        return self.files[index].read_bytes(), index


@pipeline_def(batch_size=4, num_threads=1, seed=1, py_num_workers=2)
def photographs():
    data, number = fn.readers.dataset(Photographs("photos"), num_outputs=2, random_shuffle=True)
    return fn.resize(fn.decoders.image(data), size=(120, 160)), number


pipe = photographs()
images, numbers = pipe.run()
print(images, numbers)  # Batch(4 x (120, 160, 3), uint8, HWC) Batch(4 x (), int64)

# ---- figure ----
figure = {f"sample {int(number)}": image for image, number in zip(images, numbers, strict=True)}
