#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Examples of the operator pages: ``docs/examples/NAME.py``, one per operator.

An example is a program that runs in a folder with photographs. What a statement prints stands in the comment after it
(on its last line, or on lines of their own below it). Lines after ``# ---- figure ----`` are not shown on the page;
they assign ``figure``, the tiles of the page's picture by caption.

``tools/examples.py`` runs all examples and reports those that fail or print something else; ``tools/examples.py
--write NAME ...`` writes what they print into their comments; ``--pictures FOLDER`` draws the pictures.
"""

from __future__ import annotations

import argparse
import ast
import contextlib
import importlib.util
import io
import sys
import tempfile
import tokenize
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from PIL import Image

import containers
from operators import ROOT

FOLDER = ROOT / "docs" / "examples"
MARK = "# ---- figure ----\n"
# Packages that the site is built without, so that examples with them have no picture. `make test-containers` runs them.
EXTRAS = ("array_record", "astropy", "lance", "litdata")
HEADER = "# SPDX-License-Identifier: Apache-2.0\n"
WIDEST = 100  # columns of the pages


@dataclass(frozen=True)
class Example:
    """Program of an operator page.

    Attributes:
        path: its file.
        code: the part that the page shows.
        figure: the part that makes the picture; "" if there is none.
    """

    path: Path
    code: str
    figure: str


@dataclass(frozen=True)
class Printed:
    """Output of one statement.

    Attributes:
        lines: first and last line of the statement, counted from 1.
        text: the output.
        expected: the comment after the statement.
        comment: number of lines below the statement that belong to that comment.
    """

    lines: tuple[int, int]
    text: str
    expected: str
    comment: int


def names() -> list[str]:
    """Return the names of all operators that have an example."""
    return sorted(path.stem for path in FOLDER.glob("*.py"))


def load(name: str) -> Example | None:
    """Return the example of an operator; None if it has none."""
    path = FOLDER / f"{name}.py"
    if not path.is_file():
        return None
    code, _, figure = path.read_text(encoding="utf-8").removeprefix(HEADER).partition(MARK)
    return Example(path, code.strip() + "\n", figure)


def write_photographs(folder: Path) -> None:
    """Write the photographs that the examples read: ``cat.jpg`` and others, and ``photos`` with a folder per class.

    Container files have the photographs of ``photos`` as well.
    """
    from stoker.demo.photos import find_photos

    for photo in find_photos():
        if photo.label in ("astronaut", "cat", "coffee", "rocket"):
            image = Image.open(photo.path).convert("RGB")
            image.save(folder / f"{photo.label}.jpg", quality=92)
            (folder / "photos" / photo.label).mkdir(parents=True, exist_ok=True)
            image.save(folder / "photos" / photo.label / "1.jpg", quality=92)
            left_half = image.crop((0, 0, image.width // 2, image.height))
            left_half.save(folder / "photos" / photo.label / "2.jpg", quality=92)
    containers.write_examples(folder)


def extra_of(example: Example) -> str | None:
    """Return a package of :data:`EXTRAS` that an example imports; None if there is none."""
    names: set[str] = set()
    for node in ast.parse(example.code).body:
        if isinstance(node, ast.Import):
            names |= {alias.name.partition(".")[0] for alias in node.names}
        elif isinstance(node, ast.ImportFrom):
            names.add((node.module or "").partition(".")[0])
    return next((name for name in EXTRAS if name in names), None)


def is_missing(package: str | None) -> bool:
    """Return whether a package is not installed."""
    return package is not None and importlib.util.find_spec(package) is None


def run(example: Example, folder: Path) -> tuple[dict[str, Any], list[Printed]]:
    """Run an example in a folder with photographs; return its names and the output of each statement that printed."""
    names: dict[str, Any] = {"__name__": "__main__"}
    printed = []
    comments = _comments(example.code)
    tree = ast.parse(example.code, str(example.path))
    with contextlib.chdir(folder):
        for statement in tree.body:
            with contextlib.redirect_stdout(io.StringIO()) as out:
                program = ast.Module([statement], type_ignores=[])
                exec(compile(program, str(example.path), "exec"), names)
            last = statement.end_lineno or statement.lineno
            if out.getvalue():
                printed.append(_compare(out.getvalue(), (statement.lineno, last), comments))
        if example.figure:
            exec(compile(example.figure, str(example.path), "exec"), names)
    return names, printed


def close(names: dict[str, Any]) -> None:
    """Close the pipelines of an example that has run."""
    from stoker import Pipeline

    for value in names.values():
        if isinstance(value, Pipeline):
            value.close()


def faults(example: Example, folder: Path) -> list[str]:
    """Run an example and return a message for each fault; none if a package that it imports is not installed."""
    package = extra_of(example)
    if is_missing(package):
        print(f"{example.path} is not run: {package} is not installed")
        return []
    try:
        names, printed = run(example, folder)
    except Exception as error:  # noqa: BLE001 - an example may fail in any way, and the message says how
        return [f"{example.path}: {type(error).__name__}: {error}"]
    close(names)
    found = [
        f"{example.path}: line {p.lines[0]} of the code prints\n{p.text}\nbut the comment says\n{p.expected}"
        for p in printed
        if p.text != p.expected
    ]
    if "figure" not in names and package is None:
        found.append(f"{example.path}: expected a picture: lines after `{MARK.strip()}` that assign `figure`")
    return found


def _comments(code: str) -> dict[int, tuple[int, str]]:
    """Return column and text of the comments by line."""
    tokens = tokenize.generate_tokens(io.StringIO(code).readline)
    return {t.start[0]: (t.start[1], t.string[1:].removeprefix(" ")) for t in tokens if t.type == tokenize.COMMENT}


def _compare(text: str, lines: tuple[int, int], comments: dict[int, tuple[int, str]]) -> Printed:
    below: list[str] = []
    while lines[1] not in comments and (after := comments.get(lines[1] + len(below) + 1, (1, "")))[0] == 0:
        below.append(after[1])
    expected = comments[lines[1]][1] if lines[1] in comments else "\n".join(below)
    clean = "\n".join(line.rstrip() for line in text.rstrip("\n").split("\n"))
    return Printed(lines, clean, expected, len(below))


def write(example: Example, folder: Path) -> None:
    """Write what an example prints into its comments."""
    names, printed = run(example, folder)
    close(names)
    lines = example.code.split("\n")
    for p in reversed(printed):
        last = p.lines[1]
        code = lines[last - 1].split("  # ")[0]
        short = "\n" not in p.text and len(code) + len(p.text) + 4 <= WIDEST
        new = [f"{code}  # {p.text}"] if short else [code, *(f"# {line}".rstrip() for line in p.text.split("\n"))]
        lines[last - 1 : last + p.comment] = new
    figure = f"\n{MARK}{example.figure}" if example.figure else ""
    example.path.write_text(HEADER + "\n".join(lines).rstrip() + "\n" + figure, encoding="utf-8")


def pictures(folder: Path) -> Iterator[tuple[str, bytes]]:
    """Run all examples and yield name and content of the pictures (WebP files) of those that have a figure.

    They are the figure, ``NAME``, and its last tile as a small picture, ``NAME-small``.
    """
    import figures

    for name in names():
        example = load(name)
        assert example is not None
        if example.figure:
            found, _ = run(example, folder)
            close(found)
            yield name, _encoded(figures.draw(found["figure"]))
            yield f"{name}-small", _encoded(figures.thumbnail(found["figure"]))


def _encoded(picture: Image.Image) -> bytes:
    file = io.BytesIO()
    picture.save(file, "WEBP", quality=90, method=4)
    return file.getvalue()


def main(argv: list[str] | None = None) -> int:
    parser = argparse.ArgumentParser(description="Run the examples of the operator pages.")
    parser.add_argument("names", nargs="*", help="operators; by default all")
    parser.add_argument("--write", action="store_true", help="write what they print into their comments")
    parser.add_argument("--pictures", type=Path, help="draw the pictures into this folder")
    arguments = parser.parse_args(argv)
    found: list[str] = []
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        write_photographs(folder)
        for example in filter(None, map(load, arguments.names or names())):
            if arguments.write:
                write(example, folder)
            else:
                found += faults(example, folder)
        if arguments.pictures:
            arguments.pictures.mkdir(parents=True, exist_ok=True)
            for operator, data in pictures(folder):
                (arguments.pictures / f"{operator}.webp").write_bytes(data)
    print("\n".join(found), end="\n" if found else "", file=sys.stderr)
    return 1 if found else 0


if __name__ == "__main__":
    sys.exit(main())
