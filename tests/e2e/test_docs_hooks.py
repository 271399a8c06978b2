# SPDX-License-Identifier: Apache-2.0
"""The hooks of the documentation site insert pictures into the pages that the generator wrote."""

from __future__ import annotations

import re
from pathlib import Path
from types import SimpleNamespace

import pytest

import docs_hooks
import examples
import operators

PAGES = Path(__file__).resolve().parents[2] / "docs" / "operators"


def _converted(name: str) -> str:
    page = SimpleNamespace(file=SimpleNamespace(src_uri=f"operators/{name}.md"))
    return docs_hooks.on_page_markdown((PAGES / f"{name}.md").read_text(encoding="utf-8"), page, None, None)


def test_pages_of_operators_with_a_figure_have_a_picture() -> None:
    for name in operators.public():
        example = examples.load(name)
        assert example is not None
        assert (f"](pictures/{name}.webp)" in _converted(name)) == bool(example.figure)


def test_the_list_of_all_operators_has_small_pictures(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(docs_hooks, "_pictures", {"resize": b"", "resize-small": b""})
    text = _converted("index")
    rows = re.findall(r"^\| (.*) \| \[`([\w.]+)`\]", text, re.MULTILINE)
    assert {name for _, name in rows} == set(operators.public())
    assert {name: picture for picture, name in rows if picture} == {"resize": "![](pictures/resize-small.webp)"}
    assert text.count("| | operator | description |\n|---|---|---|\n") == len(operators.families())


def test_the_navigation_has_all_operators() -> None:
    config = SimpleNamespace(nav=["index.md", {"Operators": "operators/index.md"}])
    docs_hooks.on_config(config)
    start, *families = config.nav[1]["Operators"]
    assert start == "operators/index.md"
    listed = [page for family in families for pages in family.values() for entry in pages for page in entry.values()]
    assert sorted(listed) == sorted(f"operators/{name}.md" for name in operators.public())


def test_functions_and_classes_that_the_reference_lacks_are_named() -> None:
    pytest.importorskip("torch", exc_type=ModuleNotFoundError)
    every = set(docs_hooks.missing_names(set()))
    assert {"stoker.Pipeline", "stoker.torch.Loader", "stoker.pipeline_def"} <= every
    assert set(docs_hooks.missing_names({"stoker.frontends.pipeline.Pipeline"})) == every - {"stoker.Pipeline"}
