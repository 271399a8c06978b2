# SPDX-License-Identifier: Apache-2.0
"""Imports of loaders whose framework is not installed."""

from __future__ import annotations

import subprocess
import sys

import pytest

PROGRAM = """\
import importlib, sys

for name in {hidden!r}:
    sys.modules[name] = None
for module, extra in {modules!r}.items():
    try:
        importlib.import_module(module)
    except ModuleNotFoundError as error:
        text = str(error)
    else:
        text = "no error"
    package = text.partition("expected the package `")[2].partition("`")[0]
    assert package and text.endswith(f"It is the extra `{{extra}}`: `pip install {{package}}`"), (module, text)
"""
MODULES = {
    "stoker.torch": "torch", "stoker.torch.ops": "torch", "stoker.jax": "jax", "stoker.tf": "tf",
    "stoker.paddle": "paddle", "stoker.cupy": "cupy", "stoker.ray": "ray", "stoker.dali.plugin.pytorch": "torch",
    "stoker.dali.plugin.pytorch.experimental.proxy": "torch", "stoker.dali.plugin.jax": "jax",
    "stoker.dali.plugin.jax.clu": "jax", "stoker.dali.plugin.tf": "tf", "stoker.dali.plugin.paddle": "paddle",
}  # fmt: skip


def test_errors_name_the_extra() -> None:
    hidden = ["torch", "jax", "ml_dtypes", "tensorflow", "paddle", "cupy", "ray"]
    program = PROGRAM.format(hidden=hidden, modules=MODULES)
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, timeout=60, check=False)
    assert done.returncode == 0, done.stderr


@pytest.mark.parametrize("module", ["stoker", "stoker.numpy", "stoker.serve"])
def test_the_core_needs_none(module: str) -> None:
    program = f"import sys; sys.modules['torch'] = None; import {module}"
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, timeout=60, check=False)
    assert done.returncode == 0, done.stderr
