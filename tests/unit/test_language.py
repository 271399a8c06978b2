# SPDX-License-Identifier: Apache-2.0
"""The language checks: each rule finds a violation and accepts correct text."""

from __future__ import annotations

import pytest

import language


@pytest.mark.parametrize("word", sorted(language.QUESTIONS))
def test_a_docstring_that_begins_with_a_question_word_is_found(word: str) -> None:
    source = f'"""Module."""\n\n\nclass A:\n    """{word} it is."""\n\n    def b(self):\n        """Return {word}."""\n'
    assert list(language.find_questions(source)) == [(5, f"{word} it is.")]


def joined(text: str) -> str:
    """Return `text` without the bars that keep this file free of the words."""
    return text.replace("|", "")


def test_words_with_a_standard_term_are_found() -> None:
    text = joined("No|body waits.\nBatches in flight.\nIt lets go| of so |many blocks.\n")
    assert [(line, word) for line, word, _ in language.find_words(text)] == [
        (1, joined("No|body")),
        (3, joined("lets go| of")),
        (3, joined("so |many")),
    ]


@pytest.mark.parametrize(
    "text",
    ["It is dealt| with.", "Outputs are held| against types.", "Run there| and then.", "Samples met| so far.",
     "A state is taken| up again.", "Men|ded rows.", "Mak|e a codec known under its name.", "Every| so often.",
     "Like|nesses of images.", "A tel|ler of files.", "Then they are made| real.", "Images that are looked| at early.",
     "A collation of| one's own.", "Batches in| stock.", "Batches that were fetched| ahead.", "To|ld by RANK.",
     "def test_progress_is_to|ld():", "unto|ld = nodes[0]", "Its state te|lls the rest.", "def te|ll_rest(self):",
     "Tel|ling them apart.", "Bytes be|hind a row.", "be|hind_ff = 1", "A block is given| back.", "def give|_back():",
     "A node that stands| for a file.", "The row falls| to Pillow.", "Floats from| there on.", "Changed since| then.",
     "Threads go on mean|while.", "The same as| before.", "Decoded an|ew.", "It returns at| once.", "Who|ever waits.",
     "Data that| are there.", "A block is given|\nback."],
)  # fmt: skip
def test_the_dialect_stays_out(text: str) -> None:
    assert len(list(language.find_words(joined(text)))) == 1


@pytest.mark.parametrize(
    "text",
    ["Handled.", "Compared with types.", "A recommended way.", "Amend the commit.", "at = file.tell()", "Intelligent.",
     "The standard form.", "Given backends.", "It falls back to Pillow.", "From the reader."],
)  # fmt: skip
def test_standard_words_pass(text: str) -> None:
    assert list(language.find_words(text)) == []


def test_terms_of_a_folder_apply_to_its_files_only() -> None:
    text = "Who waits?\nRows side by side, beside the batch.\n"
    for name, words in (
        ("src/stoker/native/run/engine.hpp", [(1, "Who"), (2, "beside"), (2, "side by side")]),
        ("src/stoker/executor/run.py", [(2, "beside")]),
        ("tests/run/test_errors.py", []),
    ):
        assert sorted((line, word) for line, word, _ in language.find_words(text, name)) == words


@pytest.mark.parametrize("name", ["CHANGELOG.md", "changes/names.changed.md"])
def test_lists_of_changes_may_quote_old_names_only(name: str) -> None:
    text = joined("`report().under|_way` is called\n`in_flight`; the rest is as| before.\n")
    assert [(line, word) for line, word, _ in language.find_words(text, name)] == [(2, joined("as| before"))]
    assert len(list(language.find_words(text, "docs/index.md"))) == 2


def test_the_tree_has_no_fault() -> None:
    assert list(language.find_faults()) == []
