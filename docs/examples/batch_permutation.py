# SPDX-License-Identifier: Apache-2.0
from stoker import fn, pipeline_def


@pipeline_def(batch_size=4, num_threads=1, seed=4)
def shuffled_rows():
    files, _ = fn.readers.file(file_root="photos", seed=4, random_shuffle=True)
    images = fn.resize(fn.decoders.image(files), size=(120, 160))
    rows = fn.batch_permutation()
    return images, rows, fn.permute_batch(images, indices=rows)


pipe = shuffled_rows()
images, rows, shuffled = pipe.run()
print([int(row) for row in rows])  # [1, 0, 2, 3]

# ---- figure ----
from figures import sheet

figure = {"images": sheet(images, 2), "permute_batch(images, indices=rows)": sheet(shuffled, 2)}
