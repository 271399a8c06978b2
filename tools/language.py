#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Check the language of code and documents: ``tools/language.py --check``.

- A docstring begins with a verb (functions) or a noun phrase (classes, modules), never with a question word.
- Words that have a standard term are not used: the message names the term. ``docs/glossary.md`` has the project's own.
"""

from __future__ import annotations

import ast
import functools
import re
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
QUESTIONS = {"What", "Who", "Where", "Which", "How", "Why", "As", "If"}
# A literal that begins with such a word. Few files have one, and only those are parsed.
QUESTION = re.compile(rf"""['"](\\\n)?[\s,.:]*({"|".join(sorted(QUESTIONS))})\b""")
# A pattern for words, and the standard term.
TERMS = {
    r"\b(no|some|every)body\b": "no caller, the caller, all callers",
    r"\bwhat becomes of\b": "policy for, outcome of",
    r"\bwho asks for\b": "opt-in",
    r"\blets? go of\b": "release",
    r"\bunder[ _]way\b": "in flight",
    r"\bso many\b": "count, this many",
    r"\bby turns\b": "alternating, interleaved",
    r"\bwithout a seam\b": "seamlessly",
    r"\bhasten": "prioritize",
    r"\bthe net under\b": "safety net",
    r"\bkept what is\b": "cache",
    r"\bdealt with\b": "handled, processed",
    r"\b(held|holds?) against\b": "compare with, check against",
    r"\bthere and then\b": "immediately",
    r"\bmet so far\b": "found so far",
    r"\btaken up again\b": "resumed, continued",
    r"\bmend(s|ed|ing)?\b": "fix",
    r"\bmakes? .* known\b": "register",
    r"\bevery so often\b": "periodically, with the interval",
    r"\blikeness": "proxy",
    r"\btellers?\b": "holder of a file reference",
    r"\bmade real\b": "materialized",
    r"\blooked at early\b": "forced early",
    r"\bof one's own\b": "custom",
    r"\b(in[ _]stock|fetched[ _]ahead)\b": "prefetched",
    # Also parts of names. `file.tell()` is Python's.
    r"(?<![a-z])(un)?told(?![a-z])": "reported, known, from",
    r"(?<![a-z])(tells?(?!\()|telling)(?![a-z])": "reports, determines, distinguishes",
    r"(?<![a-z])behind(?![a-z])": "after, following, past the end",
    r"(?<![a-z])gi(ve|ves|ven|ving)[ _]back(?![a-z])": "release",
    r"\b(stands?|standing) for\b": "proxy for, represents",
    r"\bfalls? to\b": "falls back to",
    r"\bfrom there\b": "from, with the place or the event",
    r"\b(since[ _]then|meanwhile|as[ _]before)\b": "the event, by name",
    r"\b(anew|at once)\b": "again, immediately, together",
    r"\bwhoever\b": "every user who, the thread that",
    r"\bdata that are there\b": "arrays, existing data",
}
# More patterns for the files of folders.
FOLDER_TERMS = {
    ("src/stoker/native/",): {
        r"\bwho\b": "the thread, the caller, the reader",
        r"\bside by side\b": "contiguous, interleaved",
    },
    ("src/", "benchmarks/", "changes/", "docs/", "fuzz/", "tools/"): {
        r"(?<![a-z])besides?(?![a-z])": "with, next to, in addition to",
    },
}
SUFFIXES = (".py", ".pyi", ".cpp", ".hpp", ".ipp", ".cuh", ".cu", ".c", ".md", ".toml", ".sh", ".txt", ".yml", ".dict")
# Lists of changes contain old names, in backquotes. This file contains the words.
CHANGES = ("changes/", "CHANGELOG.md")
NOT_CHECKED = ("tools/language.py",)


def find_questions(source: str) -> Iterator[tuple[int, str]]:
    """Yield line and text of each docstring that begins with a question word."""
    if not QUESTION.search(source):
        return
    for node in ast.walk(ast.parse(source)):
        if isinstance(node, ast.Module | ast.ClassDef | ast.FunctionDef | ast.AsyncFunctionDef):
            text = (ast.get_docstring(node) or "").split("\n")[0]
            if text and text.split()[0].strip(",.:") in QUESTIONS:
                yield node.body[0].lineno, text


def find_words(text: str, name: str = "") -> Iterator[tuple[int, str, str]]:
    """Yield line, word and standard term of each word that has one, in the file `name`."""
    terms = dict(TERMS)
    for folders, more in FOLDER_TERMS.items():
        if name.startswith(folders):
            terms |= more
    if name.startswith(CHANGES):
        text = re.sub(r"`[^`\n]*`", lambda quoted: " " * len(quoted[0]), text)
    lower = text.lower()  # faster than a pattern without case: most patterns then begin with a literal
    for pattern, term in terms.items():
        if find_literal(pattern) not in lower:
            continue
        spaced = pattern.replace("[ _]", r"[\s_]+").replace(" ", r"\s+")  # a phrase may be on two lines
        for match in re.finditer(spaced, lower):
            yield text.count("\n", 0, match.start()) + 1, text[match.start() : match.end()], term


@functools.cache
def find_literal(pattern: str) -> str:
    """Return a word that each match of a pattern contains, or "": a search for a plain text is much faster."""
    plain = re.sub(r"\([^()]*\)[?*]?|\[[^]]*\][?*]?|\\.|.[?*]", " ", pattern)
    return "" if re.search("[|()]", plain) else max(plain.split(), key=len, default="")


def find_faults() -> Iterator[str]:
    """Yield a message for each fault in the files that git knows."""
    done = subprocess.run(["git", "ls-files"], cwd=ROOT, capture_output=True, text=True, check=True)
    for name in done.stdout.splitlines():
        path = ROOT / name
        if path.suffix not in SUFFIXES or name in NOT_CHECKED or not path.is_file():
            continue
        text = path.read_text(encoding="utf-8")
        if path.suffix == ".py":
            for line, first in find_questions(text):
                yield f"{name}:{line}: a docstring begins with a question word: {first}"
        for line, word, term in find_words(text, name):
            yield f"{name}:{line}: '{word}': say {term}"


def main() -> int:
    faults = list(find_faults())
    print("\n".join(faults), end="\n" if faults else "", file=sys.stderr)
    return 1 if faults else 0


if __name__ == "__main__":
    sys.exit(main())
