# SPDX-License-Identifier: Apache-2.0
"""Return types of pipelines (like ``nvidia.dali.backend``)."""

from typing import NoReturn

from ..frontends.dali.catalogue import refuse as _refuse
from ..frontends.dali.tensors import TensorCPU as TensorCPU
from ..frontends.dali.tensors import TensorGPU as TensorGPU
from ..frontends.dali.tensors import TensorListCPU as TensorListCPU
from ..frontends.dali.tensors import TensorListGPU as TensorListGPU


def GetCUDADeviceCount() -> int:
    """Return the number of CUDA GPUs that this process sees."""
    from ..native import _native

    return int(_native.gpu.count_cuda())


def __getattr__(name: str) -> NoReturn:
    _refuse("dali.backend", name)
