# SPDX-License-Identifier: Apache-2.0
"""Formats of container files by their first bytes and their names."""

from __future__ import annotations

import os

FORMAT_NAMES = {"tfrecord": "TFRecord", "recordio": "RecordIO", "tar": "tar", "zip": "zip", "lmdb": "LMDB",
                "bagz": "Bagz", "mds": "MDS", "npy": "NumPy", "parquet": "Parquet", "arrow": "Arrow",
                "manifest": "manifest"}  # fmt: skip
_RECORDIO_MAGIC = b"\x0a\x23\xd7\xce"
_TFRECORD_HEADER = 12  # bytes: a length, and its checksum
# Endings of names, by which a file is known whose first bytes are damaged.
_ENDINGS = {
    ".tfrecord": "tfrecord", ".tfrecords": "tfrecord", ".rec": "recordio", ".tar": "tar", ".zip": "zip",
    ".mdb": "lmdb", ".bag": "bagz", ".bagz": "bagz", ".mds": "mds", ".npy": "npy", ".parquet": "parquet",
    ".arrow": "arrow", ".manifest": "manifest",
}  # fmt: skip
HEADERLESS = (".bag", ".bagz")  # these files begin with their first record
# Files that begin like a container and are none.
_FOREIGN_ENDINGS = ("lock.mdb", ".npz", ".docx", ".xlsx", ".pptx", ".odt", ".jar", ".whl", ".apk", ".egg", ".pt",
                    ".pth", ".keras")  # fmt: skip
_ROS_BAG = b"#ROSBAG"  # also named .bag


def find_kind(path: str) -> str:
    """Return the format of a container file by its first bytes; TFRecord if they are not those of another format."""
    with open(path, "rb") as file:
        head = file.read(512)
    return _kind_of(head, path) or "tfrecord"


def recognize(path: str) -> str | None:
    """Return the format of a file that is a container of records, by its first bytes or else its name; None for others.

    Raises:
        OSError: the file cannot be read.
    """
    name = os.path.basename(path).lower()
    if name.endswith(_FOREIGN_ENDINGS):
        return None
    with open(path, "rb") as file:
        head = file.read(512)
    found = _kind_of(head, path) or _kind_of_arrays(head)
    if found is not None:
        return found
    if len(head) >= _TFRECORD_HEADER and _is_tfrecord(head):
        return "tfrecord"
    if head.startswith(_ROS_BAG):
        return None
    ending = next((kind for ending, kind in _ENDINGS.items() if name.endswith(ending)), None)
    return "tfrecord" if ending is None and ".tfrecord" in name and not name.endswith((".idx", ".index")) else ending


def _kind_of(head: bytes, path: str) -> str | None:
    if head[:4] == _RECORDIO_MAGIC:
        return "recordio"
    if head[:4] in (b"PK\3\4", b"PK\5\6"):
        return "zip"
    if head[16:20] == b"\xde\xc0\xef\xbe":
        return "lmdb"
    if head[257:262] == b"ustar" or path.lower().endswith(".tar"):
        return "tar"
    return None


def _kind_of_arrays(head: bytes) -> str | None:
    kinds = {b"\x93NUMPY": "npy", b"PAR1": "parquet", b"ARROW1": "arrow"}
    return next((kind for magic, kind in kinds.items() if head.startswith(magic)), None)


def _is_tfrecord(head: bytes) -> bool:
    """Return whether the first 12 bytes are a length and its masked CRC-32C."""
    state = 0xFFFFFFFF
    for byte in head[:8]:
        state ^= byte
        for _ in range(8):
            state = (state >> 1) ^ (0x82F63B78 if state & 1 else 0)
    crc = state ^ 0xFFFFFFFF
    masked = (((crc >> 15) | (crc << 17)) + 0xA282EAD8) & 0xFFFFFFFF
    return masked == int.from_bytes(head[8:12], "little")
