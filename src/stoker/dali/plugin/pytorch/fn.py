# SPDX-License-Identifier: Apache-2.0
"""Functions on torch tensors as operators (as ``nvidia.dali.plugin.pytorch.fn``)."""

from ....frontends.dali.array_functions import torch_python_function as torch_python_function
