# SPDX-License-Identifier: Apache-2.0
"""Return types of pipelines (like ``nvidia.dali.backend``)."""

from typing import NoReturn

from ..frontends.dali.backend_calls import CheckDLPackCapsule as CheckDLPackCapsule
from ..frontends.dali.backend_calls import CUDAStreamSynchronize as CUDAStreamSynchronize
from ..frontends.dali.backend_calls import DLDeviceType as DLDeviceType
from ..frontends.dali.backend_calls import GetCUDACurrentDevice as GetCUDACurrentDevice
from ..frontends.dali.backend_calls import GetCUDADeviceCount as GetCUDADeviceCount
from ..frontends.dali.backend_calls import GetCUDAStreamDevice as GetCUDAStreamDevice
from ..frontends.dali.backend_calls import GetCudaVersion as GetCudaVersion
from ..frontends.dali.backend_calls import GetCufftVersion as GetCufftVersion
from ..frontends.dali.backend_calls import GetNppVersion as GetNppVersion
from ..frontends.dali.backend_calls import GetNvimgcodecVersion as GetNvimgcodecVersion
from ..frontends.dali.backend_calls import GetNvjpegVersion as GetNvjpegVersion
from ..frontends.dali.backend_calls import GetOpenCVVersion as GetOpenCVVersion
from ..frontends.dali.backend_calls import IsDriverInitialized as IsDriverInitialized
from ..frontends.dali.backend_calls import LoadDefaultPlugins as LoadDefaultPlugins
from ..frontends.dali.backend_calls import LoadDirectory as LoadDirectory
from ..frontends.dali.backend_calls import LoadLibrary as LoadLibrary
from ..frontends.dali.backend_calls import RestrictPinnedMemUsage as RestrictPinnedMemUsage
from ..frontends.dali.backend_calls import check_cuda_runtime as check_cuda_runtime
from ..frontends.dali.catalogue import refuse as _refuse
from ..frontends.dali.executors import GetDeviceBufferGrowthFactor as GetDeviceBufferGrowthFactor
from ..frontends.dali.executors import GetHostBufferGrowthFactor as GetHostBufferGrowthFactor
from ..frontends.dali.executors import GetHostBufferShrinkThreshold as GetHostBufferShrinkThreshold
from ..frontends.dali.executors import PreallocateDeviceMemory as PreallocateDeviceMemory
from ..frontends.dali.executors import PreallocatePinnedMemory as PreallocatePinnedMemory
from ..frontends.dali.executors import ReleaseUnusedMemory as ReleaseUnusedMemory
from ..frontends.dali.executors import SetBufferGrowthFactor as SetBufferGrowthFactor
from ..frontends.dali.executors import SetDeviceBufferGrowthFactor as SetDeviceBufferGrowthFactor
from ..frontends.dali.executors import SetHostBufferGrowthFactor as SetHostBufferGrowthFactor
from ..frontends.dali.executors import SetHostBufferShrinkThreshold as SetHostBufferShrinkThreshold
from ..frontends.dali.executors import class_names as _class_names
from ..frontends.dali.tensors import TensorCPU as TensorCPU
from ..frontends.dali.tensors import TensorGPU as TensorGPU
from ..frontends.dali.tensors import TensorListCPU as TensorListCPU
from ..frontends.dali.tensors import TensorListGPU as TensorListGPU


def RegisteredCPUOps(internal_ops: bool = False) -> list[str]:
    """Return the names of the operators' classes that run on the CPU.

    Args:
        internal_ops: accepted without effect.
    """
    return sorted(_class_names("cpu"))


def RegisteredGPUOps(internal_ops: bool = False) -> list[str]:
    """Return the names of the operators' classes that run on a GPU.

    Args:
        internal_ops: accepted without effect.
    """
    return sorted(_class_names("gpu"))


def RegisteredMixedOps(internal_ops: bool = False) -> list[str]:
    """Return the names of the decoders' classes that return data on a GPU.

    Args:
        internal_ops: accepted without effect.
    """
    return sorted(_class_names("mixed"))


def __getattr__(name: str) -> NoReturn:
    _refuse("dali.backend", name)
