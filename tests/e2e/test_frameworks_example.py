# SPDX-License-Identifier: Apache-2.0
"""The example of one training in several frameworks, with PyTorch. `make test-jax` and others run it with theirs."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.frameworks.batches import check_same_training

pytest.importorskip("torch", exc_type=ModuleNotFoundError)


def test_the_same_training_as_in_numpy(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    check_same_training("torch", tmp_path, monkeypatch)
