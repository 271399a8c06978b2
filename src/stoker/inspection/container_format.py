# SPDX-License-Identifier: Apache-2.0
"""Formats of container files by their first bytes."""

from __future__ import annotations

FORMAT_NAMES = {"tfrecord": "TFRecord", "recordio": "RecordIO", "tar": "tar", "zip": "zip", "lmdb": "LMDB",
                "bagz": "Bagz", "mds": "MDS"}  # fmt: skip
_RECORDIO_MAGIC = b"\x0a\x23\xd7\xce"


def find_kind(path: str) -> str:
    """Return the format of a container file by its first bytes; TFRecord if they are not those of another format."""
    with open(path, "rb") as file:
        head = file.read(512)
    if head[:4] == _RECORDIO_MAGIC:
        return "recordio"
    if head[:4] in (b"PK\3\4", b"PK\5\6"):
        return "zip"
    if head[16:20] == b"\xde\xc0\xef\xbe":
        return "lmdb"
    if head[257:262] == b"ustar" or path.lower().endswith(".tar"):
        return "tar"
    return "tfrecord"
