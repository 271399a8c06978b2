# SPDX-License-Identifier: Apache-2.0
"""``stoker.mxnet``: batches as MXNet arrays in host memory."""

from .frameworks._mxnet import Loader as Loader
