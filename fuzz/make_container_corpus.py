# SPDX-License-Identifier: Apache-2.0
"""Write seed files for the fuzzer of container files.

Usage: python fuzz/make_container_corpus.py FOLDER
"""

from __future__ import annotations

import io
import sys
import tarfile
from collections.abc import Iterator
from pathlib import Path

import numpy as np

sys.path.insert(0, str(Path(__file__).parent.parent / "tools"))
from containers import (
    MAGIC,
    datum,
    example,
    image_record,
    lmdb,
    lz4_block,
    lz4_sequences,
    recordio,
    stored_zip,
    tar,
    tfrecord,
)

EXAMPLE = {"i": [1, -2, 300], "f": [0.5, 1.5], "s": b"abc", "": [b"x", b"yz"]}
MEMBERS = [("a/1.jpg", b"jpg" * 9), ("a/1.cls", b"3"), ("l" * 150 + "/2.png", b"x" * 600), ("2.cls", b"")]


def files() -> Iterator[tuple[str, bytes]]:
    """Return names and contents."""
    yield "example", example(EXAMPLE)
    yield "example-unpacked", example(EXAMPLE, packed=False)
    yield "tfrecord", tfrecord([example(EXAMPLE), b"", example({"i": [7]})])
    for name, array in (("c", np.zeros((2, 3), "<f4")), ("f", np.zeros((2, 3), ">i2", order="F")), ("0", np.zeros(()))):
        out = io.BytesIO()
        np.save(out, array)
        yield f"{name}.npy", out.getvalue()
    rng = np.random.default_rng(1)
    for name, shape, dtype, order in (
        ("c3", (5, 4, 6), "<u2", "C"), ("f3", (5, 4, 6), ">f4", "F"), ("c1", (40,), ">f8", "C"),
        ("f4", (2, 3, 2, 3), "<i4", "F"), ("c4", (3, 1, 4, 2), ">i2", "C"), ("none", (3, 0, 2), "<f4", "C"),
        ("bytes", (9, 8), "u1", "C"),
    ):  # fmt: skip
        out = io.BytesIO()
        np.save(out, np.asarray(rng.integers(0, 256, shape), dtype, order=order))
        yield f"{name}.npy", out.getvalue()
    yield "huge.npy", header_of_array((0, 1 << 30, 1 << 20))
    yield "image", image_record([1.0, 2.0], b"jpeg")
    yield "recordio", recordio([image_record(1.0, b"jpeg"), MAGIC * 3 + b"abc" + MAGIC, b""])[0]
    corners = np.array([0, 0, 9.4, 2, 12, 17.6, -3, 5, 3, 40], np.float32).view(np.int32)
    yield "masks", np.array([1, 0, 10, *corners, 2, 1, 4, 3, 20, 7, 30, 1, 0, 10, *corners[::-1]], np.int32).tobytes()
    yield "polygon", corners.tobytes()
    yield "polygon-large", np.array([-1e6, 3, 1e6, 7, 30, -1e6, 30, 1e6, 2.5, 2.5], np.float32).tobytes()
    yield "zip", stored_zip(MEMBERS[:2])
    records = {b"%d" % i: datum(data=b"x" * i * 9, label=i, shape=(1, 3, 3 * i), encoded=False) for i in range(9)}
    yield "lmdb", lmdb(records, page=256)
    yield "datum", records[b"4"]
    yield "fields", np.array([3, 2], "<u4").tobytes() + b"abc" + b"12345678" + b"de"
    yield "lz4", bytes([0x40, 1, 2, 3, 4, 2, 0, 0x20, 5, 6, 10])
    for i in range(4):
        yield f"lz4-{i}", lz4_block(lz4_sequences(i, (20, 60, 150, 400)[i]))[0] + bytes([192 + i])
    for name, form in (("ustar", tarfile.USTAR_FORMAT), ("gnu", tarfile.GNU_FORMAT), ("pax", tarfile.PAX_FORMAT)):
        yield f"{name}.tar", tar(MEMBERS, form=form)[:6144]


def header_of_array(shape: tuple[int, ...]) -> bytes:
    """Return an .npy file of an array without elements."""
    out = io.BytesIO()
    np.lib.format.write_array_header_1_0(out, {"descr": "|u1", "fortran_order": False, "shape": shape})
    return out.getvalue()


def main(folder: Path) -> None:
    folder.mkdir(parents=True, exist_ok=True)
    for name, content in files():
        (folder / name).write_bytes(content)


if __name__ == "__main__":
    main(Path(sys.argv[1]))
