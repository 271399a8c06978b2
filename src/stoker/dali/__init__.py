# SPDX-License-Identifier: Apache-2.0
"""``stoker.dali``: laid out like ``nvidia.dali``, so that a script changes its import and runs.

Features of DALI that Stoker lacks are refused by name. docs/migrating_from_dali.md lists values that differ.
"""

from importlib import import_module as _import_module
from typing import Any

from ..frontends.dali.catalogue import refuse as _refuse
from ..frontends.dali.executors import OperatorConcurrency as OperatorConcurrency
from ..frontends.dali.executors import StreamPolicy as StreamPolicy
from ..frontends.data_node import newaxis as newaxis
from . import backend as backend
from . import fn as fn
from . import math as math
from . import ops as ops
from . import pipeline as pipeline
from . import tensors as tensors
from . import types as types
from .pipeline import Pipeline as Pipeline
from .pipeline import pipeline_def as pipeline_def

# Modules that are attributes after `import nvidia.dali`, and are imported here when they are used.
_AT_FIRST_USE = ("data_node", "experimental", "external_source", "plugin_manager", "tfrecord")


def __getattr__(name: str) -> Any:
    if name in _AT_FIRST_USE:
        return _import_module(f"{__name__}.{name}")
    return _refuse("dali", name)
