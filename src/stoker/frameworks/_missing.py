# SPDX-License-Identifier: Apache-2.0
"""Error of a framework that is not installed."""

from __future__ import annotations


def missing(package: str, extra: str, error: ModuleNotFoundError) -> ModuleNotFoundError:
    """Return an error that names the extra to install.

    Args:
        package: the package, as pip knows it.
        extra: the extra of Stoker that contains it.
        error: the error of the import. It may name another module, which the package needs.
    """
    return ModuleNotFoundError(
        f"expected the package `{package}`, got: {error}. It is the extra `{extra}`: `pip install {package}`",
        name=error.name,
        path=error.path,
    )
