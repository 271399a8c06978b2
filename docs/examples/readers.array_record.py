# SPDX-License-Identifier: Apache-2.0
from pathlib import Path

from array_record.python.array_record_module import ArrayRecordWriter

from stoker import fn, pipeline_def

writer = ArrayRecordWriter("photos.array_record", "group_size:1")  # each record can be read alone
for photo in sorted(Path("photos").rglob("*.jpg")):
    writer.write(photo.read_bytes())
writer.close()


@pipeline_def(batch_size=4, num_threads=1, seed=1)
def photographs():
    files = fn.readers.array_record("photos.array_record", random_shuffle=True)
    return fn.resize(fn.decoders.image(files), size=(120, 160))


pipe = photographs()
(images,) = pipe.run()
print(images)  # Batch(4 x (120, 160, 3), uint8, HWC)
