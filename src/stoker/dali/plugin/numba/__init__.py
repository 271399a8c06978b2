# SPDX-License-Identifier: Apache-2.0
"""Functions that Numba compiles (as ``nvidia.dali.plugin.numba``)."""
