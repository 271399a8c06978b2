# SPDX-License-Identifier: Apache-2.0
"""Functions that Numba compiles, as operators (as ``nvidia.dali.plugin.numba.fn``)."""

from .....frontends.dali.array_functions import numba_function as numba_function
