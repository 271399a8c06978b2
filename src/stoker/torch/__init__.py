# SPDX-License-Identifier: Apache-2.0
"""``stoker.torch``: batches as PyTorch tensors. ``stoker.torch.ops`` has operators on tensors."""

from ..frameworks._torch import Dataset as Dataset
from ..frameworks._torch import Loader as Loader
from ..frameworks._torch import Padded as Padded
from ..frameworks._torch import to_torch as to_torch
