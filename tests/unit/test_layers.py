# SPDX-License-Identifier: Apache-2.0
"""Rules of the house that import-linter does not see."""

from __future__ import annotations

import ast
from pathlib import Path

import pytest

from stoker.contract.pixel import BINARY, UNARY
from stoker.contract.step import VIEW_KINDS
from stoker.ops._index import INDEX

ROOT = Path(__file__).resolve().parents[2]
SOURCE = ROOT / "src" / "stoker"
# Words that steps and pixel expressions have in common with operators.
VOCABULARY = {*VIEW_KINDS, *BINARY, *UNARY, "cast"}


@pytest.mark.parametrize("folder", ["graph", "executor", "native"])
def test_passes_and_the_run_ask_traits_never_names(folder: str) -> None:
    known = {name.lstrip("_") for name in INDEX} | set(INDEX)
    for path in sorted((SOURCE / folder).rglob("*.py")):
        strings = {n.value for n in ast.walk(ast.parse(path.read_text())) if isinstance(n, ast.Constant)}
        found = {s for s in strings if isinstance(s, str) and s in known} - VOCABULARY
        assert not found, f"{path.relative_to(ROOT)} knows operators by name: {found}"


def test_every_file_names_its_licence() -> None:
    for folder in ("src", "tests", "benchmarks", "tools"):
        for path in sorted((ROOT / folder).rglob("*")):
            if path.suffix in (".py", ".pyi", ".cpp", ".hpp", ".ipp", ".sh"):
                assert "SPDX-License-Identifier: Apache-2.0" in path.read_text()[:200], path.relative_to(ROOT)


@pytest.mark.parametrize("name", sorted(name for name in INDEX if not name.startswith("_")))
def test_an_operator_is_one_class_in_a_file_of_its_own(name: str) -> None:
    module = INDEX[name].partition(":")[0]
    assert sum(where.partition(":")[0] == module for where in INDEX.values()) == 1
