# SPDX-License-Identifier: Apache-2.0
"""Lazy torch tensors, and the torch functions that they record."""

from . import recorders as recorded
from . import tensor as tensor

tensor.set_recorders(recorded.recorder_table())
