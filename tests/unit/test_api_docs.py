# SPDX-License-Identifier: Apache-2.0
"""The docstrings of public callables describe every argument."""

from __future__ import annotations

import inspect
from collections.abc import Callable

import pytest

import api

pytest.importorskip("torch", exc_type=ModuleNotFoundError)


def test_docstrings_describe_every_argument() -> None:
    assert not list(api.faults())


def test_the_check_finds_public_callables() -> None:
    found = {name for name, _, _ in api.callables()}
    assert {
        "stoker.Pipeline",
        "stoker.Pipeline.run",
        "stoker.torch.Loader.state_dict",
        "stoker.frontends.eager.imread",
    } <= found


def _undocumented(x: int) -> None: ...


def _partly(x: int, y: int) -> None:
    """Do something.

    Args:
        x: a number.
    """


def _wrongly(x: int) -> None:
    """Do something.

    Args:
        x: a number.
        z: no argument.
    """


def _mentioned(x: int, *, y: int) -> None:
    """Do something with ``x``.

    Args:
        y: a number.
    """


@pytest.mark.parametrize(
    ("function", "fault"),
    [(_undocumented, "got none"), (_partly, "does not describe y"), (_wrongly, "describes z"), (_mentioned, "")],
)
def test_a_missing_argument_is_a_fault(
    function: Callable[..., None], fault: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(api, "callables", lambda: iter([("f", function, inspect.getdoc(function) or "")]))
    found = list(api.faults())
    assert len(found) == bool(fault)
    assert all(fault in text for text in found)
