# SPDX-License-Identifier: Apache-2.0
"""The rank of a process, from the environment of its launcher."""

from __future__ import annotations

import pytest

from stoker import ArgumentError, Launch


def test_without_a_launcher_there_is_one_process() -> None:
    assert Launch.from_environment({}) == Launch(0, 1, 0)
    assert Launch.from_environment({"RANK": "", "HOME": "x"}) == Launch()


def test_the_environment_of_torchrun(monkeypatch: pytest.MonkeyPatch) -> None:
    for name, value in (("RANK", "5"), ("WORLD_SIZE", "8"), ("LOCAL_RANK", "1")):
        monkeypatch.setenv(name, value)
    assert Launch.from_environment() == Launch(5, 8, 1)


@pytest.mark.parametrize(
    ("environment", "text"),
    [
        ({"RANK": "1"}, "or none of them, got {'RANK': '1'}"),
        ({"RANK": "1", "WORLD_SIZE": "two", "LOCAL_RANK": "0"}, "expected numbers"),
        ({"RANK": "2", "WORLD_SIZE": "2", "LOCAL_RANK": "0"}, "from 0 to WORLD_SIZE - 1"),
        ({"RANK": "-1", "WORLD_SIZE": "2", "LOCAL_RANK": "0"}, "from 0 to WORLD_SIZE - 1"),
        ({"RANK": "0", "WORLD_SIZE": "2", "LOCAL_RANK": "3"}, "from 0 to WORLD_SIZE - 1"),
    ],
)
def test_contradictory_environments_are_refused(environment: dict[str, str], text: str) -> None:
    with pytest.raises(ArgumentError, match=text):
        Launch.from_environment(environment)
