# SPDX-License-Identifier: Apache-2.0
"""Stoker feeds accelerators: it reads, decodes and augments images and hands finished batches to the training loop.

``from stoker import fn, pipeline_def, types``: pipelines, with NVIDIA DALI's names.
``from stoker import eager``: the same operators as immediate calls on arrays.
``from stoker import samplers``: choice and order of an epoch's samples.
``from stoker import tfrecord``: declarations of features in TFRecord files.
``@stoker.fuse``: functions on pixels as operators. ``from stoker import cpp``: operators in C++.
``from stoker.torch import Loader``: batches as PyTorch tensors.
"""

from typing import TYPE_CHECKING

from . import types as types
from .contract.argument import arg as arg
from .contract.batch import Batch as Batch
from .contract.errors import ArgumentError as ArgumentError
from .contract.errors import DataError as DataError
from .contract.errors import DeviceError as DeviceError
from .contract.errors import GraphError as GraphError
from .contract.errors import ResourceError as ResourceError
from .contract.errors import StateError as StateError
from .contract.errors import StokerError as StokerError
from .contract.errors import UnsupportedError as UnsupportedError
from .contract.failure import BadSample as BadSample
from .contract.launch import Launch as Launch
from .contract.operator import Operator as Operator
from .contract.operator import RowContext as RowContext
from .contract.operator import Spec as Spec
from .frontends import fn as fn
from .frontends.data_node import DataNode as DataNode
from .frontends.decorator import pipeline_def as pipeline_def
from .frontends.pipeline import Pipeline as Pipeline
from .frontends.registry import register as register

if TYPE_CHECKING:
    from . import samplers as samplers
    from . import tfrecord as tfrecord
    from .frontends import eager as eager
    from .frontends.fuse import fuse as fuse
    from .frontends.pixel_numbers import table as table
    from .frontends.pixel_numbers import where as where

__version__ = "0.2.0.dev0"
# Modules that import other libraries, or are large.
_ON_DEMAND = ("cpp", "dali", "inspection", "math", "testing", "torch", "torchvision")


def __getattr__(name: str) -> object:
    """Import names on first use, because `eager` loads the planner and the run loop, and `fuse` the step classes."""
    from ._import_lock import IMPORT_LOCK

    if name == "eager":
        with IMPORT_LOCK:
            from .frontends import eager

        globals()[name] = eager
        return eager
    if name in ("fuse", "table", "where"):
        with IMPORT_LOCK:
            from .frontends import fuse, pixel_numbers

        globals().update(fuse=fuse.fuse, table=pixel_numbers.table, where=pixel_numbers.where)
        return globals()[name]
    if name in ("samplers", "tfrecord"):
        import importlib

        with IMPORT_LOCK:
            return importlib.import_module(f"stoker.{name}")
    way_out = f"; it is a module of its own: `import stoker.{name}`" if name in _ON_DEMAND else ""
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}{way_out}")
