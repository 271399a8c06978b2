# SPDX-License-Identifier: Apache-2.0
"""The imperative mode in pipelines of torchdata. ``nodes`` needs the package torchdata."""

from importlib.util import find_spec as _find_spec

if _find_spec("torchdata") is not None:
    from . import nodes as nodes

    __all__ = ["nodes"]
