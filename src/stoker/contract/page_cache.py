# SPDX-License-Identifier: Apache-2.0
"""Refusal of DALI's arguments for reading without the page cache of the operating system."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from .errors import UnsupportedError


def refuse_direct_io(args: Mapping[str, Any]) -> None:
    """Raise UnsupportedError if an operator's constants ask for O_DIRECT."""
    if args.get("use_o_direct"):
        raise UnsupportedError(
            "expected `use_o_direct` False, got True: files are read through the page cache into host memory, without "
            "O_DIRECT (for arrays on a GPU, STOKER_GDS selects GPUDirect Storage). Leave the argument out; the bytes "
            "are the same"
        )
