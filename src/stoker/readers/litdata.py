# SPDX-License-Identifier: Apache-2.0
"""``readers.litdata``: samples of data sets that LitData has optimized."""

from __future__ import annotations

import json
import os
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from ..contract.argument import arg
from ..contract.columns import DataSet
from ..contract.errors import ArgumentError
from ..contract.extras import import_extra
from ..contract.text import brief, printable
from ._columns import fingerprint
from ._file_state import FileState, require_unchanged, state_of
from ._items_reader import COLUMNS, NUM_OUTPUTS, ItemsReader, item_columns

# Values that LitData would decode to pixels or frames, or load as pickled objects, which may run code.
_KEPT_AS_STORED = ("audio", "file", "image", "jpeg", "pdf", "pickle", "tifffile", "video")


class LitDataReader(ItemsReader, name="readers.litdata"):
    """Read samples of a folder that ``litdata.optimize`` has written, in worker processes.

    The pipeline's worker processes (``py_num_workers``, ``py_start_method``) read the rows of the next batches with
    the library, and the values return in shared memory. The order of samples, shards and states are those of all
    readers. LitData keeps samples in chunks: ``samplers.Windowed(block=N, window=16)`` for chunks of N samples takes
    the rows of a window from few chunks.

    A sample is a dict with the keys `columns`, and the outputs are a dict; or it is a tuple of `num_outputs` values.
    A value is an array, a tensor, a number, a text (UTF-8) or bytes. Images of LitData's types ``Jpeg`` and ``Image``,
    files, audio and videos are their encoded bytes, uint8 ``(N,)``: decode them with Stoker's operators. Images that
    the library keeps as Pillow's pixels are pixels. Pickled values are bytes and are never loaded. The values of the
    first batch decide the types.
    """

    positional = ("path", "num_outputs")
    result_neutral = (*ItemsReader.result_neutral, "path")
    path = arg("object", doc="Folder with the data set's index.json.")
    num_outputs = NUM_OUTPUTS
    columns = COLUMNS

    def validate(self, args: Mapping[str, Any]) -> None:
        """Check everything that does not depend on the disk."""
        super().validate(args)
        if not isinstance(args["path"], (str, os.PathLike)):
            raise ArgumentError(f"expected a folder as `path`, got {brief(args['path'])}")

    @classmethod
    def dataset(cls, args: Mapping[str, Any]) -> DataSet:
        """Read the index of the data set.

        Raises:
            ArgumentError: the folder has no such data set, or its chunks are compressed or encrypted.
            UnsupportedError: the package ``litdata`` is not installed.
            OSError: the operating system fails.
        """
        import_extra("litdata", "litdata", "data sets of LitData")
        source = open_folder(os.fspath(args["path"]))
        columns = item_columns(source, args)
        return DataSet(columns, fingerprint(*source.facts, repr([column.name for column in columns])))


def open_folder(path: str) -> LitDataSamples:
    """Return the samples of a folder.

    Raises:
        ArgumentError: the folder has no data set, or one that this reader does not support.
        OSError: the operating system fails.
    """
    if "://" in path:
        raise ArgumentError(
            f"expected a folder as `path`, got {brief(path.partition('://')[0])}://...: give "
            "`litdata.StreamingDataset(path)` to `readers.dataset`"
        )
    index = os.path.join(path, "index.json")
    try:
        state = state_of(index)
        with open(index, "rb") as file:
            content = json.load(file)
    except (FileNotFoundError, NotADirectoryError, IsADirectoryError):
        raise ArgumentError(f"expected a data set with an index.json, there is none at '{printable(index)}'") from None
    except ValueError as error:
        raise ArgumentError(f"expected JSON in '{printable(index)}', got other text: {error}") from None
    try:
        config = content["config"]
        chunks = [(str(c["filename"]), int(c["chunk_size"]), int(c["chunk_bytes"])) for c in content["chunks"]]
        packed = {n: config.get(n) for n in ("compression", "encryption") if config.get(n)}
        loader = config.get("item_loader", "PyTreeLoader")
        is_tokens = any(c.get("dim") is not None for c in content["chunks"])
        formats = repr((config.get("data_format"), config.get("data_spec")))
    except (AttributeError, KeyError, TypeError, ValueError) as error:
        raise ArgumentError(
            f"expected chunks with names and numbers of samples in '{printable(index)}', got another form "
            f"({type(error).__name__}: {error})"
        ) from None
    if packed or loader != "PyTreeLoader" or is_tokens:
        what = next(iter(packed), None) or f"item loader {brief(loader)}"
        raise ArgumentError(
            f"expected samples without compression, encryption or token blocks in '{printable(index)}', got {what}: "
            "give `litdata.StreamingDataset(path)` to `readers.dataset`, or write the data set again without"
        )
    if any(count < 0 for _, count, _ in chunks):
        raise ArgumentError(f"expected numbers of samples >= 0 in '{printable(index)}', got negative ones")
    return LitDataSamples(path, state, sum(count for _, count, _ in chunks), (formats, repr(chunks)))


@dataclass
class LitDataSamples:
    """Samples of a folder. Each process opens the folder with the library at its first sample.

    Attributes:
        path: the folder.
        state: state of its index.
        count: number of samples.
        facts: facts that decide the samples, without the location.
    """

    path: str
    state: FileState
    count: int
    facts: tuple[str, ...]
    _opened: tuple[int, Any] = field(default=(-1, None), repr=False, compare=False)

    def __len__(self) -> int:
        return self.count

    def __getitem__(self, index: int) -> Any:
        process, opened = self._opened
        if process != os.getpid():
            opened = self._open()
            self._opened = os.getpid(), opened
        return opened[index]

    def __getstate__(self) -> dict[str, Any]:
        return {**self.__dict__, "_opened": (-1, None)}

    def _open(self) -> Any:
        require_unchanged(os.path.join(self.path, "index.json"), self.state)
        litdata = import_extra("litdata", "litdata", "data sets of LitData")
        serializers = import_extra("litdata.streaming.serializers", "litdata", "data sets of LitData")

        class AsStored(serializers.Serializer):  # type: ignore[name-defined, misc]
            """Serializer that returns the stored bytes."""

            def serialize(self, item: Any) -> Any:
                raise TypeError("this serializer only reads")

            def deserialize(self, data: Any) -> bytes:
                return bytes(data)

            def can_serialize(self, item: Any) -> bool:
                return False

        kept = {kind: AsStored() for kind in _KEPT_AS_STORED}
        return litdata.StreamingDataset(os.path.abspath(self.path), serializers=kept, batch_decode=0)
