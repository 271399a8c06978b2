# SPDX-License-Identifier: Apache-2.0
"""Names for arguments (as ``nvidia.dali.types``)."""

from typing import Any

from ..contract.types import ImageType as DALIImageType
from ..contract.types import InterpType as DALIInterpType
from ..frontends.constants import BatchInfo as BatchInfo
from ..frontends.constants import SampleInfo as SampleInfo
from ..frontends.dali.constants import Constant as Constant
from ..frontends.dali.constants import ConstantNode as ConstantNode
from ..frontends.dali.constants import ScalarConstant as ScalarConstant
from ..frontends.dali.executors import TensorLayout as TensorLayout
from ..frontends.dali.type_names import CUDAStream as CUDAStream
from ..frontends.dali.type_names import DALIDataType as DALIDataType
from ..frontends.dali.type_names import PipelineAPIType as PipelineAPIType

BOOL, FLOAT16, FLOAT, FLOAT64 = DALIDataType.BOOL, DALIDataType.FLOAT16, DALIDataType.FLOAT, DALIDataType.FLOAT64
UINT8, UINT16, UINT32, UINT64 = DALIDataType.UINT8, DALIDataType.UINT16, DALIDataType.UINT32, DALIDataType.UINT64
INT8, INT16, INT32, INT64 = DALIDataType.INT8, DALIDataType.INT16, DALIDataType.INT32, DALIDataType.INT64
RGB, BGR, GRAY = DALIImageType.RGB, DALIImageType.BGR, DALIImageType.GRAY
YCbCr, ANY_DATA = DALIImageType.YCbCr, DALIImageType.ANY_DATA
INTERP_NN, INTERP_LINEAR, INTERP_CUBIC, INTERP_LANCZOS3, INTERP_TRIANGULAR, INTERP_GAUSSIAN = list(DALIInterpType)[:6]
NHWC, NCHW, NFHWC, NFCHW, SAME = "HWC", "CHW", "FHWC", "FCHW", ""
CPU_ONLY_DEVICE_ID = -99999

STRING, FEATURE, PYTHON_OBJECT = DALIDataType.STRING, DALIDataType.FEATURE, DALIDataType.PYTHON_OBJECT
IMAGE_TYPE, DATA_TYPE, INTERP_TYPE = DALIDataType.IMAGE_TYPE, DALIDataType.DATA_TYPE, DALIDataType.INTERP_TYPE
TENSOR_LAYOUT, NO_TYPE = DALIDataType.TENSOR_LAYOUT, DALIDataType.NO_TYPE


def to_numpy_type(dtype: Any) -> Any:
    """Return the NumPy type of an element type.

    Args:
        dtype: the element type, or something that names one.
    """
    return DALIDataType.of(dtype).numpy.type


def to_dali_type(framework_type: Any) -> DALIDataType:
    """Return the element type of a NumPy or framework type.

    Args:
        framework_type: a type of NumPy's or a framework's.
    """
    return DALIDataType.of(framework_type)
