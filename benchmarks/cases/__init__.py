# SPDX-License-Identifier: Apache-2.0
"""One file = one question. Each declares `CASES` and the functions that its contenders run."""

from __future__ import annotations

import importlib
import pkgutil
from dataclasses import replace

from benchmarks.case import Case


def collect() -> list[Case]:
    """All cases of all files, those that matter most first, each with the name of its module filled in."""
    found: list[tuple[int, Case]] = []
    for info in pkgutil.iter_modules(__path__):
        module = importlib.import_module(f"{__name__}.{info.name}")
        found += [(module.ORDER, replace(case, module=module.__name__)) for case in getattr(module, "CASES", ())]
    return [case for _, case in sorted(found, key=lambda entry: entry[0])]
