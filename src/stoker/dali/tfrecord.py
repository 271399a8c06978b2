# SPDX-License-Identifier: Apache-2.0
"""Features of records for ``fn.readers.tfrecord`` (as ``nvidia.dali.tfrecord``)."""

from ..readers._example import FixedLenFeature as FixedLenFeature
from ..readers._example import VarLenFeature as VarLenFeature
from ..readers._example import float32 as float32
from ..readers._example import int64 as int64
from ..readers._example import string as string
