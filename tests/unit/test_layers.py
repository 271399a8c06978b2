# SPDX-License-Identifier: Apache-2.0
"""Layering rules that import-linter cannot check."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from pathlib import Path

import pytest

from stoker.codecs._index import INDEX as CODECS
from stoker.contract.pixel import BINARY, UNARY
from stoker.contract.step import VIEW_KINDS
from stoker.native import _native
from stoker.ops._index import INDEX

ROOT = Path(__file__).resolve().parents[2]
SOURCE = ROOT / "src" / "stoker"
# Words that name both steps or pixel expressions and operators or kernels.
VOCABULARY = {*VIEW_KINDS, *BINARY, *UNARY, "cast"}
KERNELS = {name for name, *_ in _native.kernels.list_constructors()}
KERNELS_ON_GPU = {name for name in dir(_native.gpu) if callable(getattr(_native.gpu, name))}
# Functions in `_native.gpu` that construct no kernel and belong to no codec.
HELPERS = {
    "check_constants", "count_cuda", "exchange", "list_constructors", "set_null_driver_bytes", "open_cuda", "open_null",
    "place_of", "read_dlpack", "is_null_device_current", "close_idle", "end_idle", "set_idle_seconds",
}  # fmt: skip
FOLDERS = ("graph", "executor", "device", "contract", "native")
# Other words that also name kernels or operators, by file, each with the reason to allow it.
ALLOWED = {
    ("graph/emit.py", "stage"): "the kernel of the body `Stage`",
    ("graph/emit.py", "view"): "the kernel of the body `View`",
    ("graph/load.py", "stage"): "the method of `KernelsOnGpu` that makes it",
    ("graph/node.py", "draw"): "a field of a node's JSON: the draw's number",
    ("executor/report.py", "stage"): "a heading of the report's table",
    ("executor/report.py", "python"): "a place where time goes: Python code",
    ("contract/lowering.py", "constant"): "the builder's own kernel: a tensor that is the same for every row",
    ("contract/lowering.py", "scalars"): "the builder's own kernel: a small tensor out of numbers",
    ("contract/lowering.py", "per_frame"): "a property of values",
    ("contract/pixel.py", "select"): "a pixel expression of three operands",
    ("executor/device_copies.py", "wrap"): "the binding that makes an array of memory of another owner",
    ("device/generate.py", "lookup"): "the function of generated code that reads a table",
    ("device/gpu.py", "stage"): "the kernel of the body `Stage` on a GPU",
    ("device/gpu.py", "host_call"): "the form for GPUs of functions in Python",
    ("device/gpu.py", "own"): "the kernel that runs any operator's own passes",
    ("device/gpu.py", "own_with_program"): "the same, with a program that computes inputs",
    ("device/gpu.py", "own_with_fault"): "the same, for passes that may fail rows",
}  # fmt: skip


class _Names(ast.NodeVisitor):
    """Words of a module that may name an operator, a kernel or a codec.

    Attributes:
        strings: constants, without docstrings.
        taken: attributes of the native modules `kernels` and `gpu`.
        identifiers: all names and imported modules.
    """

    def __init__(self, tree: ast.AST) -> None:
        self.strings: set[str] = set()
        self.taken: set[str] = set()
        self.identifiers: set[str] = set()
        self.visit(tree)

    def visit_Expr(self, node: ast.Expr) -> None:
        if not isinstance(node.value, ast.Constant):  # otherwise a docstring
            self.generic_visit(node)

    def visit_Constant(self, node: ast.Constant) -> None:
        if isinstance(node.value, str):
            self.strings.add(node.value)

    def visit_Name(self, node: ast.Name) -> None:
        self.identifiers.add(node.id)

    def visit_Attribute(self, node: ast.Attribute) -> None:
        owner = node.value
        if (owner.attr if isinstance(owner, ast.Attribute) else getattr(owner, "id", "")) in ("kernels", "gpu"):
            self.taken.add(node.attr)
        self.identifiers.add(node.attr)
        self.generic_visit(node)

    def visit_ImportFrom(self, node: ast.ImportFrom) -> None:
        self.identifiers.update((node.module or "").split("."), (alias.name for alias in node.names))


def names_in(folder: str) -> Iterator[tuple[str, _Names]]:
    """Return the words of each file in a folder."""
    paths = sorted((SOURCE / folder).rglob("*.py"))
    assert paths
    return ((path.relative_to(SOURCE).as_posix(), _Names(ast.parse(path.read_text()))) for path in paths)


def kernels_and_operators(names: _Names) -> set[str]:
    """Return the words of a module that name a kernel or an operator."""
    operators = {name.lstrip("_") for name in INDEX} | set(INDEX)
    constructors = {name for name in KERNELS_ON_GPU if not isinstance(getattr(_native.gpu, name), type)} - HELPERS
    return (names.strings & (operators | KERNELS) - VOCABULARY) | (names.taken & (KERNELS | constructors))


@pytest.mark.parametrize("folder", FOLDERS)
def test_passes_the_executor_and_devices_use_traits_not_names(folder: str) -> None:
    for path, names in names_in(folder):
        found = {word for word in kernels_and_operators(names) if (path, word) not in ALLOWED}
        assert not found, f"{path} knows operators or kernels by name: {found}"


def test_every_allowed_word_occurs() -> None:
    found = {(path, word) for folder in FOLDERS for path, names in names_in(folder)
             for word in kernels_and_operators(names)}  # fmt: skip
    assert set(ALLOWED) <= found, "remove a word that no longer occurs from ALLOWED"


@pytest.mark.parametrize("folder", [folder for folder in FOLDERS if folder != "native"])
def test_no_other_layer_names_a_codec(folder: str) -> None:
    for path, names in names_in(folder):
        words = {*names.strings, *names.identifiers}
        found = {word for word in words for codec in CODECS if codec in word.lower()}
        assert not found, f"{path} knows a codec by name: {found}"


def test_the_scan_finds_names() -> None:
    """The scan finds planted names, which these folders once contained."""
    assert kernels_and_operators(_Names(ast.parse('body.kernel == "decode"'))) == {"decode"}
    assert kernels_and_operators(_Names(ast.parse("_native.gpu.jpeg_index(device, 1)"))) == {"jpeg_index"}
    assert kernels_and_operators(_Names(ast.parse("kernels.equalize()"))) == {"equalize"}
    assert kernels_and_operators(_Names(ast.parse('find("decoders.image")'))) == {"decoders.image"}
    assert not kernels_and_operators(_Names(ast.parse('"""decode"""\nx = "a text that has decode in it"')))
    assert _Names(ast.parse("from .jpeg.report import FileIndexReport")).identifiers >= {"jpeg", "FileIndexReport"}


def test_every_file_names_its_licence() -> None:
    for folder in ("src", "tests", "benchmarks", "tools"):
        for path in sorted((ROOT / folder).rglob("*")):
            if path.suffix in (".py", ".pyi", ".cpp", ".hpp", ".ipp", ".sh"):
                assert "SPDX-License-Identifier: Apache-2.0" in path.read_text()[:200], path.relative_to(ROOT)


@pytest.mark.parametrize("name", sorted(name for name in INDEX if not name.startswith("_")))
def test_an_operator_is_one_class_in_a_file_of_its_own(name: str) -> None:
    module = INDEX[name].partition(":")[0]
    assert sum(where.partition(":")[0] == module for where in INDEX.values()) == 1
