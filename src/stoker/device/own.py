# SPDX-License-Identifier: Apache-2.0
"""CUDA C++ of an operator's own kernel: its class from ``native/device``, instantiated for the types that occur."""

from __future__ import annotations

from collections.abc import Sequence

from ..contract.step import CompiledPass, OwnKernel
from ..contract.types import DType
from .generate import ELEMENTS


def own_sources(
    kernel: OwnKernel, in_types: Sequence[DType], out_types: Sequence[DType]
) -> tuple[tuple[str, str], ...]:
    """Return (name, source) of each pass. Each pass is a separate source, for concurrent compilation."""
    types = ", ".join(ELEMENTS[t] for t in (*in_types, *out_types))
    arguments = ", ".join([f"Types<{types}>", *map(str, kernel.constants)])
    header = f"device/own_{kernel.name.lower()}.cuh"

    def source(name: str, own: CompiledPass) -> str:
        scope = "using namespace stoker::own;\n"
        function = f"{kernel.name}<{arguments}>::{own.name}"
        return f'#include "{header}"\n\n{scope}STOKER_PASS({name}, {own.threads}, {function})\n'

    names = {p: f"stoker_{kernel.name.lower()}_{p.name}" for p in kernel.passes}
    return tuple((names[p], source(names[p], p)) for p in kernel.passes)
