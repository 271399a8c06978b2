# SPDX-License-Identifier: Apache-2.0
"""Features of records for ``fn.readers.tfrecord`` (as ``nvidia.dali.tfrecord``)."""

from ..frontends.dali.errors import raises_as_dali
from ..readers import _example
from ..readers._example import float32 as float32
from ..readers._example import int64 as int64
from ..readers._example import string as string


class FixedLenFeature(_example.FixedLenFeature):
    """Feature of fixed length, as in ``stoker.tfrecord``. Its errors are also of the classes that DALI raises."""

    __init__ = raises_as_dali(_example.FixedLenFeature.__init__)


class VarLenFeature(_example.VarLenFeature):
    """Feature of any length, as in ``stoker.tfrecord``. Its errors are also of the classes that DALI raises."""

    __init__ = raises_as_dali(_example.VarLenFeature.__init__)
