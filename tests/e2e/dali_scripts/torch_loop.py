# SPDX-License-Identifier: Apache-2.0
"""Training loops over DALI's PyTorch iterators. Arguments: folder of class folders."""

import sys

import nvidia.dali.fn as fn
import nvidia.dali.types as types
import torch
from nvidia.dali import pipeline_def
from nvidia.dali.plugin.base_iterator import LastBatchPolicy
from nvidia.dali.plugin.pytorch import DALIClassificationIterator, DALIGenericIterator


@pipeline_def
def images(folder):
    jpegs, labels = fn.readers.file(file_root=folder, name="Reader")
    decoded = fn.resize(fn.decoders.image(jpegs), size=[20, 24])
    return fn.crop_mirror_normalize(decoded, dtype=types.FLOAT, mean=[128.0] * 3, std=[64.0] * 3), labels


settings = {"batch_size": 4, "num_threads": 1, "device_id": None}
pipe = images(sys.argv[1], **settings)
pipe.build()
size = pipe.epoch_size("Reader")
loader = DALIClassificationIterator(
    [pipe], reader_name="Reader", last_batch_policy=LastBatchPolicy.PARTIAL, auto_reset=True
)
model = torch.nn.Sequential(torch.nn.Flatten(), torch.nn.Linear(3 * 20 * 24, 3))
optimizer = torch.optim.SGD(model.parameters(), lr=1e-3)
for _ in range(2):
    rows = 0
    for batch in loader:
        x, y = batch[0]["data"], batch[0]["label"].squeeze(-1).long()
        assert x.dtype is torch.float32 and tuple(x.shape[1:]) == (3, 20, 24)
        loss = torch.nn.functional.cross_entropy(model(x), y)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        rows += len(y)
    assert rows == size, (rows, size)
assert len(loader) == -(-size // 4)

filled = DALIGenericIterator(images(sys.argv[1], **settings), ["x", "y"], reader_name="Reader")
assert sum(len(b[0]["y"]) for b in filled) == 4 * len(filled)
filled.reset()
assert len(next(iter(filled))[0]["x"]) == 4
print("fine")
