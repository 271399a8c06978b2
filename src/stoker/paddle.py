# SPDX-License-Identifier: Apache-2.0
"""``stoker.paddle``: batches as Paddle tensors."""

from .frameworks._paddle import Loader as Loader
from .frameworks._paddle import to_paddle as to_paddle
