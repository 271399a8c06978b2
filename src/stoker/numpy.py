# SPDX-License-Identifier: Apache-2.0
"""``stoker.numpy``: batches as NumPy arrays."""

from .frameworks._numpy import Loader as Loader
