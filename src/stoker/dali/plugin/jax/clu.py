# SPDX-License-Identifier: Apache-2.0
"""Iterators for CLU (as ``nvidia.dali.plugin.jax.clu``)."""

from typing import NoReturn

from ....frameworks._dali_epochs import LastBatchPolicy as LastBatchPolicy
from ....frameworks._dali_jax import ArraySpec as ArraySpec
from ....frameworks._dali_jax import DALIGenericPeekableIterator as DALIGenericPeekableIterator
from ....frameworks._dali_jax import peekable_data_iterator as peekable_data_iterator
from ....frontends.dali.catalogue import refuse as _refuse


def __getattr__(name: str) -> NoReturn:
    _refuse("dali.plugin.jax", name)
