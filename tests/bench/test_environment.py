# SPDX-License-Identifier: Apache-2.0
"""The environment of the peers: the Makefile makes it, and a failure is an error with make's last lines."""

from __future__ import annotations

from pathlib import Path

import pytest

from benchmarks import environment


def test_make_gets_the_interpreter_and_makes_the_environment(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "Makefile").write_text(
        ".venv-bench/.bench-needs:\n\t@mkdir $(@D) && $(PYTHON) -c 'import pytest' && touch $@\n", encoding="utf-8"
    )
    monkeypatch.setattr(environment, "ROOT", tmp_path)
    assert environment.ensure() == environment.FOLDER / "bin" / "python"
    assert (tmp_path / ".venv-bench" / ".bench-needs").exists()


def test_a_failed_installation_is_an_error_with_its_reason(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "Makefile").write_text(
        ".venv-bench/.bench-needs:\n\t@echo the index does not answer >&2; exit 1\n", encoding="utf-8"
    )
    monkeypatch.setattr(environment, "ROOT", tmp_path)
    with pytest.raises(environment.PeersUnavailable, match="the index does not answer"):
        environment.ensure()
