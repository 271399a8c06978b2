# SPDX-License-Identifier: Apache-2.0
"""``stoker.ray``: pipelines on the machines of a cluster of Ray."""

from .frameworks._ray import ActorReport as ActorReport
from .frameworks._ray import Remote as Remote
from .frameworks._ray import RemoteReport as RemoteReport
