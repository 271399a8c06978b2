# SPDX-License-Identifier: Apache-2.0
"""The examples of the operator pages run, and print what their comments say."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

import examples
import figures
import operators

FOUND = operators.public()


@pytest.fixture(scope="module")
def photographs(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("examples")
    examples.write_photographs(folder)
    return folder


def test_every_operator_has_an_example() -> None:
    assert set(examples.names()) == set(FOUND)


KEEPS_THREADS = pytest.mark.leaks("pyarrow's threads live as long as the process")
ON_PYARROW = {"readers.huggingface", "readers.parquet"}


@pytest.mark.parametrize(
    "name", [pytest.param(n, marks=KEEPS_THREADS) if n in ON_PYARROW else n for n in examples.names()]
)
def test_example(name: str, photographs: Path) -> None:
    example = examples.load(name)
    assert example is not None
    assert f".{name}(" in example.code, "expected a call of the operator"
    assert max(map(len, example.code.splitlines())) <= examples.WIDEST
    package = examples.extra_of(example)
    assert bool(example.figure) == (package is None), "expected a picture, but none with packages that the site lacks"
    if examples.is_missing(package):
        pytest.skip(f"the example uses {package}, an extra that is not installed: `make test-containers`")
    names, printed = examples.run(example, photographs)
    examples.close(names)
    for output in printed:
        assert output.text == output.expected, f"line {output.lines[0]}"
    if not example.figure:
        return
    picture = figures.draw(names["figure"])
    assert min(picture.size) > 30 and max(picture.size) < 2000
    assert np.ptp(np.asarray(picture)) > 100  # something is drawn
    assert figures.thumbnail(names["figure"]).size == figures.THUMBNAIL


def _example(folder: Path, code: str) -> examples.Example:
    path = folder / "example.py"
    path.write_text(examples.HEADER + code)
    return examples.Example(path, code, "figure = {}")


@pytest.mark.parametrize(
    ("code", "fault"),
    [
        ("print(1 + 1)  # 2\n", ""),
        ("print('a\\nb')\n# a\n# b\n", ""),
        ("print(1 + 1)  # 3\n", "prints\n2\nbut the comment says\n3"),
        ("print('a\\nb')\n# a\n", "the comment says\na"),
        ("print(2)\n", "prints\n2\nbut"),
        ("x = 1 / 0\n", "ZeroDivisionError"),
    ],
)
def test_a_wrong_comment_is_a_fault(code: str, fault: str, tmp_path: Path) -> None:
    found = examples.faults(_example(tmp_path, code), tmp_path)
    assert bool(found) == bool(fault)
    assert all(fault in text for text in found)


def test_an_example_without_a_picture_is_a_fault(tmp_path: Path) -> None:
    (found,) = examples.faults(examples.Example(tmp_path / "example.py", "print(2)  # 2\n", ""), tmp_path)
    assert "expected a picture" in found


@pytest.mark.parametrize(
    "code", ["print(1 + 1)\n", "print(2)  # 3\nx = 1\n", "print('a\\nb')\n# a\n# c\n\n# note\nx = 1\n"]
)
def test_what_is_printed_is_written(code: str, tmp_path: Path) -> None:
    example = _example(tmp_path, code)
    examples.write(example, tmp_path)
    text = example.path.read_text().removeprefix(examples.HEADER)
    code = text.partition(examples.MARK)[0]
    assert examples.faults(examples.Example(example.path, code, "figure = {}"), tmp_path) == []
    assert ("# note" in text) == ("# note" in code)
