# SPDX-License-Identifier: Apache-2.0
"""Data from Python (as ``nvidia.dali.external_source``): the function and the class of `fn` and `ops`."""

from . import fn as _fn
from . import ops as _ops

external_source = _fn.external_source
ExternalSource = _ops.ExternalSource
