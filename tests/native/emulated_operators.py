# SPDX-License-Identifier: Apache-2.0
"""The first case of each operator against its reference and the laws, on the processor that runs this program.

Usage: ``qemu-x86_64 -cpu max python -m tests.native.emulated_operators [OPERATOR ...]``. The emulator has no AVX-512,
so an instruction of it ends the program. ``-cpu Nehalem`` has no AVX either.
"""

from __future__ import annotations

import sys

from stoker.frontends.registry import find
from stoker.native import _native
from stoker.ops._index import INDEX
from stoker.testing.laws import check_operator
from tests.ops.test_operators import is_tested_elsewhere, tolerance


def main(names: list[str]) -> None:
    """Check the named operators, or all that arrays alone can test."""
    operators = [find(name) for name in names or INDEX]
    tested = [operator for operator in operators if operator.cases and not is_tested_elsewhere(operator)]
    for operator in tested:
        case = operator.cases[0]
        layouts = ["HWC"] if operator.inputs[0] and operator.case_inputs(case) is None else []
        check_operator(operator, cases=[case], layouts=layouts, **tolerance(operator, "float32"))
    print(f"{len(tested)} operators, {_native.best_isa()}")


if __name__ == "__main__":
    main(sys.argv[1:])
