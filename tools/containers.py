# SPDX-License-Identifier: Apache-2.0
"""Writers of small container files for the examples and the tests, independent of the code that reads them."""

from __future__ import annotations

import io
import json
import struct
import tarfile
import zipfile
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np


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


def bagz(records: Iterable[bytes]) -> bytes:
    """Return a Bagz file without compression: the records, then their ends."""
    kept = list(records)
    ends = [sum(map(len, kept[: i + 1])) for i in range(len(kept))]
    return b"".join(kept) + struct.pack(f"<{len(ends)}Q", *ends)


def datum(
    *, data: bytes = b"", label: int | None = None, shape: Sequence[int] = (), encoded: bool | None = None
) -> bytes:
    """Return a record of Caffe. ``shape``: channels, height, width."""
    parts = [varint(field << 3) + varint(n) for field, n in enumerate(shape, 1)]
    parts.append(message(4, data))
    parts += [] if label is None else [varint(5 << 3) + varint(label)]
    parts += [] if encoded is None else [varint(7 << 3) + varint(int(encoded))]
    return b"".join(parts)


def tensor(values: Any, kind: int, shape: Sequence[int] = (), *, packed: bool = True) -> bytes:
    """Return a TensorProto of Caffe2. ``kind``: 1 floats, 2 and 10 integers, 3 bytes, 4 a string."""
    head = b"".join(varint(1 << 3) + varint(n) for n in shape) + varint(2 << 3) + varint(kind)
    if kind in (3, 4):
        return head + message(5 if kind == 3 else 6, values)
    field, wire = {1: (3, 5), 2: (4, 0), 10: (10, 0)}[kind]
    numbers = [struct.pack("<f", v) if kind == 1 else varint(v) for v in values]
    return head + (
        message(field, b"".join(numbers)) if packed else b"".join(varint(field << 3 | wire) + n for n in numbers)
    )


def tensors(*protos: bytes) -> bytes:
    """Return a record of Caffe2 with these tensors."""
    return b"".join(message(1, proto) for proto in protos)


def lmdb(items: Mapping[bytes, bytes], *, page: int = 4096) -> bytes:
    """Return the data file of an LMDB environment, whose tree has as many levels as needed."""
    pages: dict[int, bytes] = {}
    entries: list[tuple[bytes, bytes]] = []  # first key of a page, and the node for it
    nodes: list[tuple[bytes, bytes]] = []
    for key, value in sorted(items.items()):
        if len(key) + len(value) > page // 2 - 24:  # the value has pages of its own
            number, count = 2 + len(pages), (16 + len(value) + page - 1) // page
            body = struct.pack("<QHHI", number, 0, 0x04, count) + value
            for i in range(count):
                pages[number + i] = body[i * page : (i + 1) * page].ljust(page, b"\0")
            content, flags = struct.pack("<Q", number), 1
        else:
            content, flags = value, 0
        size = len(value)
        nodes.append((key, struct.pack("<HHHH", size & 0xFFFF, size >> 16, flags, len(key)) + key + content))
    kind, depth = 0x02, 0
    while nodes:
        depth += 1
        entries = []
        for group in _groups(nodes, page):
            number = 2 + len(pages)
            pages[number] = _lmdb_page(number, kind, [node for _, node in group], page)
            head = struct.pack("<HHHH", number & 0xFFFF, number >> 16 & 0xFFFF, number >> 32, len(group[0][0]))
            entries.append((group[0][0], head + group[0][0]))
        if len(entries) == 1:
            break
        nodes, kind = entries, 0x01
    root = 1 + len(pages) if items else (1 << 64) - 1
    tree = struct.pack("<IHHQQQQQ", 0, 0, depth, 0, 0, 0, len(items), root)
    free = struct.pack("<IHHQQQQQ", page, 0, 0, 0, 0, 0, 0, (1 << 64) - 1)
    metas = []
    for i in range(2):  # the newer transaction is in the second one
        own = tree if i == 1 else free[:4] + free[4:40] + struct.pack("<Q", (1 << 64) - 1)
        meta = struct.pack("<IIQQ", 0xBEEFC0DE, 1, 0, 1 << 20) + free + own + struct.pack("<QQ", 1 + len(pages), i + 1)
        metas.append((struct.pack("<QHHHH", i, 0, 0x08, 0, 0) + meta).ljust(page, b"\0"))
    return b"".join([*metas, *(pages[n] for n in sorted(pages))])


def _groups(nodes: Sequence[tuple[bytes, bytes]], page: int) -> list[list[tuple[bytes, bytes]]]:
    """Return the nodes of each page, at least two in a page of branches."""
    groups: list[list[tuple[bytes, bytes]]] = [[]]
    for node in nodes:
        used = sum(2 + len(body) + len(body) % 2 for _, body in [*groups[-1], node])
        if 16 + used > page:
            groups.append([])
        groups[-1].append(node)
    return groups


def _lmdb_page(number: int, kind: int, nodes: Sequence[bytes], page: int) -> bytes:
    offsets, body = [], b""
    for node in nodes:
        body = node + bytes(len(node) % 2) + body
        offsets.append(page - len(body))
    lower = 16 + 2 * len(nodes)
    head = struct.pack("<QHHHH", number, 0, kind, lower, page - len(body)) + struct.pack(f"<{len(nodes)}H", *offsets)
    return head.ljust(page - len(body), b"\0") + body


def mds(folder: Path, samples: Sequence[Mapping[str, bytes]], columns: Mapping[str, tuple[str, int | None]],
        per_shard: int) -> None:  # fmt: skip
    """Write a data set of MosaicML Streaming.

    Args:
        samples: encoded values by column.
        columns: encoding and size (None: varying) of each column.
        per_shard: number of samples of a shard.
    """
    folder.mkdir(parents=True, exist_ok=True)
    shards: list[dict[str, Any]] = []
    for begin in range(0, len(samples), per_shard):
        bodies = []
        for sample in samples[begin : begin + per_shard]:
            varying = [struct.pack("<I", len(sample[k])) for k, (_, size) in columns.items() if size is None]
            bodies.append(b"".join(varying) + b"".join(sample[k] for k in columns))
        info = b'{"made": "by hand"}'
        first = 4 * (len(bodies) + 2) + len(info)
        offsets = [first + sum(map(len, bodies[:i])) for i in range(len(bodies) + 1)]
        content = struct.pack(f"<{len(offsets) + 1}I", len(bodies), *offsets) + info + b"".join(bodies)
        name = f"shard.{len(shards):05}.mds"
        (folder / name).write_bytes(content)
        shards.append(
            {"format": "mds", "version": 2, "samples": len(bodies), "compression": None, "hashes": [], "zip_data": None,
             "column_names": list(columns), "column_encodings": [e for e, _ in columns.values()],
             "column_sizes": [s for _, s in columns.values()], "raw_data": {"basename": name, "bytes": len(content)},
             "size_limit": 1 << 26}
        )  # fmt: skip
    (folder / "index.json").write_text(json.dumps({"version": 2, "shards": shards}))


def stored_zip(members: Iterable[tuple[str, bytes]]) -> bytes:
    """Return a zip archive without compression."""
    out = io.BytesIO()
    with zipfile.ZipFile(out, "w", zipfile.ZIP_STORED) as file:
        for name, content in members:
            file.writestr(name, content)
    return out.getvalue()


def tables(folder: Path, name: str, images: Sequence[bytes], labels: Sequence[int], classes: Sequence[str]) -> None:
    """Write images with labels as ``NAME.parquet`` and as a data set of Hugging Face, ``NAME-hf``."""
    import datasets  # the corpus of the fuzzer needs none of the two
    import pyarrow.parquet

    table = pyarrow.table({"image": list(images), "label": list(labels)})
    pyarrow.parquet.write_table(table, folder / f"{name}.parquet", row_group_size=2)
    features = datasets.Features({"image": datasets.Image(), "label": datasets.ClassLabel(names=list(classes))})
    rows = [{"image": {"bytes": i, "path": None}, "label": n} for i, n in zip(images, labels, strict=True)]
    bar = datasets.is_progress_bar_enabled()
    datasets.disable_progress_bar()
    datasets.Dataset.from_list(rows, features=features).save_to_disk(folder / f"{name}-hf")
    if bar:
        datasets.enable_progress_bar()


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
    files = [(p.relative_to(folder / "photos").as_posix(), data) for p, _, data in labelled]
    (folder / "photos.zip").write_bytes(stored_zip(files))
    (folder / "photos.bag").write_bytes(bagz(data for _, data in files))
    (folder / "photos.lmdb").mkdir()
    values = {f"{i:08}".encode(): datum(data=d, label=label, encoded=True) for i, (_, label, d) in enumerate(labelled)}
    (folder / "photos.lmdb" / "data.mdb").write_bytes(lmdb(values))
    (folder / "photos.caffe2").mkdir()
    values = {k: tensors(tensor(d, 4), tensor([n], 2)) for k, (_, n, d) in zip(values, labelled, strict=True)}
    (folder / "photos.caffe2" / "data.mdb").write_bytes(lmdb(values))
    samples = [{"image": data, "label": struct.pack("<q", label)} for _, label, data in labelled]
    mds(folder / "photos-mds", samples, {"image": ("jpeg", None), "label": ("int", 8)}, per_shard=3)
    tables(folder, "photos", [data for *_, data in labelled], [label for _, label, _ in labelled], classes)
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


def lz4_block(sequences: list[tuple[bytes, int, int]]) -> tuple[bytes, bytes]:
    """Return an LZ4 block and its contents.

    Args:
        sequences: literal bytes, distance and length of the match that follows them. The last sequence has none.
    """
    block, contents = bytearray(), bytearray()
    for i, (literals, distance, match) in enumerate(sequences):
        is_last = i == len(sequences) - 1
        lengths = len(literals), 0 if is_last else match - 4
        block.append(min(lengths[0], 15) << 4 | min(lengths[1], 15))
        block += _more_length(lengths[0]) + literals
        contents += literals
        if not is_last:
            block += distance.to_bytes(2, "little") + _more_length(lengths[1])
            for _ in range(match):
                contents.append(contents[-distance])
    return bytes(block), bytes(contents)


def _more_length(length: int) -> bytes:
    """Return the further bytes of a length that does not fit into the token of an LZ4 block."""
    return b"" if length < 15 else b"\xff" * ((length - 15) // 255) + bytes([(length - 15) % 255])


def lz4_sequences(seed: int, count: int) -> list[tuple[bytes, int, int]]:
    """Return random sequences for :func:`lz4_block`, with short and long literals, distances and matches."""
    rng = np.random.default_rng(seed)
    sequences, size = [], 0
    for i in range(count):
        literals = int(
            rng.choice([rng.integers(0, 5), rng.integers(0, 40), rng.integers(200, 600)], p=[0.6, 0.35, 0.05])
        )
        literals = max(literals, 1) if i == 0 else literals
        size += literals
        most = int(rng.choice([8, 16, 40, 65535], p=[0.3, 0.2, 0.3, 0.2]))
        distance = int(rng.integers(1, min(most, size) + 1))
        match = 4 + int(rng.choice([rng.integers(0, 15), rng.integers(0, 40), rng.integers(0, 900)], p=[0.6, 0.3, 0.1]))
        size += match
        sequences.append((rng.bytes(literals), distance, match))
    return [*sequences, (rng.bytes(int(rng.integers(0, 40))), 0, 0)]
