# SPDX-License-Identifier: Apache-2.0
"""Fixtures of the native tests."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from stoker.native import _native


@pytest.fixture(params=_native.instruction_sets())
def isa(request: pytest.FixtureRequest) -> Iterator[str]:
    """Yield every instruction set of this machine in turn."""
    before = _native.get_isa()
    _native.set_isa(request.param)
    yield request.param
    _native.set_isa(before)


@pytest.fixture
def no_tables() -> Iterator[None]:
    """Run programs of one byte directly, not as a table."""
    _native.pixel_set_tables(False)
    yield
    _native.pixel_set_tables(True)
