# SPDX-License-Identifier: Apache-2.0
"""Hooks of mkdocs: pictures of the operators, made when the site is built, and the operators' navigation."""

from __future__ import annotations

import logging
import re
import sys
import tempfile
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).resolve().parent))

import api
import examples
import figures  # noqa: F401 - for the examples, before mkdocs restores the search path
import operators

MARK = "<!-- picture -->"
_pictures: dict[str, bytes] = {}


def on_config(config: Any) -> Any:
    """Add the operator pages, by family, to the navigation."""
    found = operators.families()
    for entry in config.nav:
        if isinstance(entry, dict) and "Operators" in entry:
            families = [{family: [{op.name: f"operators/{op.name}.md"} for op in ops]} for family, ops in found.items()]
            entry["Operators"] = ["operators/index.md", *families]
    return config


def on_files(files: Any, config: Any) -> Any:
    """Add the pictures to the files of the site."""
    from mkdocs.structure.files import File

    if not _pictures:
        with tempfile.TemporaryDirectory() as folder:
            examples.write_photographs(Path(folder))
            _pictures.update(examples.pictures(Path(folder)))
    for name, data in _pictures.items():
        files.append(File.generated(config, f"operators/pictures/{name}.webp", content=data))
    return files


def on_page_markdown(markdown: str, page: Any, config: Any, files: Any) -> str:
    """Insert the picture of an operator's page, and small ones into the list of all operators."""
    if page.file.src_uri == "operators/index.md":
        return _with_thumbnails(markdown)
    if MARK not in markdown:
        return markdown
    name = Path(page.file.src_uri).stem
    return markdown.replace(MARK, f"![Result of the example below](pictures/{name}.webp)")


def _with_thumbnails(markdown: str) -> str:
    """Return the list of all operators with a column of pictures."""

    def add(row: re.Match[str]) -> str:
        small = f"{row[1]}-small"
        return f"| {f'![](pictures/{small}.webp)' if small in _pictures else ''} {row[0]}"

    text = markdown.replace("| operator | description |\n|---|---|\n", "| | operator | description |\n|---|---|---|\n")
    return re.sub(r"^\| \[`([\w.]+)`\]\(.*$", add, text, flags=re.MULTILINE)


def on_post_build(config: Any) -> None:
    """Warn of public functions and classes that the API reference lacks; strict builds fail then."""
    pages = (Path(config.site_dir) / "reference").glob("*.html")
    anchors = {name for page in pages for name in re.findall(r' id="(stoker[\w.]*)"', page.read_text(encoding="utf-8"))}
    log = logging.getLogger("mkdocs.hooks")
    for name in missing_names(anchors):
        log.warning("docs/reference has no page with %s", name)


def missing_names(anchors: set[str]) -> list[str]:
    """Return the names of public functions and classes without an anchor. ``stoker.dali`` is described in short."""
    shown = {anchor.rpartition(".")[2] for anchor in anchors}
    names = [name for name, _, _ in api.callables() if name.rpartition(".")[0] in api.MODULES]
    return [n for n in names if n.rpartition(".")[2] not in shown and not n.startswith("stoker.dali.")]
