# SPDX-License-Identifier: Apache-2.0
"""Batches as PyTorch tensors (as ``nvidia.dali.plugin.pytorch``)."""

from typing import NoReturn

from ....frameworks._dali_epochs import LastBatchPolicy as LastBatchPolicy
from ....frameworks._dali_torch import DALIClassificationIterator as DALIClassificationIterator
from ....frameworks._dali_torch import DALIGenericIterator as DALIGenericIterator
from ....frameworks._dali_torch import DALIRaggedIterator as DALIRaggedIterator
from ....frameworks._dali_torch import feed_ndarray as feed_ndarray
from ....frameworks._dali_torch import to_torch_type as to_torch_type
from ....frontends.dali.catalogue import refuse as _refuse


def __getattr__(name: str) -> NoReturn:
    _refuse("dali.plugin.pytorch", name)
