# SPDX-License-Identifier: Apache-2.0
"""``stoker.serve``: pipelines as functions of requests, for servers."""

from .frontends.endpoint import Endpoint as Endpoint
from .frontends.endpoint import Tensor as Tensor
