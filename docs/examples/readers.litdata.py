# SPDX-License-Identifier: Apache-2.0
from pathlib import Path

from litdata.streaming import Cache
from litdata.types import Jpeg

from stoker import fn, pipeline_def

writer = Cache("photos-litdata", chunk_size=4)  # `litdata.optimize` does this in several processes
for i, photo in enumerate(sorted(Path("photos").rglob("*.jpg"))):
    writer[i] = {"image": Jpeg(bytes=photo.read_bytes()), "label": i // 2}
writer.done()
writer.merge()


@pipeline_def(batch_size=4, num_threads=1, seed=1, py_num_workers=1)
def photographs():
    data = fn.readers.litdata("photos-litdata", columns=["image", "label"], random_shuffle=True)
    return fn.resize(fn.decoders.image(data["image"]), size=(120, 160)), data["label"]


pipe = photographs()
images, labels = pipe.run()
print(images, labels)  # Batch(4 x (120, 160, 3), uint8, HWC) Batch(4 x (), int64)
