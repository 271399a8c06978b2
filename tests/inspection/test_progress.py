# SPDX-License-Identifier: Apache-2.0
"""The plain progress bar: redraws on a terminal, one line elsewhere."""

from __future__ import annotations

import io

from stoker.inspection.progress import PlainBar


class Terminal(io.StringIO):
    def isatty(self) -> bool:
        return True


def test_elsewhere_only_the_end_is_printed() -> None:
    stream = io.StringIO()
    with PlainBar(4, "training", "images", stream) as bar:
        for _ in range(4):
            bar.update()
    assert stream.getvalue().count("\n") == 1
    assert "4/4" in stream.getvalue()
    assert "#" * PlainBar.WIDTH in stream.getvalue()


def test_a_terminal_sees_it_grow() -> None:
    stream = Terminal()
    bar = PlainBar(10, "training", "images", stream)
    bar.INTERVAL_S = 0.0
    with bar:
        bar.update(5)
        assert stream.getvalue().startswith("\r")
        assert "5/10" in stream.getvalue()
        assert "\n" not in stream.getvalue()
    assert stream.getvalue().endswith("\n")


def test_nothing_to_do_is_no_division_by_zero() -> None:
    stream = io.StringIO()
    with PlainBar(0, "files", "files", stream):
        pass
    assert "0/0" in stream.getvalue()
