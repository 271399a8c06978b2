# SPDX-License-Identifier: Apache-2.0
"""Folder that keeps the JPEG index of a GPU beyond the process.

The folder holds parts. Each is written once, under a temporary name, and renamed when it is complete and on the disk.
Readers therefore never see an incomplete part, and processes can share a folder without locks: each reads the existing
parts when it starts, and adds one for the new files that it decoded. The process that adds a part also merges small
parts if there are many (``index_parts``). A part that is damaged or has another version is skipped with a warning; its
files are indexed again.
"""

from __future__ import annotations

import atexit
import os
import threading
from collections.abc import Iterator
from pathlib import Path

from ...contract.errors import ArgumentError
from ...contract.live_objects import LiveObjects
from ...contract.private_folder import make_private_folder, require_private_folder
from ...contract.text import printable
from ...contract.warning import warn
from ...native import _native
from .index_parts import merge_parts, parts_of, read_pieces, write_part

_SLOTS = 2048  # entries of a piece


_OPEN: LiveObjects[IndexFolder] = LiveObjects()


@atexit.register
def save_all() -> None:
    """Save the indexes of pipelines that were not closed, before interpreter shutdown removes the means to save."""
    for folder in _OPEN.list():
        folder.save()


class IndexFolder:
    """Index of a folder: loads its parts into an index, and saves new entries as a new part.

    Raises:
        ArgumentError: ``path`` is an existing path that is not a folder, or a folder that other users may write to.
    """

    def __init__(self, path: str | os.PathLike[str], index: _native.gpu.JpegIndex, device: _native.gpu.Device) -> None:
        self.path = Path(path).absolute()  # the process may change its directory before it saves
        if self.path.exists() and not self.path.is_dir():
            raise ArgumentError(f"`Pipeline`: expected a folder as `gpu_jpeg_index_path`, got the file '{self.path}'")
        try:
            require_private_folder(self.path)
        except OSError as error:
            raise ArgumentError(f"`Pipeline`: `gpu_jpeg_index_path`: {error}") from None
        self._index, self._device = index, device
        self._written = 0
        self._process = os.getpid()
        self._saving = threading.Lock()
        _OPEN.add(self)

    def load(self) -> None:
        """Load known files, as far as there is room. One warning lists parts that are skipped."""
        bad = []
        seen: set[Path] = set()
        # Other processes may merge parts during the loop.
        while parts := [part for part in parts_of(self.path) if part not in seen]:
            for part in parts:
                seen.add(part)
                try:
                    self._load(part)
                except FileNotFoundError:
                    continue  # the next iteration finds the merged part
                except (OSError, ValueError) as error:
                    bad.append(f"'{printable(part.name)}' ({error})")
        self._written = self._index.slots
        if bad:
            text = f"not used of the index of JPEG files in '{printable(self.path)}': {', '.join(bad)}"
            warn(f"{text}. Its files are indexed again; delete it", stacklevel=2)

    def _load(self, part: Path) -> None:
        with part.open("rb") as file:
            for packed in read_pieces(file, self._index.record_bytes):
                self._index.unpack(self._device, packed)

    def save(self) -> None:
        """Write new entries. If the disk is full or read-only, warn and write no part."""
        if os.getpid() != self._process:  # a forked child has no device
            return
        with self._saving:  # threads may close the pipeline at the same time
            self._save()

    def _save(self) -> None:
        count = self._index.slots
        if count == self._written:
            return
        try:
            make_private_folder(self.path)
            write_part(self.path, self._index.record_bytes, self._new(count))
            merge_parts(self.path, self._index.record_bytes)
        except (OSError, _native.gpu.DeviceFailure) as error:
            text = f"what was found out about JPEG files is not kept in '{printable(self.path)}': {error}"
            warn(text, stacklevel=2)
        self._written = count

    def _new(self, count: int) -> Iterator[bytes]:
        for begin in range(self._written, count, _SLOTS):
            yield self._index.packed(self._device, begin, min(count, begin + _SLOTS))
