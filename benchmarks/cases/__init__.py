# SPDX-License-Identifier: Apache-2.0
"""Cases: one file per question. Each declares `CASES` and the functions of its contenders."""

from __future__ import annotations

import importlib
import pkgutil
from dataclasses import replace

from benchmarks.case import Case


def collect() -> list[Case]:
    """Return all cases of all files, the most important first, each with the name of its module."""
    found: list[tuple[int, Case]] = []
    for info in pkgutil.iter_modules(__path__):
        module = importlib.import_module(f"{__name__}.{info.name}")
        found += [(module.ORDER, replace(case, module=module.__name__)) for case in getattr(module, "CASES", ())]
    return [case for _, case in sorted(found, key=lambda entry: entry[0])]
