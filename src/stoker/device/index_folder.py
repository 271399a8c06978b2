# SPDX-License-Identifier: Apache-2.0
"""What JPEG decoders on a GPU find out about files, in a folder that outlives the process.

The folder holds parts, each written once: under another name first, and renamed when it is whole and on the disk. So
readers never see half of one, and several processes may share a folder without waiting for each other: each reads the
parts that are there when it starts, and adds one with the files that it has met besides. Whoever adds one puts the
smaller ones together if they have become many (``index_parts``). A part that is damaged, or of another version, is left
out with a warning; its files are found out about anew.
"""

from __future__ import annotations

import atexit
import os
import warnings
import weakref
from collections.abc import Iterator
from pathlib import Path

from ..contract.errors import ArgumentError
from ..native import _native
from .index_parts import merge_parts, parts_of, read_pieces, write_part

_SLOTS = 2048  # of a piece


_OPEN: weakref.WeakSet[IndexFolder] = weakref.WeakSet()


@atexit.register
def save_all() -> None:
    """What pipelines know that nobody has closed; before the interpreter takes apart what that needs."""
    for folder in list(_OPEN):
        folder.save()


class IndexFolder:
    """The parts in ``path`` as an index's beginning, and a new part for what it has learnt.

    Raises:
        ArgumentError: ``path`` is there, and is no folder.
    """

    def __init__(self, path: str | os.PathLike[str], index: _native.gpu.JpegIndex, device: _native.gpu.Device) -> None:
        self.path = Path(path).absolute()  # what is new is written at the end, wherever the process is then
        if self.path.exists() and not self.path.is_dir():
            raise ArgumentError(f"`Pipeline`: expected a folder as `gpu_jpeg_index_path`, got the file '{self.path}'")
        self._index, self._device = index, device
        self._written = 0
        self._process = os.getpid()
        _OPEN.add(self)

    def load(self) -> None:
        """Take over what is known of files, as far as there is room. One warning tells of parts that are left out."""
        bad = []
        seen: set[Path] = set()
        while parts := [part for part in parts_of(self.path) if part not in seen]:  # others may be merging them
            for part in parts:
                seen.add(part)
                try:
                    self._load(part)
                except FileNotFoundError:
                    continue  # what took its place is found next
                except (OSError, ValueError) as error:
                    bad.append(f"'{part.name}' ({error})")
        self._written = self._index.slots
        if bad:
            text = f"not used of the index of JPEG files in '{self.path}': {', '.join(bad)}"
            warnings.warn(
                f"{text}. What was known of its files is found out anew; delete it", RuntimeWarning, stacklevel=2
            )

    def _load(self, part: Path) -> None:
        with part.open("rb") as file:
            for packed in read_pieces(file, self._index.record_bytes):
                self._index.unpack(self._device, packed)

    def save(self) -> None:
        """Write what is new. A warning, and no part, if the disk has no room or does not let it."""
        count = self._index.slots
        if count == self._written or os.getpid() != self._process:  # a child process has no device
            return
        try:
            self.path.mkdir(parents=True, exist_ok=True)
            write_part(self.path, self._index.record_bytes, self._new(count))
            merge_parts(self.path, self._index.record_bytes)
        except (OSError, _native.gpu.DeviceFailure) as error:
            text = f"what was found out about JPEG files is not kept in '{self.path}': {error}"
            warnings.warn(text, RuntimeWarning, stacklevel=2)
        self._written = count

    def _new(self, count: int) -> Iterator[bytes]:
        for begin in range(self._written, count, _SLOTS):
            yield self._index.packed(self._device, begin, min(count, begin + _SLOTS))
