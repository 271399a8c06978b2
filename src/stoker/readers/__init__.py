# SPDX-License-Identifier: Apache-2.0
"""Operators that read data sets, and the building blocks of your own readers.

A reader is a class: its arguments, and a :class:`DataSet` of columns over storages. Shuffling, samplers, shards, states
and bad samples are provided by :class:`SampledReader`::

    class Records(SampledReader, name="my.records"):
        outputs = 2
        path = arg("str", doc="The file.")

        @classmethod
        def dataset(cls, args):
            offsets, lengths, labels = read_index(args["path"])
            data = RangeStorage([args["path"]], np.zeros(len(offsets), int), offsets, lengths)
            return DataSet((Bytes("data", data), Values("label", labels)), fingerprint(offsets, lengths, labels))
"""

from ..contract.columns import Column as Column
from ..contract.columns import DataSet as DataSet
from ..contract.reader import Reader as Reader
from ..contract.storage import ByteRange as ByteRange
from ..contract.storage import RecordLocation as RecordLocation
from ..contract.storage import Storage as Storage
from ..contract.storage import Store as Store
from ._columns import Bytes as Bytes
from ._columns import Values as Values
from ._columns import fingerprint as fingerprint
from ._columns import presence as presence
from ._columns import ragged as ragged
from ._columns import strings as strings
from ._fetching import AsyncStorage as AsyncStorage
from ._sampled import SampledReader as SampledReader
from ._storages import FileStorage as FileStorage
from ._storages import MemoryStorage as MemoryStorage
from ._storages import RangeStorage as RangeStorage
