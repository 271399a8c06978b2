# SPDX-License-Identifier: Apache-2.0
"""``stoker.tf``: batches as TensorFlow tensors."""

from .frameworks._tf import Loader as Loader
from .frameworks._tf import dataset as dataset
