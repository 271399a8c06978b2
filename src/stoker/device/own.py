# SPDX-License-Identifier: Apache-2.0
"""CUDA C++ of an operator's own kernel, for its types: its class from ``native/device``, or a user's code."""

from __future__ import annotations

from collections.abc import Sequence

from ..contract.step import CompiledPass, OwnKernel
from ..contract.types import DType
from .generate import ELEMENTS, ProgramSource

_LONG_THREADS = 512  # of a multiprocessor, for a long program


def own_sources(
    kernel: OwnKernel, in_types: Sequence[DType], out_types: Sequence[DType], program: ProgramSource | None = None
) -> tuple[tuple[str, str], ...]:
    """Return (name, source) of each pass. Each pass is a separate source, for concurrent compilation.

    Args:
        kernel: the kernel.
        in_types: element types of its inputs.
        out_types: element types of its outputs.
        program: the pixel program that computes some inputs of the kernel's CPU form.
    """
    elements = [ELEMENTS[t] for t in (*in_types, *out_types)]
    if kernel.source:
        return _users_sources(kernel, elements, len(in_types))
    types = ", ".join(elements)
    arguments = ", ".join([f"Types<{types}>", *map(str, kernel.constants), *(["Program"] if program else [])])
    header = f"device/own_{kernel.name.lower()}.cuh"

    def source(name: str, own: CompiledPass) -> str:
        scope = "using namespace stoker::own;\n"
        function = f"{kernel.name}<{arguments}>::{own.name}"
        blocks = own.resident_blocks
        if program and program.is_long:
            blocks = min(blocks, max(_LONG_THREADS // own.threads, 1))
        head = f'#include "{header}"\n\n{program.text if program else ""}{scope}'
        return f"{head}STOKER_PASS({name}, {own.threads}, {blocks}, {function})\n"

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
