# SPDX-License-Identifier: Apache-2.0
"""Single tensors for PyTorch (as ``nvidia.dali.plugin.pytorch.torch_utils``)."""

from ....frameworks._dali_torch import feed_ndarray as feed_ndarray
from ....frameworks._dali_torch import to_torch_tensor as to_torch_tensor
from ....frameworks._dali_torch import to_torch_type as to_torch_type
