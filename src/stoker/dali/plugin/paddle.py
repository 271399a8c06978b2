# SPDX-License-Identifier: Apache-2.0
"""Batches as Paddle tensors (as ``nvidia.dali.plugin.paddle``)."""

from typing import NoReturn

from ...frameworks._dali_epochs import LastBatchPolicy as LastBatchPolicy
from ...frameworks._dali_paddle import DALIClassificationIterator as DALIClassificationIterator
from ...frameworks._dali_paddle import DALIGenericIterator as DALIGenericIterator
from ...frameworks._dali_paddle import feed_ndarray as feed_ndarray
from ...frontends.dali.catalogue import refuse as _refuse


def __getattr__(name: str) -> NoReturn:
    _refuse("dali.plugin.paddle", name)
