# SPDX-License-Identifier: Apache-2.0
"""The code in README and documentation, run as written on a small data set."""

from __future__ import annotations

import contextlib
import importlib.util
import io
import re
import runpy
import tomllib
from pathlib import Path
from typing import Any

import pytest
from photographs import write_photographs

from stoker import Pipeline
from stoker.command import main
from stoker.frontends import registry
from stoker.frontends.dali.dynamic import context

pytest.importorskip("torch", exc_type=ModuleNotFoundError)
pytest.importorskip("pyarrow")  # its import, which pandas does on one page, starts a thread that stays

ROOT = Path(__file__).resolve().parents[2]
PAGES = [
    ROOT / "README.md",
    *(p for f in ("", "guides", "internals", "reference") for p in sorted((ROOT / "docs" / f).glob("*.md"))),
]
BLOCK = re.compile(r"^(?:<!-- needs: ([\w ]+) -->\n)?```(\w*)\n(.*?)^```", re.MULTILINE | re.DOTALL)


def blocks(page: Path, language: str = "python") -> list[str]:
    """Return the blocks of a page, without those that need a package that is not installed.

    `make trainers` runs the pages in an environment that has all packages.
    """
    return [
        text
        for needs, kind, text in BLOCK.findall(page.read_text(encoding="utf-8"))
        if kind == language and all(importlib.util.find_spec(name) for name in needs.split())
    ]


@pytest.fixture(scope="module")
def data_dir(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Write enough files for one full batch of the README's pipeline and a partial one."""
    return write_photographs(tmp_path_factory.mktemp("readme"), per_class=45)


@pytest.fixture(autouse=True)
def own_operators(monkeypatch: pytest.MonkeyPatch) -> None:
    """Forget the operators that a page registers after this page."""
    monkeypatch.setattr(registry, "_registered", dict(registry._registered))


def not_printed(code: str, output: str) -> list[str]:
    """Return the comments after calls of `print` that no line of the output matches.

    "..." matches any text. A comment that begins with it may end before the line does.
    """
    lines = [line.strip() for line in output.splitlines()]
    missing = []
    for text in re.findall(r"^ *print\(.*\) +# (.*)$", code, re.MULTILINE):
        pattern = ".*".join(re.escape(part) for part in text.strip().split("..."))
        pattern += ".*" if text.startswith("...") else ""
        if not any(re.fullmatch(pattern, line) for line in lines):
            missing.append(text)
    return missing


@pytest.mark.parametrize(
    ("code", "output", "missing"),
    [
        ("print(x)  # 1\n", "1\n", []),
        ("print(x)  # 1\n", "12\n", ["1"]),
        ("    print(error)   # ... expected 1, got ...\n", "`x`: expected 1, got 2 - row 0\n", []),
        ("print(error)  # ... expected 1, got ...\n", "`x`: expected 2, got 2\n", ["... expected 1, got ..."]),
        ("print(x)\n# no output of it\n", "", []),
    ],
)
def test_comments_after_prints_are_compared(code: str, output: str, missing: list[str]) -> None:
    assert not_printed(code, output) == missing


def run(page: Path, data_dir: Path, folder: Path) -> dict[str, Any]:
    """Run all blocks of a page as one program, and return its names."""
    from stoker.torch import Loader

    if "import datasets, transforms" in "".join(blocks(page)):  # torchvision's
        import tests.takeover.declared  # noqa: F401, for a torch without CUDA

    program = folder / f"{page.stem}.py"
    program.write_text("\n".join(blocks(page)), encoding="utf-8")
    with contextlib.redirect_stdout(io.StringIO()) as out:
        names = runpy.run_path(str(program), {"data_dir": str(data_dir)})
    for value in names.values():  # A registered operator keeps the names of its page alive, running pipelines too.
        if isinstance(value, Pipeline | Loader):
            value.close()
    assert not not_printed(program.read_text(encoding="utf-8"), out.getvalue())
    return names


def test_readme(data_dir: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    import torch

    monkeypatch.chdir(tmp_path)
    assert blocks(PAGES[0])
    names = run(PAGES[0], data_dir, tmp_path)
    loader = names["Loader"](names["training"](str(data_dir), 224))
    batches = list(loader)
    assert [len(x) for x, _ in batches] == [128, 7]
    x, y = batches[0]
    assert (x.dtype, tuple(x.shape)) == (torch.float32, (128, 3, 224, 224))
    assert (y.dtype, tuple(y.shape)) == (torch.int64, (128,))
    assert set(y.tolist()) == {0, 1, 2}
    assert names["small"].shape == (224, 224, 3)
    loader.close()


@pytest.mark.parametrize("page", [p for p in PAGES[1:] if blocks(p)], ids=lambda p: p.stem)
def test_documentation(page: Path, data_dir: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    run(page, data_dir, tmp_path)
    context._shared_pool = None  # the threads of DALI's imperative mode stay for later calls


@pytest.mark.parametrize("page", PAGES, ids=lambda p: p.stem)
def test_no_block_is_left_out(page: Path) -> None:
    """Every block is Python or a command, since no test would run another block."""
    assert {kind for _, kind, _ in BLOCK.findall(page.read_text(encoding="utf-8"))} <= {"python", "sh"}


COMMANDS = [line.split("#")[0].split() for page in PAGES for text in blocks(page, "sh") for line in text.splitlines()]


PIPELINE = """
from stoker import fn, pipeline_def

@pipeline_def(batch_size=2, num_threads=1, seed=1)
def training(folder):
    jpegs, labels = fn.readers.file(file_root=folder)
    return fn.decoders.image(jpegs), labels
"""


@pytest.mark.parametrize("command", [c for c in COMMANDS if c], ids=" ".join)
def test_commands_exist(command: list[str], data_dir: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Targets, extras and modules that a page names exist. Commands that read a folder or a pipeline are run."""
    if command[0] == "make":
        targets = re.findall(r"^([\w -]+):", (ROOT / "Makefile").read_text(encoding="utf-8"), re.MULTILINE)
        assert command[1] in " ".join(targets).split()
    elif command[:2] == ["pip", "install"]:
        extras = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"][
            "optional-dependencies"
        ]
        assert set(re.findall(r"\[(\w+)\]", " ".join(command[2:]))) <= set(extras)
    elif command[:2] == ["python", "-m"]:
        assert importlib.util.find_spec(command[2]) is not None
    elif command[0] == "torchrun":  # `make trainers` runs it; here its options are parsed
        from torch.distributed.run import parse_args

        assert parse_args(command[1:]).training_script == "train.py"
    else:
        assert command[0] == "stoker"
        monkeypatch.chdir(tmp_path)
        Path("PIPELINE.py").write_text(PIPELINE, encoding="utf-8")
        assert main([re.sub(r"(^|=)DIR$", rf"\g<1>{data_dir}", word) for word in command[1:]]) == 0


def test_the_chinese_readme_has_the_same_code_figures_and_links() -> None:
    english, chinese = ((ROOT / name).read_text(encoding="utf-8") for name in ("README.md", "README.zh-CN.md"))
    assert BLOCK.findall(chinese) == BLOCK.findall(english)
    own = {"README.md", "README.zh-CN.md"}
    assert sorted({*LINK.findall(chinese)} - own) == sorted({*LINK.findall(english)} - own)
    assert "README.zh-CN.md" in LINK.findall(english) and "README.md" in LINK.findall(chinese)

    def facts(text: str) -> tuple[list[list[str]], list[int]]:
        """Return the numbers of each section outside code, links and comments, and the headings' levels."""
        prose = LINK.sub("](", re.sub(r"<!--.*?-->|`[^`]*`", "", BLOCK.sub("", text), flags=re.DOTALL))
        sections = re.split(r"^#+ .*$", prose, flags=re.MULTILINE)
        numbers = [sorted(re.findall(r"\d[\d,.]*(?<![,.])", section)) for section in sections]
        return numbers, [len(marks) for marks in re.findall(r"^(#+) ", BLOCK.sub("", text), re.MULTILINE)]

    assert facts(chinese) == facts(english)
    rows = [[line.count("|") for line in text.splitlines() if line.startswith("|")] for text in (chinese, english)]
    assert rows[0] == rows[1]


def test_all_pages_are_in_the_navigation() -> None:
    """A hook adds the pages of operators when the site is built."""
    named = set(re.findall(r"[\w/-]+\.md", (ROOT / "mkdocs.yml").read_text(encoding="utf-8")))
    pages = {page.relative_to(ROOT / "docs").as_posix() for page in (ROOT / "docs").rglob("*.md")}
    assert not named ^ {page for page in pages if not re.match("operators/(?!index)", page)}


LINK = re.compile(r"\]\(([^)#\s]+)(?:#[^)]*)?\)")
TEXTS = [*ROOT.glob("*.md"), *(ROOT / "docs").rglob("*.md")]


@pytest.mark.parametrize("page", TEXTS, ids=lambda p: str(p.relative_to(ROOT)))
def test_links_lead_somewhere(page: Path) -> None:
    targets = [t for t in LINK.findall(page.read_text(encoding="utf-8")) if "://" not in t]
    assert not [t for t in targets if not (page.parent / t).exists()]
