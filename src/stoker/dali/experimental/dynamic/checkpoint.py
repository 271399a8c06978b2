# SPDX-License-Identifier: Apache-2.0
"""States of readers and generators, by name (as ``nvidia.dali.experimental.dynamic.checkpoint``)."""

from ....frontends.dali.dynamic.checkpoint import Checkpoint as Checkpoint
from ....frontends.dali.dynamic.context import EvalContext as _EvalContext


def current() -> Checkpoint:
    """Return the checkpoint of the current context."""
    return _EvalContext.current().checkpoint
