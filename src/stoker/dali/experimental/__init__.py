# SPDX-License-Identifier: Apache-2.0
"""Experimental modules (as ``nvidia.dali.experimental``)."""

from . import dynamic as dynamic
