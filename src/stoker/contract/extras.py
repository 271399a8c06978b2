# SPDX-License-Identifier: Apache-2.0
"""Import of packages that readers need and that an installation without extras lacks."""

from __future__ import annotations

import importlib
from typing import Any

from .._import_lock import IMPORT_LOCK
from .errors import UnsupportedError


def import_extra(module: str, extra: str, purpose: str, *, distribution: str | None = None) -> Any:
    """Return a module of an optional package.

    Args:
        module: name of the module.
        extra: the extra of Stoker that installs the package.
        purpose: what needs the package, for the message.
        distribution: name by which pip installs the package; by default that of the module.

    Raises:
        UnsupportedError: the package is not installed.
    """
    with IMPORT_LOCK:
        try:
            return importlib.import_module(module)
        except (ImportError, OSError) as error:
            package = module.partition(".")[0]
            raise UnsupportedError(
                f"expected the package `{package}` for {purpose}, it is not installed ({error}). It is the extra "
                f"`{extra}`: `pip install {distribution or package}`"
            ) from error
