# SPDX-License-Identifier: Apache-2.0
"""Nodes of torchdata over readers of the imperative mode."""

from .....frameworks._dali_nodes import DictMapper as DictMapper
from .....frameworks._dali_nodes import Reader as Reader
from .....frameworks._dali_nodes import ToTorch as ToTorch

__all__ = ["DictMapper", "Reader", "ToTorch"]
