# SPDX-License-Identifier: Apache-2.0
"""Formats of container files by their first bytes and their names."""

from __future__ import annotations

import os
from collections.abc import Sequence
from pathlib import Path, PurePath

FORMAT_NAMES = {"tfrecord": "TFRecord", "recordio": "RecordIO", "tar": "tar", "zip": "zip", "lmdb": "LMDB",
                "bagz": "Bagz", "mds": "MDS", "npy": "NumPy", "parquet": "Parquet", "arrow": "Arrow",
                "manifest": "manifest", "array_record": "ArrayRecord", "fits": "FITS", "lance": "Lance",
                "litdata": "LitData"}  # fmt: skip
_RECORDIO_MAGIC = b"\x0a\x23\xd7\xce"
_RIEGELI = bytes.fromhex("83af70d10d884a3f0000000000000000")  # the file format below ArrayRecord's
_TFRECORD_HEADER = 12  # bytes: a length, and its checksum
# Endings of names, by which a file is known whose first bytes are damaged.
_ENDINGS = {
    ".tfrecord": "tfrecord", ".tfrecords": "tfrecord", ".rec": "recordio", ".tar": "tar", ".zip": "zip",
    ".mdb": "lmdb", ".bag": "bagz", ".bagz": "bagz", ".mds": "mds", ".npy": "npy", ".parquet": "parquet",
    ".arrow": "arrow", ".manifest": "manifest", ".array_record": "array_record", ".arrayrecord": "array_record",
    ".fits": "fits", ".fit": "fits", ".fts": "fits", ".fits.fz": "fits",
}  # fmt: skip
_NUMBERED = {".tfrecord": "tfrecord", ".array_record": "array_record"}  # endings that a shard's number may follow
DATA_SET_INDEX = "index.json"  # of LitData, and of MDS
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
    found = _kind_of(head, path) or _kind_by_begin(head)
    if found is not None:
        return found
    if len(head) >= _TFRECORD_HEADER and _is_tfrecord(head):
        return "tfrecord"
    if head.startswith(_ROS_BAG):
        return None
    ending = next((kind for ending, kind in _ENDINGS.items() if name.endswith(ending)), None)
    if ending is None and not name.endswith((".idx", ".index")):  # names such as train.tfrecord-00003-of-00010
        return next((kind for part, kind in _NUMBERED.items() if part in name), None)
    return ending


def find_data_sets(paths: Sequence[Path]) -> dict[Path, tuple[str, list[Path]]]:
    """Return the data sets among files that are whole folders: for each folder the format, and the files of it.

    Args:
        paths: the files.
    """
    found: dict[Path, tuple[str, list[Path]]] = {}
    for path in paths:
        if is_lance_version(path):
            found[path.parent.parent] = "lance", []
        elif path.name == DATA_SET_INDEX and _is_litdata_index(path):
            found[path.parent] = "litdata", []
    for path in paths if found else ():
        for folder in path.parents:
            kind, files = found.get(folder, ("", []))
            is_part = path.name == DATA_SET_INDEX or is_litdata_chunk(path.name)
            if kind == "lance" or (kind == "litdata" and path.parent == folder and is_part):
                files.append(path)
                break
    return found


def is_lance_version(path: PurePath) -> bool:
    """Return whether a file is the description of a version of a Lance data set."""
    return path.parent.name == "_versions" and path.suffix == ".manifest"


def is_litdata_chunk(name: str) -> bool:
    """Return whether a file's name is that of a chunk of a LitData data set."""
    return name.startswith("chunk-") and name.endswith(".bin")


def _is_litdata_index(path: Path) -> bool:
    """Return whether a file, which may be damaged, is an index of LitData."""
    try:
        content = path.read_bytes()
    except OSError:
        return False
    return b'"chunk_bytes"' in content and b'"shards"' not in content


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


def _kind_by_begin(head: bytes) -> str | None:
    kinds = {
        b"\x93NUMPY": "npy",
        b"PAR1": "parquet",
        b"ARROW1": "arrow",
        b"SIMPLE  =": "fits",
        _RIEGELI: "array_record",
    }
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
