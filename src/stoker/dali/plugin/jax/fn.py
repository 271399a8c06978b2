# SPDX-License-Identifier: Apache-2.0
"""Functions on JAX arrays as operators (as ``nvidia.dali.plugin.jax.fn``)."""

from ....frontends.dali.array_functions import jax_function as jax_function
