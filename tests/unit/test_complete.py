# SPDX-License-Identifier: Apache-2.0
"""Samples of cases: spread evenly, with both ends, and all of them in a complete run."""

from __future__ import annotations

import pytest

from tests import complete


@pytest.mark.parametrize(
    ("count", "want"), [(2, [0, 9]), (3, [0, 4, 9]), (4, [0, 3, 6, 9]), (10, [*range(10)]), (20, [*range(10)])]
)
def test_a_sample_has_both_ends(count: int, want: list[int], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(complete, "COMPLETE", False)
    assert complete.sample(range(10), count) == want
    monkeypatch.setattr(complete, "COMPLETE", True)
    assert complete.sample(range(10), count) == [*range(10)]
