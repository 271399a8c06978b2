# SPDX-License-Identifier: Apache-2.0
"""User operators (as ``nvidia.dali.plugin_manager``). DALI's binary ones are refused."""

from typing import NoReturn

from ..contract.errors import UnsupportedError
from ..contract.text import brief

_WAY_OUT = "Write the operator in Python (`stoker.Operator`, `stoker.register`) or use `fn.python_function`"


def load_library(library_path: str, global_symbols: bool = False) -> NoReturn:
    """Raise UnsupportedError: a library for DALI cannot be loaded."""
    raise UnsupportedError(
        f"`load_library`: {brief(library_path, 400)} was compiled for DALI, whose operators are not loaded. {_WAY_OUT}"
    )


def load_directory(plugin_dir_path: str, global_symbols: bool = False) -> NoReturn:
    """Raise UnsupportedError: libraries for DALI cannot be loaded."""
    raise UnsupportedError(
        f"`load_directory`: {brief(plugin_dir_path, 400)} holds operators that were compiled for DALI: none is "
        f"loaded. {_WAY_OUT}"
    )
