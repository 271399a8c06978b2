# SPDX-License-Identifier: Apache-2.0
"""Return types of pipelines (like ``nvidia.dali.backend``)."""

from typing import NoReturn

from ..frontends.dali.catalogue import refuse as _refuse
from ..frontends.dali.tensors import TensorCPU as TensorCPU
from ..frontends.dali.tensors import TensorGPU as TensorGPU
from ..frontends.dali.tensors import TensorListCPU as TensorListCPU
from ..frontends.dali.tensors import TensorListGPU as TensorListGPU


def __getattr__(name: str) -> NoReturn:
    _refuse("dali.backend", name)
