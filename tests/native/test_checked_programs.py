# SPDX-License-Identifier: Apache-2.0
"""Compiled test programs are cached: a changed source or option compiles again, and errors are not cached."""

from __future__ import annotations

import subprocess
from pathlib import Path

import checked_programs
import pytest


def test_programs_are_cached_by_their_sources_and_options(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    kept, source = tmp_path / "kept", tmp_path / "main.cpp"
    monkeypatch.setattr(checked_programs, "_FOLDER", kept)

    def result(text: str, *options: str) -> int:
        source.write_text(text)
        checked_programs.compile_unit(tmp_path / "program", [source], "-O0", *options)
        return subprocess.run([tmp_path / "program"], check=False).returncode

    text = "#ifndef N\n#define N 3\n#endif\nint main() { return N; }\n"
    assert [result(text), result(text)] == [3, 3] and len([*kept.iterdir()]) == 1
    assert result(text, "-DN=5") == 5 and len([*kept.iterdir()]) == 2
    assert result(text.replace("3", "4")) == 4 and len([*kept.iterdir()]) == 3
    for _ in range(2):
        with pytest.raises(AssertionError, match="error"):
            result("nonsense")
    assert len([*kept.iterdir()]) == 3
    monkeypatch.setattr(checked_programs, "_files", lambda: (tmp_path / "header.hpp",))
    for value in (1, 2):
        (tmp_path / "header.hpp").write_text(f"constexpr int kValue = {value};\n")
        assert result('#include "header.hpp"\nint main() { return kValue; }\n') == value


def test_a_program_that_fails_is_noticed(tmp_path: Path) -> None:
    source = tmp_path / "main.cpp"
    source.write_text("int main(int argc, char**) { int x[2]{}; return x[argc + 1]; }\n")
    with pytest.raises(AssertionError, match=r"out of bounds|stack-buffer-overflow"):
        checked_programs.check_program(tmp_path, [source], *checked_programs.ADDRESSES)
