#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Write ``docs/operators/``: a page per operator and an index, from the operators' declarations.

``tools/opdocs.py`` writes them, ``tools/opdocs.py --check`` fails if one is out of date.
"""

from __future__ import annotations

import sys
from pathlib import Path

import examples
import operators
from operators import ROOT, default, documentation, is_required, markdown, value_text
from stoker.contract.argument import COMMON, Argument
from stoker.contract.operator import Operator

FOLDER = ROOT / "docs" / "operators"
PICTURE = "<!-- picture -->"  # tools/docs_hooks.py inserts the picture when the site is built
NOTE = "<!-- Written by tools/opdocs.py from the operator's declaration. -->\n"
SHARED = (
    "All operators also take `name`, `device`, `preserve` and `bytes_per_sample_hint`: see [arguments that all "
    "share](index.md#arguments-that-all-share).\n"
)
INTRODUCTION = """\
An operator is called in three ways, with the same name, arguments and bits:

- `fn.resize(images, size=(224, 224))` in a [pipeline](../tutorial.md). Inputs are outputs of operators.
- `eager.resize(image, size=(224, 224))` on an array, a list of arrays or a [`Batch`](../reference/batch.md): see
  [eager calls](../reference/eager.md).
- In scripts written for NVIDIA DALI, with [`stoker.dali`](../reference/dali.md): `fn.resize` and `ops.Resize`.

An argument marked "per row" in a table may be the output of another operator: one value for each row of the batch.

The examples read `cat.jpg` and other files. Any photographs will do; the pictures show those of scikit-image. In a
checkout, `python tools/examples.py` runs all examples and compares what they print with the comments.
"""
# Beginnings of the texts of arguments that a reader of the page may skip.
_WITHOUT_EFFECT = ("Accepted", "No effect", "Former name", "Deprecated name", "For volumes, which are not supported")
_KINDS = {
    "dtype": "element type",
    "image_type": "colour model",
    "interp": "interpolation",
    "object": "any",
}


def page(operator: type[Operator]) -> str:
    """Return the page of one operator."""
    own = {k: a for k, a in operator.all_arguments().items() if k not in COMMON}
    example = examples.load(operator.name)
    sections = [
        f"# fn.{operator.name}\n",
        NOTE,
        markdown(documentation(operator)) + "\n",
        *([f"{PICTURE}\n"] if example and example.figure else []),
        "## Example\n",
        _example(operator, example),
        "## Inputs and outputs\n",
        _ports(operator),
        "## Arguments\n",
        *_tables(own),
        SHARED,
        "## Facts\n",
        _facts(operator),
    ]
    return "\n".join(sections)


def _example(operator: type[Operator], example: examples.Example | None) -> str:
    """Return the example; for an operator without one its test cases."""
    if example is None:
        calls = [operators.call(operator, case) for case in operator.cases or ({},)]
        return "These calls are what the tests run.\n\n```python\n" + "\n".join(calls) + "\n```\n"
    text = f"```python\n{example.code}```\n"
    if "eager." in example.code and f"fn.{operator.name}(" not in example.code:
        text += f"\nIn a pipeline the call is `fn.{operator.name}(...)`, with the same arguments and bits.\n"
    elif operator.inputs[1] and not operator.is_source:
        text += f"\nOn arrays the call is `eager.{operator.name}(...)`, with the same arguments and bits.\n"
    return text


def _ports(operator: type[Operator]) -> str:
    low, high = operator.inputs
    count = "none" if high == 0 else str(low) if low == high else f"{low} to {high}"
    names = ", ".join(f"`{p.name}`" for p in operators.inputs(operator))
    choice = operators.deciding(operator)
    outputs = f"{operators.outputs(operator) or 1}{f'; `{choice[0]}` decides' if choice else ''}"
    named = "".join(f"- `{name}`: {markdown(doc)}\n" for name, doc in operator.named_inputs.items())
    by_name = f"\nInputs by name:\n\n{named}" if named else ""
    outputs = "as the inputs by name" if named else outputs
    return f"- Inputs: {count}{f' ({names})' if names else ''}\n- Outputs: {outputs}\n{by_name}"


def _tables(arguments: dict[str, Argument]) -> list[str]:
    """Return the table of the arguments, and one of those that are accepted for compatibility."""
    rest = {name: a for name, a in arguments.items() if a.doc.startswith(_WITHOUT_EFFECT)}
    used = {name: a for name, a in arguments.items() if name not in rest}
    parts = [_table(used) if used else "It has no arguments of its own.\n"]
    return [*parts, "Accepted for compatibility with NVIDIA DALI:\n", _table(rest)] if rest else parts


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


def index() -> str:
    """Return the list of all operators, by family."""
    lines = ["# Operators\n", NOTE, INTRODUCTION]
    for family, members in operators.families().items():
        lines += [f"## {family}\n", "| operator | description |", "|---|---|"]
        lines += [f"| [`{op.name}`]({op.name}.md) | {_summary(op)} |" for op in members] + [""]
    lines += ["## Arguments that all share\n", _table(COMMON)]
    return "\n".join(lines)


def _summary(operator: type[Operator]) -> str:
    paragraph = markdown(documentation(operator)).split("\n\n")[0].replace("\n", " ")
    return paragraph.split(". ")[0].rstrip(".") + "."


def pages() -> dict[Path, str]:
    """Return all files of the folder."""
    found = operators.public()
    files = {FOLDER / f"{name}.md": page(operator) for name, operator in found.items()}
    return {**files, FOLDER / "index.md": index()}


def main() -> int:
    files = pages()
    return operators.write_or_check(files, "make generate", lambda: sorted(set(FOLDER.glob("*.md")) - set(files)))


if __name__ == "__main__":
    sys.exit(main())
