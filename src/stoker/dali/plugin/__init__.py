# SPDX-License-Identifier: Apache-2.0
"""Batches for frameworks (as ``nvidia.dali.plugin``)."""

from typing import NoReturn

from ...frontends.dali.catalogue import refuse as _refuse


def __getattr__(name: str) -> NoReturn:
    _refuse("dali.plugin", name)
