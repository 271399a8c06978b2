# SPDX-License-Identifier: Apache-2.0
"""The rank of a process, from the environment of its launcher."""

from __future__ import annotations

import sys
from types import SimpleNamespace

import pytest

from stoker import ArgumentError, Launch

# The variables that Lightning sets in processes that it starts itself
LIGHTNING = {"LOCAL_RANK": "1", "NODE_RANK": "0", "WORLD_SIZE": "2"}


def set_group(monkeypatch: pytest.MonkeyPatch, rank: int, world_size: int, *, is_initialized: bool = True) -> None:
    """Replace torch.distributed by a module with a process group."""
    group = SimpleNamespace(
        is_initialized=lambda: is_initialized, get_rank=lambda: rank, get_world_size=lambda: world_size
    )
    monkeypatch.setitem(sys.modules, "torch.distributed", group)


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
        ({"WORLD_SIZE": "2", "LOCAL_RANK": "0"}, "or none of them, got {'WORLD_SIZE': '2', 'LOCAL_RANK': '0'}"),
        (LIGHTNING | {"WORLD_SIZE": ""}, "or none of them, got {'LOCAL_RANK': '1'}"),
        (LIGHTNING | {"NODE_RANK": "1", "WORLD_SIZE": "4"}, "other than the first one, got .*train_dataloader"),
        (LIGHTNING | {"NODE_RANK": "first"}, "expected numbers"),
        (LIGHTNING | {"LOCAL_RANK": "2"}, "from 0 to WORLD_SIZE - 1"),
    ],
)
def test_contradictory_environments_are_refused(environment: dict[str, str], text: str) -> None:
    with pytest.raises(ArgumentError, match=text):
        Launch.from_environment(environment)


def test_the_environment_of_lightning() -> None:
    assert Launch.from_environment(LIGHTNING) == Launch(1, 2, 1)
    assert Launch.from_environment(LIGHTNING | {"RANK": "3", "WORLD_SIZE": "4", "NODE_RANK": "1"}) == Launch(3, 4, 1)
    assert Launch.from_environment({"NODE_RANK": "1"}) == Launch(), "which users set before they start Lightning"


def test_the_process_group_of_torch(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("RANK", "WORLD_SIZE", "LOCAL_RANK", "NODE_RANK"):
        monkeypatch.delenv(name, raising=False)
    set_group(monkeypatch, 3, 4)
    assert Launch.from_environment() == Launch(3, 4, 0)
    for name, value in (LIGHTNING | {"NODE_RANK": "1", "WORLD_SIZE": "4"}).items():
        monkeypatch.setenv(name, value)
    assert Launch.from_environment() == Launch(3, 4, 1)
    assert Launch.from_environment({}) == Launch(), "other variables than those of the process"
    monkeypatch.setenv("RANK", "2")
    with pytest.raises(ArgumentError, match=r"expected the environment of rank 3 of 4, .*got {'RANK': '2'"):
        Launch.from_environment()
    set_group(monkeypatch, 2, 8)
    with pytest.raises(ArgumentError, match=r"expected the environment of rank 2 of 8, .*'WORLD_SIZE': '4'"):
        Launch.from_environment()
    set_group(monkeypatch, 3, 8, is_initialized=False)
    assert Launch.from_environment() == Launch(2, 4, 1)
    monkeypatch.setitem(sys.modules, "torch.distributed", SimpleNamespace())
    assert Launch.from_environment() == Launch(2, 4, 1)
