# SPDX-License-Identifier: Apache-2.0
"""Snippets for NVIDIA DALI, run with ``stoker.dali``, against what ``tools/dali_snippets.py`` recorded under DALI."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from dali_snippets import RECORD, agrees, read_snippets, run_snippet

SNIPPETS = read_snippets()
RECORDED: dict[str, list[str]] = json.loads(RECORD.read_text(encoding="utf-8"))


def test_all_snippets_are_recorded() -> None:
    assert list(RECORDED) == list(SNIPPETS)
    assert all(RECORDED.values()), "each shows something"


@pytest.mark.parametrize("name", SNIPPETS)
def test_a_snippet_shows_the_same_as_under_dali(name: str, tmp_path: Path) -> None:
    if "import torch" in SNIPPETS[name]:
        pytest.importorskip("torch")
    ours = run_snippet("stoker.dali", SNIPPETS[name], tmp_path)
    differing = [(x, y) for x, y in zip(RECORDED[name], ours, strict=True) if not agrees(x, y)]
    assert not differing


def test_agreement_of_errors() -> None:
    assert agrees("!RuntimeError", "!RuntimeError ValueError TypeError")
    assert agrees("!", "!ValueError")
    assert not agrees("!KeyError", "!ValueError")
    assert not agrees("(int32 '' [1][3.0])", "!ValueError")
    assert not agrees("!ValueError", "(int32 '' [1][3.0])")
