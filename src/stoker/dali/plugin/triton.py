# SPDX-License-Identifier: Apache-2.0
"""DALI's decorator for models of Triton Inference Server (like ``nvidia.dali.plugin.triton``)."""

from ...frameworks._triton import autoserialize as autoserialize
