# SPDX-License-Identifier: Apache-2.0
"""Operators as functions on nodes (as ``nvidia.dali.fn``)."""

import sys
from typing import Any

from ..frontends.dali.functions import FunctionGroup, look_up, members, modules

sys.modules.update(modules(FunctionGroup))


def __getattr__(name: str) -> Any:
    return look_up(name)


def __dir__() -> list[str]:
    return members("")
