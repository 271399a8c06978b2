# SPDX-License-Identifier: Apache-2.0
"""``stoker.jax``: batches as JAX arrays."""

from .frameworks._jax import Loader as Loader
from .frameworks._jax import shard_of as shard_of
from .frameworks._jax import to_jax as to_jax
