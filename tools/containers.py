# SPDX-License-Identifier: Apache-2.0
"""Writers of small container files for the examples and the tests, independent of the code that reads them."""

from __future__ import annotations

import io
import json
import struct
import tarfile
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any


def crc32c(data: bytes) -> int:
    """Return the CRC-32C of bytes, bit by bit."""
    state = 0xFFFFFFFF
    for byte in data:
        state ^= byte
        for _ in range(8):
            state = state >> 1 ^ (0x82F63B78 if state & 1 else 0)
    return state ^ 0xFFFFFFFF


def _masked(data: bytes) -> bytes:
    crc = crc32c(data)
    return struct.pack("<I", ((crc >> 15 | crc << 17) + 0xA282EAD8) & 0xFFFFFFFF)


def tfrecord(records: Iterable[bytes]) -> bytes:
    """Return a TFRecord file."""
    parts = []
    for record in records:
        length = struct.pack("<Q", len(record))
        parts += [length, _masked(length), record, _masked(record)]
    return b"".join(parts)


def varint(number: int) -> bytes:
    """Return a number as protocol buffers store it."""
    number &= (1 << 64) - 1
    out = bytearray()
    while number > 127:
        out.append(number & 127 | 128)
        number >>= 7
    return bytes([*out, number])


def message(field: int, content: bytes) -> bytes:
    """Return a field with bytes, as protocol buffers store it."""
    return varint(field << 3 | 2) + varint(len(content)) + content


def feature(values: Any, *, packed: bool = True) -> bytes:
    """Return a ``tf.train.Feature``: bytes, or a list of bytes, of floats or of integers."""
    if isinstance(values, bytes):
        values = [values]
    if values and isinstance(values[0], bytes):
        return message(1, b"".join(message(1, v) for v in values))
    if values and isinstance(values[0], float):
        numbers = [struct.pack("<f", v) for v in values]
        return message(2, message(1, b"".join(numbers)) if packed else b"".join(b"\x0d" + n for n in numbers))
    numbers = [varint(v) for v in values]
    return message(3, message(1, b"".join(numbers)) if packed else b"".join(b"\x08" + n for n in numbers))


def example(features: Mapping[str, Any], *, packed: bool = True) -> bytes:
    """Return a ``tf.train.Example``."""
    entries = (message(1, message(1, k.encode()) + message(2, feature(v, packed=packed))) for k, v in features.items())
    return message(1, b"".join(entries))


MAGIC = struct.pack("<I", 0xCED7230A)


def recordio(records: Iterable[bytes]) -> tuple[bytes, list[int]]:
    """Return a RecordIO file, and the offset of each record."""
    out, offsets = bytearray(), []
    for record in records:
        offsets.append(len(out))
        at = [i for i in range(0, len(record) - 3, 4) if record[i : i + 4] == MAGIC]
        begins, ends = [0, *(i + 4 for i in at)], [*at, len(record)]
        for k, (begin, end) in enumerate(zip(begins, ends, strict=True)):
            part = 0 if not at else 1 if k == 0 else 3 if k == len(at) else 2
            out += MAGIC + struct.pack("<I", part << 29 | end - begin) + record[begin:end] + bytes(-(end - begin) % 4)
    return bytes(out), offsets


def image_record(label: float | Sequence[float], image: bytes, number: int = 0) -> bytes:
    """Return an image with its label or labels as MXNet stores it."""
    labels = () if isinstance(label, (int, float)) else tuple(label)
    single = label if isinstance(label, (int, float)) else 0.0
    return struct.pack("<IfQQ", len(labels), single, number, 0) + struct.pack(f"<{len(labels)}f", *labels) + image


def tar(members: Iterable[tuple[str, bytes]], *, form: int = tarfile.PAX_FORMAT) -> bytes:
    """Return a tar file of regular files."""
    out = io.BytesIO()
    with tarfile.open(fileobj=out, mode="w", format=form) as file:
        for name, content in members:
            member = tarfile.TarInfo(name)
            member.size = len(content)
            file.addfile(member, io.BytesIO(content))
    return out.getvalue()


def write_examples(folder: Path) -> None:
    """Write the photographs of ``folder/photos`` as container files, for the examples of the readers."""
    photos = sorted((folder / "photos").rglob("*.jpg"))
    classes = sorted({p.parent.name for p in photos})
    labelled = [(p, classes.index(p.parent.name), p.read_bytes()) for p in photos]
    records = [example({"image/encoded": data, "image/class/label": [label]}) for _, label, data in labelled]
    (folder / "photos.tfrecord").write_bytes(tfrecord(records))
    images = [image_record(float(label), data, number) for number, (_, label, data) in enumerate(labelled)]
    (folder / "photos.rec").write_bytes(recordio(images)[0])
    members = [
        (f"{path.parent.name}/{path.stem}.{ext}", content)
        for path, label, data in labelled
        for ext, content in (("jpg", data), ("cls", str(label).encode()))
    ]
    (folder / "photos.tar").write_bytes(tar(members))
    (folder / "photos.json").write_text(json.dumps(coco_annotations(folder / "photos", photos, classes)))


def coco_annotations(root: Path, photos: Sequence[Path], classes: Sequence[str]) -> dict[str, Any]:
    """Return annotations of photographs in COCO's form: the middle of each as a box and as a polygon."""
    from PIL import Image  # the corpus of the fuzzer needs none

    images, found = [], []
    for number, path in enumerate(photos):
        with Image.open(path) as image:
            width, height = image.size
        name = path.relative_to(root).as_posix()
        images.append({"id": number, "file_name": name, "width": width, "height": height})
        x, y, w, h = width // 4, height // 4, width // 2, height // 2
        found.append(
            {"id": number, "image_id": number, "category_id": classes.index(path.parent.name), "iscrowd": 0,
             "bbox": [x, y, w, h], "segmentation": [[x, y, x + w, y, x + w, y + h, x, y + h]]}
        )  # fmt: skip
    categories = [{"id": i, "name": name} for i, name in enumerate(classes)]
    return {"images": images, "annotations": found, "categories": categories}
