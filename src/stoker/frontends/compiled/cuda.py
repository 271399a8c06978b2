# SPDX-License-Identifier: Apache-2.0
"""CUDA sources of operators: their launches, as text in the source (``ST_LAUNCHES``).

::

    kernel maximum: h * w * c
    blocks sums: (h + 15) // 16 of 128
    memory: 4 * c

Counts and bytes are expressions of the declaration's extents and arguments. ``native/device/stoker/op.cuh`` describes
the code.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from ...contract import expr as ex
from ...contract.errors import ArgumentError
from ...contract.expr import Scalar
from ...contract.step import Launches, LaunchPass
from .declaration import Declaration, evaluate, expression

THREADS = 256  # of a block; own::kThreads in native/shared/own_slot.hpp
_LAUNCHES = re.compile(
    r'\bST_LAUNCHES\(\s*(?:R"(?P<mark>\w*)\((?P<raw>.*?)\)(?P=mark)"|"(?P<short>[^"\n]*)")\s*\)', re.DOTALL
)
_INCLUDE = re.compile(r"^[ \t]*#[ \t]*include[ \t]*[<\"]stoker/op\.cuh[>\"].*$", re.MULTILINE)
_KERNEL = re.compile(r"kernel\s+(\w+)\s*:\s+(.+)\Z")
_BLOCKS = re.compile(r"blocks\s+(\w+)\s*:\s+(.+?)\s+of\s+(\d+)\Z")
_MEMORY = re.compile(r"memory\s*:\s+(.+)\Z")


@dataclass(frozen=True)
class DeclaredKernel:
    """Kernel: its name, and the expression that counts its threads, or its blocks of ``threads`` threads."""

    name: str
    count: ast.expr
    threads: int = 0


@dataclass(frozen=True)
class CudaForm:
    """Operator's form for GPUs.

    Attributes:
        source: the code, for ``stoker/op.cuh``.
        kernels: the kernels in the order of their launches.
        memory: bytes of a row that the kernels share.
    """

    source: str
    kernels: tuple[DeclaredKernel, ...]
    memory: ast.expr | None

    def launches(self, name: str, arguments: int, names: Mapping[str, Any]) -> tuple[tuple[Scalar, ...], Launches]:
        """Return the counts of threads, which follow the operator's arguments, and the launches.

        Args:
            name: name of the operator, for messages.
            arguments: number of the operator's arguments.
            names: extents and arguments.
        """
        counts: list[Scalar] = []
        places: list[int] = []
        passes: dict[str, Scalar | LaunchPass] = {}
        for kernel in self.kernels:
            count = ex.maximum(evaluate(kernel.count, names), 0)
            if kernel.threads:
                places.append(-1)
                passes[kernel.name] = LaunchPass(count, threads=kernel.threads)
            else:
                places.append(arguments + len(counts))
                counts.append(count)
                passes[kernel.name] = (count + (THREADS - 1)) // THREADS
        memory = 0 if self.memory is None else evaluate(self.memory, names)
        return tuple(counts), Launches(name, passes, memory, tuple(places), self.source)


def parse_cuda(text: str, name: str, shown: str, declared: Declaration) -> CudaForm:
    """Return the form for GPUs in a CUDA source.

    Args:
        text: the source.
        name: name of the operator, for messages.
        shown: name of the source in the compiler's messages.
        declared: the operator's declaration.

    Raises:
        ArgumentError: the source declares no launches, or launches of other kernels than it defines.
    """
    if declared.draws or declared.outputs[0].counted:
        what = "`draws`" if declared.draws else "`count`"
        raise ArgumentError(f"`{name}`: expected no {what} in the declaration of an operator with a CUDA form")
    found = _LAUNCHES.search(text)
    if found is None:
        raise ArgumentError(f'`{name}`: expected `ST_LAUNCHES("kernel NAME: COUNT")` in the CUDA source, got none')
    kernels: list[DeclaredKernel] = []
    memory = None
    for line in filter(None, map(str.strip, (found.group("raw") or found.group("short") or "").splitlines())):
        try:
            if (match := _MEMORY.match(line)) is not None and memory is None:
                memory = expression(match.group(1))
            else:
                kernels.append(_kernel(line))
        except ArgumentError as error:
            raise ArgumentError(f"`{name}`: launches {line!r}: {error}") from None
    _check_kernels(text, name, kernels)
    code = _INCLUDE.sub("", text)  # the generated code includes it
    return CudaForm(f'#line 1 "{shown or name + ".cu"}"\n{code}', tuple(kernels), memory)


def _kernel(line: str) -> DeclaredKernel:
    match = _KERNEL.match(line)
    if match is not None:
        return DeclaredKernel(match.group(1), expression(match.group(2)))
    match = _BLOCKS.match(line)
    if match is None:
        raise ArgumentError("expected `kernel NAME: COUNT`, `blocks NAME: COUNT of THREADS`, or once `memory: BYTES`")
    threads = int(match.group(3))
    if threads % 32 or not 32 <= threads <= 1024:
        raise ArgumentError(f"expected blocks of 32 to 1024 threads, a multiple of 32, got {threads}")
    return DeclaredKernel(match.group(1), expression(match.group(2)), threads)


def _check_kernels(text: str, name: str, kernels: list[DeclaredKernel]) -> None:
    """Check that the declared kernels are those that the source defines."""
    if not kernels:
        raise ArgumentError(f"`{name}`: expected a kernel in `ST_LAUNCHES`, got none")
    names = [k.name for k in kernels]
    twice = next((n for n in names if names.count(n) > 1), None)
    if twice is not None:
        raise ArgumentError(f"`{name}`: the kernel {twice} is launched twice")
    for kernel in kernels:
        macro = "ST_BLOCKS" if kernel.threads else "ST_KERNEL"
        if re.search(rf"\b{macro}\(\s*{kernel.name}\s*,", text) is None:
            raise ArgumentError(f"`{name}`: expected `{macro}({kernel.name}, row, ...) {{ ... }}` in the CUDA source")
