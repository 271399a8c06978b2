# SPDX-License-Identifier: Apache-2.0
"""The page about coverage says what is so."""

from __future__ import annotations

from tests.takeover import table


def test_the_page_is_what_the_transforms_give() -> None:
    text = table.page()
    assert "| differs" not in text
    if table.RELEASE in text:  # another release has other transforms, and its page is not kept
        assert table.PAGE.read_text(encoding="utf-8") == text, "run `.venv/bin/python -m tests.takeover.table`"


def test_a_difference_would_be_seen() -> None:
    class Careless:
        calls = 0

        def __call__(self, image: object) -> object:
            self.calls += 1
            return image.point(lambda v: min(v + (self.calls > 5), 255))  # type: ignore[attr-defined]

    assert table.cell(lambda library: Careless(), None) == "differs by 1"
