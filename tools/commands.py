#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Write ``docs/reference/command.md``, the page of the command line, from the parsers of the commands.

``tools/commands.py`` writes it, ``tools/commands.py --check`` fails if it is out of date.
"""

from __future__ import annotations

import argparse
import os
import sys
from pathlib import Path

from operators import ROOT, write_or_check
from stoker.command import parsers

PAGE = ROOT / "docs" / "reference" / "command.md"
NOTE = "<!-- Written by tools/commands.py from the parsers of the commands. -->\n"
INTRODUCTION = """\
The package installs the command `stoker`. `python -m stoker.command` is the same.

| exit status | meaning |
| --- | --- |
| 0 | success |
| 1 | the command found a fault: bad files, a pipeline that cannot be built, a full disk |
| 2 | the command line is wrong, or a file or folder that it names cannot be used |
| 130 | interrupted with Ctrl-C |
| 141 | the reader of the output closed its pipe |
"""


def page() -> str:
    """Return the page."""
    parts = ["# Command line\n", NOTE, INTRODUCTION]
    for parser in parsers():
        parts += [f"## {parser.prog}\n", f"{(parser.description or '').splitlines()[0]}\n", f"`{_usage(parser)}`\n"]
        rows = [_row(a) for a in parser._actions if not isinstance(a, argparse._HelpAction)]
        if rows:
            parts.append("\n".join(["| argument | default | meaning |", "|---|---|---|", *rows]) + "\n")
    return "\n".join(parts)


def _usage(parser: argparse.ArgumentParser) -> str:
    return " ".join(parser.format_usage().removeprefix("usage: ").split()).replace("[-h] ", "")


def _row(action: argparse.Action) -> str:
    if isinstance(action, argparse._SubParsersAction):
        names = [f"`{name}`" for name in action.choices]
        return f"| {', '.join(names)} | | the command, see below |"
    name = f"`{'`, `'.join(action.option_strings)}`" if action.option_strings else f"`{action.metavar or action.dest}`"
    default = action.default
    if isinstance(default, Path) and default.is_absolute():
        default = default.relative_to(ROOT)
    value = "" if default is None or default is False or default == argparse.SUPPRESS else f"`{default}`"
    return f"| {name} | {value} | {action.help or ''} |"


def main() -> int:
    sys.path.insert(0, str(ROOT))  # for benchmarks/
    os.environ.pop("STOKER_DATA", None)  # a default of the benchmarks
    return write_or_check({PAGE: page()}, "make generate")


if __name__ == "__main__":
    sys.exit(main())
