# SPDX-License-Identifier: Apache-2.0
"""DALI's imperative mode: operators on tensors and batches, immediately.

``ndd.resize(images, size=[224, 224])`` takes a :class:`Tensor`, a :class:`Batch` or an array, and returns a tensor or a
batch. Results have the bits of ``stoker.eager`` and of pipelines, and are complete when the call returns. An operator
runs where ``device`` says, else on the GPU that has its inputs, else on the CPU.
"""

import sys
from importlib import import_module
from typing import Any

from ....contract.types import DType as DataType
from ....contract.types import ImageType as ImageType
from ....contract.types import InterpType as InterpType
from ....frontends.dali.dynamic.context import EvalContext as EvalContext
from ....frontends.dali.dynamic.context import EvalMode as EvalMode
from ....frontends.dali.dynamic.context import ThreadPool as ThreadPool
from ....frontends.dali.dynamic.context import get_current_stream as get_current_stream
from ....frontends.dali.dynamic.context import get_num_threads as get_num_threads
from ....frontends.dali.dynamic.context import set_current_stream as set_current_stream
from ....frontends.dali.dynamic.context import set_num_threads as set_num_threads
from ....frontends.dali.dynamic.devices import Device as Device
from ....frontends.dali.dynamic.devices import device as device
from ....frontends.dali.dynamic.element_types import TYPES as _TYPES
from ....frontends.dali.dynamic.element_types import DType as DType
from ....frontends.dali.dynamic.element_types import dtype as dtype
from ....frontends.dali.dynamic.element_types import type_id as type_id
from ....frontends.dali.dynamic.operators import member as _member
from ....frontends.dali.dynamic.operators import modules as _modules
from ....frontends.dali.dynamic.sources import ExternalSource as ExternalSource
from ....frontends.dali.dynamic.sources import imread as imread
from ....frontends.dali.dynamic.streams import Stream as Stream
from ....frontends.dali.dynamic.streams import get_default_stream as get_default_stream
from ....frontends.dali.dynamic.streams import set_default_stream as set_default_stream
from ....frontends.dali.dynamic.streams import stream as stream
from ....frontends.dali.dynamic.tensors import Batch as Batch
from ....frontends.dali.dynamic.tensors import Tensor as Tensor
from ....frontends.dali.dynamic.tensors import as_batch as as_batch
from ....frontends.dali.dynamic.tensors import as_tensor as as_tensor
from ....frontends.dali.dynamic.tensors import batch as batch
from ....frontends.dali.dynamic.tensors import tensor as tensor
from ....frontends.dali.missing import is_module as _is_module
from ....frontends.dali.missing import refuse_module as _refuse_module
from . import capture as capture
from . import checkpoint as checkpoint
from . import math as math
from . import random as random

sys.modules.update(_modules())

uint8, uint16, uint32, uint64 = (_TYPES[t] for t in (DataType.UINT8, DataType.UINT16, DataType.UINT32, DataType.UINT64))
int8, int16, int32, int64 = (_TYPES[t] for t in (DataType.INT8, DataType.INT16, DataType.INT32, DataType.INT64))
float16, float32, float64 = (_TYPES[t] for t in (DataType.FLOAT16, DataType.FLOAT, DataType.FLOAT64))
bfloat16 = _TYPES[DataType.BFLOAT16]
bool = _TYPES[DataType.BOOL]


DeviceLike = Device | str  # and PyTorch's devices


def __getattr__(name: str) -> Any:
    if name == "pytorch":  # few programs need PyTorch
        return import_module(f"{__name__}.pytorch")
    if _is_module(f"experimental.dynamic.{name}"):
        _refuse_module(f"experimental.dynamic.{name}")
    return _member(name)
