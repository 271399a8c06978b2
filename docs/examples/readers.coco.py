# SPDX-License-Identifier: Apache-2.0
from stoker import fn, pipeline_def


@pipeline_def(batch_size=4, num_threads=1, seed=1)
def photographs():
    files, boxes, labels, masks = fn.readers.coco(
        file_root="photos",
        annotations_file="photos.json",
        ltrb=True,
        pixelwise_masks=True,
        random_shuffle=True,
    )
    images = fn.decoders.image(files)
    return fn.resize(images, size=(120, 160)), boxes, labels, masks


pipe = photographs()
images, boxes, labels, masks = pipe.run()
print(images)  # Batch(4 x (120, 160, 3), uint8, HWC)
print(boxes[0])  # [[ 56.  75. 168. 225.]]
print(labels)  # Batch(4 x (1,), int32)
print(masks[0].shape)  # (300, 225, 1)

# ---- figure ----
figure = {f"label {int(label[0])}": image for image, label in zip(images, labels, strict=True)}
