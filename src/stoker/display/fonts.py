# SPDX-License-Identifier: Apache-2.0
r"""Text in any script: a font of the system for each character that Pillow's own font lacks.

A character without a font on this machine is drawn as its escape, ``\u4e2d``, which stays readable.
"""

from __future__ import annotations

import functools
import os
import re
import shutil
import subprocess
import unicodedata
from collections.abc import Iterator
from itertools import groupby
from pathlib import Path

from PIL import ImageDraw, ImageFont

from .._import_lock import lock_around_fork

Font = ImageFont.FreeTypeFont | ImageFont.ImageFont
Colour = tuple[int, int, int]

_SUFFIXES = (".ttf", ".otf", ".ttc", ".otc")
# Fonts for many scripts come first; without a preferred one, any font with the character serves.
_PREFERRED = [
    re.compile(pattern, re.IGNORECASE)
    for pattern in (
        r"NotoSansCJK.*Regular|NotoSansSC.*Regular|SourceHanSans.*Regular|wqy-|DroidSansFallback|uming|ukai|simhei|msyh",
        r"DejaVuSans\.|NotoSans-Regular|LiberationSans-Regular|FreeSans\.",
        r"NotoSans.*Regular|Lohit|Arimo|Roboto-Regular",
        r"unifont|Regular",
    )
]
# FreeType's faces, which threads share here, serve one thread at a time.
_FACES = lock_around_fork()
_MOST_FILES = 5000
_FONTCONFIG_S = 5.0  # a machine with a cold cache lists its fonts in less


def draw_text(pen: ImageDraw.ImageDraw, at: tuple[int, int], text: str, colour: Colour, size: int) -> None:
    """Draw a line of text; ``at`` is its upper left corner."""
    x, y = at
    with _FACES:
        for font, part in _runs(text, size):
            pen.text((x, y + _baseline(size)), part, colour, font, anchor="ls" if _is_scalable(font) else None)
            x += round(pen.textlength(part, font))


def text_width(pen: ImageDraw.ImageDraw, text: str, size: int) -> int:
    """Return the width of a line of text in pixels."""
    with _FACES:
        return sum(round(pen.textlength(part, font)) for font, part in _runs(text, size))


def shorten(pen: ImageDraw.ImageDraw, text: str, size: int, width: int) -> str:
    """Cut a text in its middle until it fits into ``width`` pixels."""
    keep, shown = len(text), text
    while keep > 4 and text_width(pen, shown, size) > width:
        keep -= 1
        shown = f"{text[: (keep + 1) // 2]}\N{HORIZONTAL ELLIPSIS}{text[len(text) - keep // 2 :]}"
    return shown


def _baseline(size: int) -> int:
    """Return the distance of the common baseline from the upper edge, so that fonts of a line agree."""
    font = _default(size)
    return int(font.getmetrics()[0]) if isinstance(font, ImageFont.FreeTypeFont) else 0


def _is_scalable(font: Font) -> bool:
    return isinstance(font, ImageFont.FreeTypeFont)


def _runs(text: str, size: int) -> Iterator[tuple[Font, str]]:
    """Yield the parts of a text that one font draws.

    Marks stay with their letter. Spaces stay with the word before, so that a font sets a whole phrase of a script that
    runs from right to left.
    """
    styled: list[tuple[str | None, str]] = []
    for character in text:
        continues = bool(styled) and (character.isspace() or _continues(character))
        path = styled[-1][0] if continues else _path_for(character)
        drawn = _escape(character) if path is None and not character.isspace() else character
        styled.append((path, drawn))
    for path, parts in groupby(styled, key=lambda item: item[0] or ""):
        yield (_open(path, size) if path else _default(size)), "".join(part for _, part in parts)


def _continues(character: str) -> bool:
    """Return whether a character belongs to the one before: an accent, a vowel sign, a joiner, a variation."""
    return unicodedata.category(character).startswith("M") or character in "\u200c\u200d"


def _escape(character: str) -> str:
    code = ord(character)
    return f"\\u{code:04x}" if code < 0x10000 else f"\\U{code:08x}"


@functools.lru_cache(maxsize=64)
def _default(size: int) -> Font:
    return ImageFont.load_default(size)


@functools.lru_cache(maxsize=64)
def _open(path: str, size: int) -> ImageFont.FreeTypeFont:
    return ImageFont.truetype(path, size)


@functools.lru_cache(maxsize=4096)
def _path_for(character: str) -> str | None:
    """Return the file of a font with a character: "" for Pillow's own font, None if no font has it."""
    if character.isspace() or _has(_default(_PROBE), character):
        return ""
    return next((path for path in (*_used, *_candidates(character)) if _is_usable(path, character)), None)


def _is_usable(path: str, character: str) -> bool:
    """Return whether a font file has a character, and remember the file if so: texts rarely mix many scripts."""
    try:
        has = _has(_open(path, _PROBE), character)
    except (OSError, ValueError):  # a bitmap font without this size, a damaged file
        return False
    if has:
        _used.setdefault(path)
    return has


_used: dict[str, None] = {}  # font files in use, tried first

_PROBE = 16  # pixels


def _has(font: Font, character: str) -> bool:
    """Return whether a font draws a character: its glyph differs from that of a code that no font has."""
    if not isinstance(font, ImageFont.FreeTypeFont):
        return character.isascii()
    glyph, missing = font.getmask(character), font.getmask("\U0010fffe")
    return bool(glyph.getbbox()) and (glyph.size, bytes(glyph)) != (missing.size, bytes(missing))


def _candidates(character: str) -> tuple[str, ...]:
    """Return font files to try for a character: those that fontconfig lists, else all in the usual folders."""
    listed = _from_fontconfig(character)
    return _installed() if listed is None else tuple(_by_preference(listed))


def _from_fontconfig(character: str) -> list[str] | None:
    """Return the font files that fontconfig lists for a character; None on a machine without fontconfig."""
    program = shutil.which("fc-list")
    if program is None:
        return None
    try:
        listed = subprocess.run(
            [program, f":charset={ord(character):x}", "--format=%{file}\\n"],
            capture_output=True, timeout=_FONTCONFIG_S, check=False,
        )  # fmt: skip
    except (OSError, subprocess.TimeoutExpired):
        return None
    return [p for p in os.fsdecode(listed.stdout).splitlines() if p.lower().endswith(_SUFFIXES)]


@functools.cache
def _installed() -> tuple[str, ...]:
    """Return the font files in the usual folders, those for many scripts first."""
    home = Path.home() if os.environ.get("HOME") else None
    shared = os.environ.get("XDG_DATA_DIRS") or "/usr/local/share:/usr/share"
    folders = [Path(f, "fonts") for f in shared.split(":") if f]
    if home is not None:
        folders += [Path(os.environ.get("XDG_DATA_HOME") or home / ".local" / "share", "fonts"), home / ".fonts"]
    found: list[str] = []
    for folder in folders:
        for root, _, names in os.walk(folder):
            found += [os.path.join(root, name) for name in names if name.lower().endswith(_SUFFIXES)]
            if len(found) > _MOST_FILES:
                return tuple(_by_preference(found[:_MOST_FILES]))
    return tuple(_by_preference(found))


def _by_preference(paths: list[str]) -> list[str]:
    def rank(path: str) -> tuple[int, str]:
        name = os.path.basename(path)
        return next((i for i, pattern in enumerate(_PREFERRED) if pattern.search(name)), len(_PREFERRED)), path

    return sorted(set(paths), key=rank)
