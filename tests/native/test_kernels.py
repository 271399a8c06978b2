# SPDX-License-Identifier: Apache-2.0
"""Kernels by name: constructors check their arguments and describe them."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from stoker.native import _native

REDUCE = "`reduce(op: int, axes: int)`"


@pytest.mark.parametrize(
    ("name", "constants", "message"),
    [
        ("reduce", (1,), f"expected 2 constants for kernel {REDUCE}, got 1"),
        ("reduce", (1, 2, 3), f"expected 2 constants for kernel {REDUCE}, got 3"),
        ("reduce", (1, "ab"), "expected a kernel's constant, got <class 'str'>"),
        ("reduce", (1, 2.5), f"expected `axes` of kernel {REDUCE} to be int, got 2.500000"),
        ("reduce", (1, -1), f"expected `axes` of kernel {REDUCE} to be int from 0 to 4294967295, got -1"),
        ("scalars", (1,), "expected 0 constants for kernel `scalars()`, got 1"),
        ("constant", ("text", (2,)), "expected a kernel's constant, got <class 'str'>"),
        ("constant", (b"abcd", 4), "to be Sequence[int], got 4"),
        ("lookup", ([0, 0, 0], 3, 0), "to be npt.NDArray[Any], got (0, 0, 0)"),
        (
            "read_range",
            (7, 0),
            "expected `records` of kernel `read_range(records: Records, reader: int)` to be Records, got 7",
        ),
        ("view", ([(0, 0, 0)], False), "got (0, 0, 0)"),
        ("no_such_kernel", (), "expected the name of a kernel, got `no_such_kernel`"),
    ],
)
def test_wrong_constants_are_refused_with_the_signature(name: str, constants: Any, message: str) -> None:
    with pytest.raises(TypeError) as refused:
        _native.kernels.check_constants(name, constants)
    assert message in str(refused.value)
    if hasattr(_native.kernels, name):
        with pytest.raises(TypeError) as refused:
            getattr(_native.kernels, name)(*constants)
        assert message in str(refused.value)


def test_valid_constants_create_a_kernel() -> None:
    for name, constants in [
        ("reduce", (np.int64(1), 3)),
        ("draw", (0, 5, True, 2**64 - 1)),
        ("constant", (b"abcd", [4])),
        ("lookup", (np.arange(6, dtype=np.int32)[::2], 3, 0)),
        ("lookup", (np.zeros(6, bool), 3, 0)),
        ("view", ([(0, 1, 0, 1, 2, [])], False)),
    ]:
        _native.kernels.check_constants(name, constants)
        assert isinstance(getattr(_native.kernels, name)(*constants), _native.Kernel)


def test_a_table_has_whole_rows() -> None:
    with pytest.raises(TypeError, match="expected a table of 7 equal rows, got 24 bytes"):
        _native.kernels.lookup(np.zeros(3, np.int64), 7, 0)


def test_every_constructor_is_bound_and_lists_its_constants() -> None:
    for module in (_native.kernels, _native.gpu):
        for name, doc, _, parameters in module.list_constructors():
            assert callable(getattr(module, name)) and doc
            assert all(p.isidentifier() for p, _, _ in parameters)
    cpu, gpu = ({name for name, *_ in m.list_constructors()} for m in (_native.kernels, _native.gpu))
    # Calls of functions, operators' own passes, and reads in parts.
    without = {"host_call", "own", "own_with_fault", "own_with_program", "read_header", "read_window"}
    assert gpu - cpu == without, "a form for GPUs has its CPU kernel's name"


def test_a_form_for_gpus_checks_its_arguments() -> None:
    with pytest.raises(TypeError, match="expected 6 or 8 constants for kernel `decode"):
        _native.gpu.check_constants("decode", ())
    with pytest.raises(TypeError, match="the name of a kernel for GPUs, got `blur`"):
        _native.gpu.check_constants("blur", ())
