# SPDX-License-Identifier: Apache-2.0
"""``readers.sequence``: sequences of frames that are image files."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

from .._image_formats import has_image_extension
from ..contract.argument import arg
from ..contract.columns import Column, DataSet
from ..contract.errors import ArgumentError, UnsupportedError
from ..contract.lowering import Lowering
from ..contract.step import Value
from ..contract.storage import Bools, Storage
from ..contract.text import brief, printable
from ..contract.types import DType
from ._columns import fingerprint
from ._containers import ContainerReader
from ._fetching import AsyncStorage, StorageGroup
from ._folders import open_folder, whole_files
from ._storages import FileStorage


class SequenceReader(ContainerReader, name="readers.sequence"):
    """Read sequences of frames, each frame an image file. Output: uint8 FHWC.

    Every sub-folder of `file_root` is a stream, whose frames are its image files in lexicographic order. A sequence has
    `sequence_length` frames, `stride` frames apart; sequences of a stream begin `step` frames apart. Incomplete
    sequences are left out. The frames of a sequence must have one size.
    """

    outputs = 1
    result_neutral = (*ContainerReader.result_neutral, "file_root")
    file_root = arg("str", doc="Folder with one sub-folder per stream, or its address in a store.")
    sequence_length = arg("int", doc="Number of frames of a sequence.")
    step = arg("int", 1, doc="Distance between the first frames of consecutive sequences.")
    stride = arg("int", 1, doc="Distance between consecutive frames of a sequence.")
    image_type = arg("object", "RGB", doc="Color space of the frames, as of `decoders.image`: types.RGB, types.GRAY.")

    def validate(self, args: Mapping[str, Any]) -> None:
        """Check everything that does not depend on the disk."""
        super().validate(args)
        for key in ("sequence_length", "step", "stride"):
            if not 1 <= args[key] <= 1 << 20:
                raise ArgumentError(f"expected a number from 1 to 2**20 as `{key}`, got {args[key]}")
        if args["sequence_length"] > 64:
            raise UnsupportedError(f"expected at most 64 frames as `sequence_length`, got {args['sequence_length']}")

    @classmethod
    def dataset(cls, args: Mapping[str, Any]) -> DataSet:
        """List the frames.

        Raises:
            ArgumentError: there are no sequences.
            OSError: the operating system fails.
        """
        root = args["file_root"]
        folder = open_folder("file_root", root)
        frames: list[str] = []
        starts: list[int] = []
        span = (args["sequence_length"] - 1) * args["stride"] + 1
        for stream in sorted(e.name for e in folder.scan() if e.is_dir()):
            own = sorted(e.name for e in folder.scan(stream) if has_image_extension(e.name) and not e.is_dir())
            starts += range(len(frames), len(frames) + len(own) - span + 1, args["step"])
            frames += [f"{stream}/{name}" for name in own]
        if not starts:
            raise ArgumentError(
                f"expected sequences of {args['sequence_length']} frames in sub-folders of '{printable(root)}', got "
                "none"
            )
        files = whole_files(frames, root, folder.known)
        of_frame = [[start + k * args["stride"] for start in starts] for k in range(args["sequence_length"])]
        column = _FrameColumn([files.chosen(numbers) for numbers in of_frame], args["image_type"])
        return DataSet((column,), fingerprint("\0".join(frames), np.asarray(starts, np.int64)))


class _FrameColumn(Column):
    """Decoded frames of sequences.

    Args:
        storages: the files of the first frames of all sequences, those of the second ones, and so on.
        image_type: color space.
    """

    name, dtype, rank, layout, optional = "frames", DType.UINT8, 4, "FHWC", False

    def __init__(self, storages: Sequence[FileStorage | AsyncStorage], image_type: Any) -> None:
        self._storages, self._image_type = storages, image_type
        requested = [s for s in storages if isinstance(s, AsyncStorage)]
        self._group = StorageGroup(requested) if requested else None

    def __len__(self) -> int:
        return len(self._storages[0])

    @property
    def storage(self) -> Storage | None:
        return self._group

    def absent(self) -> Bools | None:
        return None

    def lower(self, c: Lowering, reader: int) -> Value:
        files = [storage.lower(c, reader, DType.UINT8, (), "") for storage in self._storages]
        images = [c.apply("decoders.image", file, output_type=self._image_type) for file in files]
        stacked: Value = c.apply("stack", *images, axis=0, axis_name="F")
        return stacked

    def row(self, index: int) -> npt.NDArray[Any]:
        raise ArgumentError(f"expected a running pipeline for decoded frames, got a request for sample {index}")

    def joined(self, others: Sequence[Column]) -> _FrameColumn:
        raise ArgumentError(
            f"expected readers of single files, got {brief('readers.sequence')}, which cannot be joined"
        )
