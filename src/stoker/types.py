# SPDX-License-Identifier: Apache-2.0
"""Names for arguments: element types, colour models, interpolation kinds, constants (as ``nvidia.dali.types``)."""

from .contract.types import DType as DType
from .contract.types import ImageType as ImageType
from .contract.types import InterpType as InterpType
from .frontends.constants import BatchInfo as BatchInfo
from .frontends.constants import Constant as Constant
from .frontends.constants import SampleInfo as SampleInfo

DALIDataType, DALIImageType, DALIInterpType = DType, ImageType, InterpType

BOOL, UINT8, UINT16, UINT32, UINT64 = DType.BOOL, DType.UINT8, DType.UINT16, DType.UINT32, DType.UINT64
INT8, INT16, INT32, INT64 = DType.INT8, DType.INT16, DType.INT32, DType.INT64
FLOAT16, FLOAT, FLOAT32, FLOAT64 = DType.FLOAT16, DType.FLOAT, DType.FLOAT, DType.FLOAT64
BFLOAT16 = DType.BFLOAT16
INT, UINT = DType.INT32, DType.UINT32

RGB, BGR, GRAY = ImageType.RGB, ImageType.BGR, ImageType.GRAY
YCbCr, ANY_DATA = ImageType.YCbCr, ImageType.ANY_DATA

INTERP_NN, INTERP_LINEAR, INTERP_CUBIC = InterpType.INTERP_NN, InterpType.INTERP_LINEAR, InterpType.INTERP_CUBIC
INTERP_LANCZOS3, INTERP_TRIANGULAR = InterpType.INTERP_LANCZOS3, InterpType.INTERP_TRIANGULAR
INTERP_GAUSSIAN, INTERP_BOX, INTERP_HAMMING = (
    InterpType.INTERP_GAUSSIAN,
    InterpType.INTERP_BOX,
    InterpType.INTERP_HAMMING,
)
