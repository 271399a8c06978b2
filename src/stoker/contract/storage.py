# SPDX-License-Identifier: Apache-2.0
"""Storages: the location of a data set's records, and code that reads them.

A record is one sample's data in one column. A storage knows its records by number, 0 to ``len(storage) - 1``, and
record ``i`` belongs to sample ``i``.

* **Lifetime.** A reader makes its storages when the pipeline is built; they open nothing then. The first row that reads
  a file opens it, on a worker thread. The execution calls :meth:`Storage.cancel` and, when no row is in flight any
  more, :meth:`Storage.close`.
* **Errors of a sample** (a vanished file, no permission, fewer bytes than the record has) fail its row, and
  ``on_error`` decides the outcome. Their texts name path and offset.
* **Errors of the system** (no descriptor left, no memory, a mount that is gone) fail the batch, whatever ``on_error``
  says: see :func:`~stoker.contract.errors.is_system_failure`. An input/output error fails its row, and several in a row
  fail the batch.
"""

from __future__ import annotations

import enum
from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Protocol

import numpy as np
import numpy.typing as npt

from .text import printable
from .types import DType

if TYPE_CHECKING:  # `import stoker` does not load the step classes
    from concurrent.futures import Future

    from .lowering import Lowering
    from .step import Value
    from .workers import WorkerPool

Bools = npt.NDArray[np.bool_]


class RecordForm(enum.IntEnum):
    """Form in which a record's bytes are stored. The values are the native side's contract (``native/io/records.hpp``).

    STORED: the bytes as they are. TFRECORD: a record of a TFRecord file with its frame; the checksum of the data is
    compared, but not with TFRECORD_UNCHECKED. RECORDIO: all parts of a record of a RecordIO file, with their headers.
    ABSENT: the sample has no such component; offset and length are meaningless.
    """

    STORED = 0
    TFRECORD = 1
    TFRECORD_UNCHECKED = 2
    RECORDIO = 3
    ABSENT = 255


@dataclass(frozen=True, slots=True)
class RecordLocation:
    """Location of a record, for messages and lists of bad samples.

    Attributes:
        path: file, object or name of the memory; "" if unknown.
        offset: first byte in it.
        length: number of bytes; None: up to the end.
    """

    path: str = ""
    offset: int = 0
    length: int | None = None

    def __str__(self) -> str:
        """Return the path, and the byte if the record is a part of the file: ``train.tar at byte 1536``."""
        path = printable(self.path)
        return path if self.length is None or not path else f"{path} at byte {self.offset}"


class Storage(ABC):
    """Records of one column by number. The module's text describes lifetime and errors."""

    #: Whether rows wait for bytes that :meth:`request` can prefetch.
    asynchronous = False

    @property
    def network_wait_ns(self) -> int:
        """Return the nanoseconds in which rows have waited for an asynchronous store."""
        return 0

    @property
    def files(self) -> Any:
        """Return the native table of records that may be read ahead of the rows as a whole; None if there is none."""
        return None

    @abstractmethod
    def __len__(self) -> int:
        """Return the number of records, absent ones included."""

    @abstractmethod
    def locate(self, record: int) -> RecordLocation:
        """Return the location of a record; an absent record has an empty path.

        Args:
            record: number of the record.
        """

    @abstractmethod
    def content(self, record: int) -> bytes:
        """Read a record on the caller's thread.

        Args:
            record: number of the record.

        Raises:
            OSError: the record cannot be read.
        """

    @abstractmethod
    def absent(self) -> Bools | None:
        """Return a mask of absent records; None if all are present."""

    @abstractmethod
    def lower(self, c: Lowering, reader: int, dtype: DType, item: tuple[int, ...], layout: str) -> Value:
        """Build the steps that read a row's record.

        Args:
            c: the builder.
            reader: the index column with the rows' samples.
            dtype: type of the elements, little-endian as stored.
            item: extents of one item; the value's first axis runs along the items.
            layout: names of the axes, or "".
        """

    @abstractmethod
    def joined(self, others: Sequence[Any]) -> Storage:
        """Return a storage with this storage's records followed by those of ``others``, which are of the same class."""

    def use_threads(self, count: int) -> None:  # noqa: B027 - most have none of their own
        """Take the number of the pipeline's threads, for threads of the storage. The pipeline calls this once.

        Args:
            count: the number.
        """

    def use(self, make_workers: Callable[[], WorkerPool]) -> None:  # noqa: B027 - most have nothing to do
        """Take worker processes if the storage needs some. The pipeline calls this once, when it is built.

        Args:
            make_workers: function that returns a pool of processes, which have not started. The storage closes it.

        Raises:
            ArgumentError: the storage's code cannot be sent to another process.
        """

    def request(self, records: npt.NDArray[np.int64], batches: int) -> None:  # noqa: B027 - most have nothing to do
        """Request the records of a batch that will be read soon.

        If more than ``batches`` batches are pending, the oldest expire.

        Args:
            records: numbers of the records, int64.
            batches: number of batches that may be pending.
        """

    @property
    def looks_ahead(self) -> bool:
        """Return whether :meth:`look_ahead` has a cache to load bytes into."""
        return False

    def look_ahead(self, records: npt.NDArray[np.int64]) -> int:
        """Begin to load bytes that rows will request later into a cache, and return their number.

        Args:
            records: numbers of the records, int64, in the order of the rows.
        """
        return 0

    def forget_look_ahead(self) -> None:  # noqa: B027 - most have nothing to do
        """Forget the records of :meth:`look_ahead`: other rows come next."""

    def drop(self) -> None:  # noqa: B027 - most have nothing to do
        """Discard all requests: other rows come next."""

    def cancel(self) -> None:  # noqa: B027 - most have nothing to do
        """End all present and future waiting for bytes with an error. Any thread may call this, repeatedly."""

    def close(self) -> None:  # noqa: B027 - most have nothing to do
        """Close files and connections; idempotent. No row is read afterwards."""


@dataclass(frozen=True, slots=True)
class ByteRange:
    """Request to a :class:`Store`: ``length`` bytes of ``path`` from byte ``offset`` on."""

    path: str
    offset: int
    length: int


class Store(Protocol):
    """Client of an asynchronous store: object storage, HTTP, a thread pool over a slow disk.

    Several threads call a store. A range that cannot be read is an exception of its future, and that row fails. The
    store itself handles retries and deadlines.
    """

    def fetch(self, ranges: Sequence[ByteRange]) -> Sequence[Future[bytes] | bytes]:
        """Begin to read byte ranges.

        Args:
            ranges: the ranges of a batch.

        Returns:
            For each range, in order, a future, or bytes that are already available.
        """
        ...

    def close(self) -> None:
        """Close connections; idempotent. Futures that are in flight end with an exception or a result."""
        ...
