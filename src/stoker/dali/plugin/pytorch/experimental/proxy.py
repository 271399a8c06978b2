# SPDX-License-Identifier: Apache-2.0
"""A pipeline inside of PyTorch's DataLoader (like ``nvidia.dali.plugin.pytorch.experimental.proxy``)."""

from .....frameworks._dali_proxy import DALIOutputBatchRef as DALIOutputBatchRef
from .....frameworks._dali_proxy import DALIOutputSampleRef as DALIOutputSampleRef
from .....frameworks._dali_proxy import DALIPipelineRunRef as DALIPipelineRunRef
from .....frameworks._dali_proxy import DALIServer as DALIServer
from .....frameworks._dali_proxy import DataLoader as DataLoader
