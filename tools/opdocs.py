#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Write ``docs/operators/``: a page per operator and an index, from the operators' declarations.

``tools/opdocs.py`` writes them, ``tools/opdocs.py --check`` fails if one is out of date.
"""

from __future__ import annotations

import sys
from collections.abc import Iterable
from pathlib import Path

import operators
from operators import ROOT, default, documentation, is_required, markdown, value_text
from stoker.contract.argument import COMMON, Argument
from stoker.contract.operator import Operator

FOLDER = ROOT / "docs" / "operators"
NOTE = "<!-- Written by tools/opdocs.py from the operator's declaration. -->\n"
SHARED = (
    "All operators also take `name`, `device`, `preserve` and `bytes_per_sample_hint`: see [arguments that all "
    "share](index.md#arguments-that-all-share).\n"
)
_KINDS = {
    "dtype": "element type",
    "image_type": "colour model",
    "interp": "interpolation",
    "object": "any",
}


def page(operator: type[Operator]) -> str:
    """Return the page of one operator."""
    own = {k: a for k, a in operator.all_arguments().items() if k not in COMMON}
    sections = [
        f"# fn.{operator.name}\n",
        NOTE,
        markdown(documentation(operator)) + "\n",
        "## Inputs and outputs\n",
        _ports(operator),
        "## Arguments\n",
        _table(own) if own else "It has no arguments of its own.\n",
        SHARED,
        "## Facts\n",
        _facts(operator),
        "## Examples\n",
        "These calls are what the tests run.\n",
        "```python\n" + "\n".join(operators.call(operator, case) for case in operator.cases) + "\n```\n"
        if operator.cases
        else f"```python\n{operators.call(operator, {})}\n```\n",
    ]
    if operator.inputs[1] and not operator.is_source:
        sections.append(
            f"Without a pipeline, on arrays: `eager.{operator.name}(...)`, with the same arguments and bits.\n"
        )
    return "\n".join(sections)


def _ports(operator: type[Operator]) -> str:
    low, high = operator.inputs
    count = "none" if high == 0 else str(low) if low == high else f"{low} to {high}"
    names = ", ".join(f"`{p.name}`" for p in operators.inputs(operator))
    choice = operators.deciding(operator)
    outputs = f"{operators.outputs(operator) or 1}{f'; `{choice[0]}` decides' if choice else ''}"
    return f"- Inputs: {count}{f' ({names})' if names else ''}\n- Outputs: {outputs}\n"


def _table(arguments: dict[str, Argument]) -> str:
    rows = ["| argument | type | default | per row | meaning |", "|---|---|---|---|---|"]
    for name, a in arguments.items():
        kind = _KINDS.get(a.kind, a.kind)
        if a.choices and a.kind == "str":
            kind = ", ".join(f"`{value_text(c)}`" for c in a.choices)
        if a.many:
            kind += " or list"
        preset = "required" if is_required(a) else f"`{value_text(default(a))}`"
        meaning = markdown(a.doc).replace("|", "\\|")
        rows.append(f"| `{name}` | {kind} | {preset} | {'yes' if a.per_row else ''} | {meaning} |")
    return "\n".join(rows) + "\n"


def _facts(operator: type[Operator]) -> str:
    exact = "bit for bit on every machine" if operator.exactness == "exact" else operator.exactness
    facts = [f"Devices: {', '.join(operator.devices)}.", f"Exactness: {exact}."]
    if operator.is_source:
        facts.append("Source: where rows come from.")
    if operator.is_composite():
        facts.append("Composite: expands to other operators, which fuse.")
    if operator.draws:
        facts.append("Random: its draws follow from seed, epoch, row key and its place in the pipeline.")
    if operator.scope == "batch":
        facts.append("A row's result depends on the other rows of its batch.")
    if operator.stateful:
        facts.append("Stateful: rows run in order; the state travels with every delivered batch.")
    if operator.is_python():
        facts.append("Runs in Python, in a segment of its own.")
    return "".join(f"- {fact}\n" for fact in facts)


def index(found: Iterable[type[Operator]]) -> str:
    """Return the list of all operators, by group."""
    groups: dict[str, list[type[Operator]]] = {}
    for operator in found:
        groups.setdefault(operator.name.rpartition(".")[0], []).append(operator)
    lines = ["# Operators\n", NOTE]
    for group, members in sorted(groups.items()):
        lines += [f"## fn.{group}\n" if group else "## fn\n"]
        lines += [f"- [`{op.name}`]({op.name}.md): {_summary(op)}" for op in members] + [""]
    lines += ["## Arguments that all share\n", _table(COMMON)]
    return "\n".join(lines)


def _summary(operator: type[Operator]) -> str:
    paragraph = markdown(documentation(operator)).split("\n\n")[0].replace("\n", " ")
    return paragraph.split(". ")[0].rstrip(".") + "."


def pages() -> dict[Path, str]:
    """Return all files of the folder."""
    found = operators.public()
    files = {FOLDER / f"{name}.md": page(operator) for name, operator in found.items()}
    return {**files, FOLDER / "index.md": index(found.values())}


def main() -> int:
    files = pages()
    return operators.write_or_check(files, "make generate", lambda: sorted(set(FOLDER.glob("*.md")) - set(files)))


if __name__ == "__main__":
    sys.exit(main())
