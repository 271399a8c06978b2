# SPDX-License-Identifier: Apache-2.0
"""The pages of the API reference name all public classes, environment variables and search terms."""

from __future__ import annotations

import importlib
import re
from pathlib import Path

import pytest

import stoker
from stoker import types
from stoker.contract import launch

ROOT = Path(__file__).resolve().parents[2]
PAGES = ROOT / "docs" / "reference"


def test_pages_describe_all_public_names() -> None:
    texts = "\n".join(page.read_text(encoding="utf-8") for page in PAGES.glob("*.md"))
    names = [n for n in dir(stoker) if isinstance(getattr(stoker, n), type) or n in ("arg", "pipeline_def", "register")]
    assert len(names) > 15
    assert not [n for n in names if f"::: stoker.{n}\n" not in texts + "\n"]


def test_tables_of_types_are_complete() -> None:
    text = (PAGES / "batch.md").read_text(encoding="utf-8")
    listed = {name for row in re.findall(r"^\| (`.*?`) \|", text, re.MULTILINE) for name in re.findall(r"`(\w+)`", row)}
    kinds = (types.DType, types.ImageType, types.InterpType)
    assert listed == {name for name in dir(types) if isinstance(getattr(types, name), kinds)}
    for name, array in re.findall(r"^\| `(\w+)`.*? \| (\w+)", text.split("## Colour models")[0], re.MULTILINE):
        assert getattr(types, name).numpy == array


def test_the_modules_of_dali_are_listed() -> None:
    pytest.importorskip("torch", exc_type=ModuleNotFoundError)
    text = (PAGES / "dali.md").read_text(encoding="utf-8")
    listed = dict(re.findall(r"^\| `(stoker\.dali[\w.]*)` \| (.*) \|$", text, re.MULTILINE))
    for name, contents in listed.items():
        module = importlib.import_module(name)
        named = [n.rpartition(".")[2] for n in re.findall(r"`([\w.]+)`", contents) if "(" not in n]
        assert [n for n in named if not hasattr(module, n)] == [], name
    folder = Path(str(importlib.import_module("stoker.dali").__file__)).parent
    public = {p.stem for p in folder.glob("*.py") if "refuse_module" not in p.read_text(encoding="utf-8")}
    same = {
        "__init__",
        "backend",
        "data_node",
        "external_source",
        "pipeline",
        "plugin_manager",
    }  # names that DALI has twice
    assert {n.removeprefix("stoker.dali.").partition(".")[0] for n in listed} >= public - same


_READ = (
    r'environ(?:\.\w+)?[\[(]\s*"([A-Z_]+)"',
    r'"([A-Z_]+)"\s+(?:not\s+)?in os\.environ',
    r'getenv\("([A-Z_]+)"',
    r'_number\("([A-Z_]+)"',
    r'env = "([A-Z_]+)"',
)


def _variables(*folders: str) -> set[str]:
    files = [p for folder in folders for p in (ROOT / folder).rglob("*") if p.suffix in (".py", ".cpp", ".hpp")]
    files = files or [ROOT / folder for folder in folders]
    return {name for path in files for p in _READ for name in re.findall(p, path.read_text(encoding="utf-8"))}


def _documented() -> set[str]:
    text = (PAGES / "environment.md").read_text(encoding="utf-8")
    return set(re.findall(r"^\| `([A-Z_]+)` \|", text, re.MULTILINE))


def test_environment_variables() -> None:
    package = _variables("src") | {*launch._NAMES, launch._NODE}
    assert {"STOKER_SIMD", "STOKER_NUM_THREADS", "STOKER_WITHOUT_GPU"} <= package
    checkout = _variables("tests", "benchmarks", "fuzz", "tools") | _variables("pyproject.toml")
    checkout = {name for name in checkout if name.startswith(("STOKER_", "REQUIRE_"))}
    assert _documented() == package | checkout


@pytest.mark.parametrize("word", ["fallback", "proxy", "pinned memory", "prefetch", "collate", "page-locked", "kernel"])
def test_the_glossary_has_the_words_that_users_search(word: str) -> None:
    text = (ROOT / "docs" / "glossary.md").read_text(encoding="utf-8")
    assert re.search(rf"^\| \*\*[^|]*{word}[^|]*\*\*", text, re.MULTILINE), word


def test_every_page_is_in_the_navigation() -> None:
    listed = (ROOT / "mkdocs.yml").read_text(encoding="utf-8")
    pages = {p.relative_to(ROOT / "docs").as_posix() for p in (ROOT / "docs").rglob("*.md")}
    assert not [p for p in pages if f"{p}\n" not in listed.replace("  #", "\n") and not p.startswith("operators/")]
