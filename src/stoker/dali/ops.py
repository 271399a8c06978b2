# SPDX-License-Identifier: Apache-2.0
"""Operators as classes (as ``nvidia.dali.ops``)."""

import sys
from typing import Any

from ..frontends.dali.executors import class_names as _class_names
from ..frontends.dali.functions import ClassGroup, class_members, modules, operator_class
from ..frontends.dali.functions import Compose as Compose

sys.modules.update(modules(ClassGroup))


def cpu_ops() -> set[str]:
    """Return the names of the classes of operators that run on the CPU."""
    return _class_names("cpu")


def gpu_ops() -> set[str]:
    """Return the names of the classes of operators that run on a GPU."""
    return _class_names("gpu")


def mixed_ops() -> set[str]:
    """Return the names of the classes of decoders that return data on a GPU."""
    return _class_names("mixed")


def __getattr__(name: str) -> Any:
    return operator_class("", name)


def __dir__() -> list[str]:
    return class_members("")
