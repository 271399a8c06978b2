# SPDX-License-Identifier: Apache-2.0
"""Operators as classes (as ``nvidia.dali.ops``)."""

from typing import Any

from ..frontends.dali.functions import Compose as Compose
from ..frontends.dali.functions import class_members, operator_class


def __getattr__(name: str) -> Any:
    return operator_class("", name)


def __dir__() -> list[str]:
    return class_members("")
