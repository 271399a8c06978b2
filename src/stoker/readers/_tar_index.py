# SPDX-License-Identifier: Apache-2.0
"""Index files of tar files in the WebDataset form, as DALI's ``wds2idx`` writes them."""

from __future__ import annotations

import numpy as np

from ..contract.errors import ArgumentError
from ..contract.text import brief, printable
from ._index_files import ContainerIndex

_BLOCK = 512


def read_tar_index(path: str) -> ContainerIndex:
    """Return the index in a file. Its first line has the version and the number of samples, the others one sample each.

    Version 1.1 has an extension, an offset and a size per component, and version 1.2 also the member's name. Members
    are named after the number of their sample, because version 1.1 has no names and 1.2 does not quote them.

    Raises:
        ArgumentError: there is no such file, or a line does not have this form.
    """
    try:
        with open(path, encoding="utf-8", errors="surrogateescape") as file:
            lines = file.read().split("\n")
    except (FileNotFoundError, IsADirectoryError):
        raise ArgumentError(f"expected an index file, there is none at '{printable(path)}'") from None
    head = lines[0].split()
    if len(head) != 2 or head[0] not in ("v1.1", "v1.2") or not (head[1].isascii() and head[1].isdigit()):
        raise _fault(path, 1, 'a line such as "v1.2 1000"', lines[0])
    count, width = int(head[1]), 3 if head[0] == "v1.1" else 4
    if len(lines) - 1 < count or any(not line.strip() for line in lines[1 : count + 1]):
        got = sum(bool(line.strip()) for line in lines[1:])
        raise ArgumentError(f"expected {count} samples in '{printable(path)}', got {got}: the file is incomplete")
    offsets, sizes, names = [], [], []
    for number, line in enumerate(lines[1 : count + 1]):
        parts = line.split()
        if len(parts) % width or not parts:
            raise _fault(path, number + 2, f"{width} entries per component", line)
        for at in range(0, len(parts), width):
            extension, offset, size = parts[at : at + 3]
            if not (_is_number(offset) and _is_number(size)) or int(offset) % _BLOCK:
                raise _fault(path, number + 2, "extensions, offsets that are multiples of 512, and sizes", line)
            offsets.append(int(offset))
            sizes.append(int(size))
            names.append(f"{number}.{extension}\0")
    packed = "".join(names).encode("utf-8", "surrogateescape")
    return ContainerIndex(np.asarray(offsets, np.uint64), np.asarray(sizes, np.uint64), packed)


def _is_number(text: str) -> bool:
    return text.isascii() and text.isdigit() and len(text) < 17


def _fault(path: str, line: int, expected: str, got: str) -> ArgumentError:
    return ArgumentError(f"expected {expected} in line {line} of '{printable(path)}', got {brief(got)}")
