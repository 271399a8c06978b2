# SPDX-License-Identifier: Apache-2.0
from pathlib import Path

import lance
import pyarrow

from stoker import fn, pipeline_def

photos = sorted(Path("photos").rglob("*.jpg"))
images, labels = [p.read_bytes() for p in photos], [i // 2 for i in range(len(photos))]
lance.write_dataset(pyarrow.table({"image": images, "label": labels}), "photos.lance")


@pipeline_def(batch_size=4, num_threads=1, seed=1)
def photographs():
    columns = ["image", "label"]
    data = fn.readers.lance("photos.lance", columns, label="label", random_shuffle=True)
    return fn.resize(fn.decoders.image(data["image"]), size=(120, 160)), data["label"]


pipe = photographs()
images, labels = pipe.run()
print(images, labels)  # Batch(4 x (120, 160, 3), uint8, HWC) Batch(4 x (1,), int32)
