# SPDX-License-Identifier: Apache-2.0
"""Experimental parts of the PyTorch plugin (like ``nvidia.dali.plugin.pytorch.experimental``)."""

from . import proxy as proxy
