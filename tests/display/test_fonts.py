# SPDX-License-Identifier: Apache-2.0
"""Text in any script: fonts are found per character, and characters without a font stay readable."""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest
from display.tiny_font import write_font
from PIL import Image, ImageDraw, ImageFont

from stoker.display import fonts

CHARACTER = "\u732b"  # a cat
WHITE = (255, 255, 255)


@pytest.fixture(autouse=True)
def no_fonts(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Iterator[Path]:
    """Yield the only folder of fonts; there is no fontconfig."""
    for name in ("HOME", "XDG_DATA_HOME", "XDG_DATA_DIRS"):
        monkeypatch.setenv(name, str(tmp_path))
    monkeypatch.setenv("PATH", str(tmp_path / "bin"))
    monkeypatch.setattr(fonts, "_used", {})
    _forget()
    yield tmp_path / "fonts"
    _forget()


def _forget() -> None:
    for cached in (fonts._path_for, fonts._installed, fonts._open):
        cached.cache_clear()


def parts(text: str) -> list[tuple[bool, str]]:
    """Return the runs of a text, each with whether a font of the system draws it."""
    return [(font.path in fonts._used, part) for font, part in fonts._runs(text, 16)]  # type: ignore[union-attr]


def drawn(text: str) -> np.ndarray:
    image = Image.new("RGB", (400, 30))
    fonts.draw_text(ImageDraw.Draw(image), (2, 2), text, WHITE, 16)
    return np.asarray(image)


def test_latin_text_takes_pillows_own_font() -> None:
    assert parts("a cat, 3 of 7") == [(False, "a cat, 3 of 7")]
    assert drawn("a cat").any()


def test_a_character_without_a_font_is_drawn_as_its_escape() -> None:
    assert parts(f"a {CHARACTER}b") == [(False, "a \\u732bb")]
    assert parts("\U0001f600") == [(False, "\\U0001f600")]
    assert (drawn(CHARACTER) == drawn("\\u732b")).all()


def test_a_mark_on_a_character_without_a_font_is_escaped_too() -> None:
    assert parts("\u0939\u093f") == [(False, "\\u0939\\u093f")]


def test_a_font_in_the_usual_folders_draws_its_characters(no_fonts: Path) -> None:
    write_font(no_fonts / "deep" / "cats.ttf", CHARACTER)
    assert parts(f"a {CHARACTER} {CHARACTER}b\u72d7") == [
        (False, "a "), (True, f"{CHARACTER} {CHARACTER}"), (False, "b\\u72d7"),
    ]  # fmt: skip
    assert (drawn(CHARACTER) != drawn("\\u732b")).any() and drawn(CHARACTER).any()


def test_damaged_fonts_are_passed_over(no_fonts: Path) -> None:
    no_fonts.mkdir()
    (no_fonts / "NotoSansCJK-Regular.ttc").write_bytes(b"no font")
    write_font(no_fonts / "zzz.ttf", CHARACTER)
    assert parts(CHARACTER) == [(True, CHARACTER)]


def test_fontconfig_is_asked_for_fonts_elsewhere(no_fonts: Path, tmp_path: Path) -> None:
    font = tmp_path / "elsewhere" / "cats.ttf"
    write_font(font, CHARACTER)
    program = tmp_path / "bin" / "fc-list"
    program.parent.mkdir()
    program.write_text(f'#!/bin/sh\ntest "$1" = :charset=732b && echo {font}\n')
    os.chmod(program, 0o755)
    assert parts(CHARACTER) == [(True, CHARACTER)]
    assert parts("\u72d7") == [(False, "\\u72d7")]


def test_long_texts_are_cut_in_their_middle() -> None:
    pen = ImageDraw.Draw(Image.new("RGB", (10, 10)))
    text = "a file name that is far too long.jpg"
    short = fonts.shorten(pen, text, 13, 120)
    assert fonts.text_width(pen, short, 13) <= 120 and short.startswith("a f") and short.endswith("jpg")
    assert fonts.shorten(pen, "short", 13, 120) == "short"


def test_without_freetype_only_ascii_is_drawn(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(fonts, "_default", lambda size: ImageFont.load_default_imagefont())
    _forget()
    assert drawn("a cat").any()
    assert [part for _, part in fonts._runs(f"a{CHARACTER}", 16)] == ["a\\u732b"]
