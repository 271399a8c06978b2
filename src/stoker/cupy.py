# SPDX-License-Identifier: Apache-2.0
"""``stoker.cupy``: batches as CuPy arrays."""

from .frameworks._cupy import Loader as Loader
