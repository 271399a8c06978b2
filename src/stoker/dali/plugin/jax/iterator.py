# SPDX-License-Identifier: Apache-2.0
"""Iterators over JAX arrays (as ``nvidia.dali.plugin.jax.iterator``)."""

from typing import NoReturn

from ....frameworks._dali_epochs import LastBatchPolicy as LastBatchPolicy
from ....frameworks._dali_jax import DALIGenericIterator as DALIGenericIterator
from ....frameworks._dali_jax import data_iterator as data_iterator
from ....frontends.dali.catalogue import refuse as _refuse


def __getattr__(name: str) -> NoReturn:
    _refuse("dali.plugin.jax", name)
