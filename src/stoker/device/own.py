# SPDX-License-Identifier: Apache-2.0
"""CUDA C++ of an operator's own kernel, for its types: its class from ``native/device``, or a user's code."""

from __future__ import annotations

from collections.abc import Sequence

from ..contract.step import CompiledPass, OwnKernel
from ..contract.types import DType
from .generate import ELEMENTS


def own_sources(
    kernel: OwnKernel, in_types: Sequence[DType], out_types: Sequence[DType]
) -> tuple[tuple[str, str], ...]:
    """Return (name, source) of each pass. Each pass is a separate source, for concurrent compilation."""
    elements = [ELEMENTS[t] for t in (*in_types, *out_types)]
    if kernel.source:
        return _users_sources(kernel, elements, len(in_types))
    types = ", ".join(elements)
    arguments = ", ".join([f"Types<{types}>", *map(str, kernel.constants)])
    header = f"device/own_{kernel.name.lower()}.cuh"

    def source(name: str, own: CompiledPass) -> str:
        scope = "using namespace stoker::own;\n"
        function = f"{kernel.name}<{arguments}>::{own.name}"
        return f'#include "{header}"\n\n{scope}STOKER_PASS({name}, {own.threads}, {own.resident_blocks}, {function})\n'

    names = {p: f"stoker_{kernel.name.lower()}_{p.name}" for p in kernel.passes}
    return tuple((names[p], source(names[p], p)) for p in kernel.passes)


def _users_sources(kernel: OwnKernel, elements: Sequence[str], inputs: int) -> tuple[tuple[str, str], ...]:
    """Return (name, source) of each pass of a user's operator."""
    types = ", ".join(f"stoker::own::{e}" for e in elements)
    row = f"namespace st {{\nusing Row = RowOf<stoker::own::Types<{types}>, {inputs}>;\n}}\n"
    head = f'#include "device/stoker/op.cuh"\n\n{row}\n'
    found = []
    for own, count in zip(kernel.passes, kernel.constants, strict=True):
        name = f"stoker_user_{own.name}"
        numbers = f"st_kernel_{own.name}, {count}" if count >= 0 else f"st_kernel_{own.name}"
        form = f"st::impl::{'Threads' if count >= 0 else 'Blocks'}<st::Row, {numbers}>::pass"
        entry = f"STOKER_PASS({name}, {own.threads}, {own.resident_blocks}, {form})"
        found.append((name, f'{head}{kernel.source}\n#line 1 "launch"\n{entry}\n'))
    return tuple(found)
