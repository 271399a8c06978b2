# SPDX-License-Identifier: Apache-2.0
"""Columns: the named, typed components that each sample of a data set has, in the order of the reader's outputs.

A column's values have the same type and axes for all samples. Extents may differ: bytes, strings and ragged lists have
their length on the first axis.

A component may be absent from some samples if its column says ``optional=True``. Rows of such samples have a value of
extent 0 on the first axis. A reader that must distinguish "absent" from "empty" adds a presence column
(``stoker.readers.presence``), a bool per sample. A data set that lacks a component of a column that is not optional is
refused when it is opened.
"""

from __future__ import annotations

import re
from abc import ABC, abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from .errors import ArgumentError
from .storage import Bools, Storage
from .text import brief
from .types import DType

if TYPE_CHECKING:  # `import stoker` does not load the step classes
    from .lowering import Lowering
    from .step import Value


class Column(ABC):
    """Component of the samples: its name, type and values.

    Attributes:
        name: name in messages and in the data set; unique there.
        dtype: type of the elements.
        rank: number of axes of a row's value.
        layout: names of these axes, or "".
        optional: samples may lack the component.
    """

    name: str
    dtype: DType
    rank: int
    layout: str
    optional: bool

    @abstractmethod
    def __len__(self) -> int:
        """Return the number of samples."""

    @abstractmethod
    def lower(self, c: Lowering, reader: int) -> Value:
        """Build the steps that produce a row's value.

        Args:
            c: the builder of steps.
            reader: the index column with the rows' samples.
        """

    @abstractmethod
    def row(self, index: int) -> npt.NDArray[Any]:
        """Return a sample's value, read on the caller's thread.

        Args:
            index: number of the sample.

        Raises:
            OSError: the value cannot be read.
        """

    @abstractmethod
    def absent(self) -> Bools | None:
        """Return a mask of the samples that lack the component; None if all have it."""

    @abstractmethod
    def joined(self, others: Sequence[Any]) -> Column:
        """Return a column with this column's samples followed by those of ``others``, which are of the same class."""

    @property
    def values(self) -> npt.NDArray[Any] | None:
        """Return the values of all samples, stacked along the first axis; None if they are not one array in memory."""
        return None

    @property
    def storage(self) -> Storage | None:
        """Return the storage that the values are read from; None if the values are in memory."""
        return None


@dataclass(frozen=True, eq=False)
class DataSet:
    """Data set that a reader has opened: columns of equal length.

    Attributes:
        columns: one per output of the reader, in order.
        fingerprint: hexadecimal digest of everything that decides the samples (names, order, labels) except the
            location of the files. A state is restored only if the digest is the same.
        label: name of the integer column that samplers balance by and that joined readers add offsets to, if any.
        notes: remarks about the data set, for a warning when the pipeline is built.

    Raises:
        ArgumentError: there are no samples, the columns do not fit together, or a component that is not optional is
            absent.
    """

    columns: tuple[Column, ...]
    fingerprint: str
    label: str | None = None
    notes: tuple[str, ...] = ()

    def __post_init__(self) -> None:
        if not self.columns:
            raise ArgumentError("expected at least one column, got none")
        names = [c.name for c in self.columns]
        if len(set(names)) < len(names):
            raise ArgumentError(f"expected columns of different names, got {names}")
        lengths = {c.name: len(c) for c in self.columns}
        if len(set(lengths.values())) > 1:
            raise ArgumentError(f"expected columns of equally many samples, got {lengths}")
        if not len(self):
            raise ArgumentError("expected at least one sample, got none")
        if not re.fullmatch(r"([0-9a-f]{2})*", self.fingerprint):
            raise ArgumentError(f"expected a fingerprint in hexadecimal digits, got {brief(self.fingerprint)}")
        values = None if self.label is None else self.column(self.label).values
        if self.label is not None and (values is None or values.dtype != np.int32 or values.size != len(self)):
            raise ArgumentError(f"expected one int32 per sample in the column {brief(self.label)} of labels")
        for column in self.columns:
            self._require_present(column)

    def _require_present(self, column: Column) -> None:
        absent = None if column.optional else column.absent()
        if absent is not None and absent.any():
            sample = int(np.argmax(absent))
            where = next((str(p) for c in self.columns if c.storage and str(p := c.storage.locate(sample))), "")
            raise ArgumentError(
                f"expected {column.name!r} in every sample, got none in sample {sample}"
                + (f" ({where})" if where else "")
                + f", and in {int(absent.sum())} of {len(column)} samples. A reader that declares the column optional "
                "gives a value without elements there"
            )

    def __len__(self) -> int:
        return len(self.columns[0])

    @property
    def labels(self) -> npt.NDArray[np.int32] | None:
        """Return the labels, int32 ``(samples,)``; None if there are none."""
        if not len(self):
            raise ArgumentError("expected at least one sample, got none")
        if not re.fullmatch(r"([0-9a-f]{2})*", self.fingerprint):
            raise ArgumentError(f"expected a fingerprint in hexadecimal digits, got {brief(self.fingerprint)}")
        values = None if self.label is None else self.column(self.label).values
        return None if values is None else values.reshape(-1)

    def column(self, name: str) -> Column:
        """Return the column called ``name``; ArgumentError if there is none."""
        found = next((c for c in self.columns if c.name == name), None)
        if found is None:
            raise ArgumentError(f"expected a column of {[c.name for c in self.columns]}, got {brief(name)}")
        return found
