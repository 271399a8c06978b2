# SPDX-License-Identifier: Apache-2.0
"""Operators as classes (as ``nvidia.dali.ops``)."""

import sys
from typing import Any

from ..frontends.dali.functions import ClassGroup, class_members, modules, operator_class
from ..frontends.dali.functions import Compose as Compose

sys.modules.update(modules(ClassGroup))


def __getattr__(name: str) -> Any:
    return operator_class("", name)


def __dir__() -> list[str]:
    return class_members("")
