# SPDX-License-Identifier: Apache-2.0
"""Folders of compiled kernels and of the JPEG index belong to their user alone."""

from __future__ import annotations

import os
import stat
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from stoker.codecs.jpeg.index_folder import IndexFolder
from stoker.contract.errors import ArgumentError
from stoker.contract.private_folder import make_private_folder, require_private_folder
from stoker.device import build_lock
from stoker.device import compile as compiling

CODE = b"machine code"


@pytest.fixture(params=[0, 0o077, 0o777], ids="umask {:03o}".format)
def umask(request: pytest.FixtureRequest) -> Iterator[int]:
    before = os.umask(request.param)
    yield request.param
    os.umask(before)


@pytest.fixture
def kernels(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The folder of compiled kernels, beside a compiler that gives `CODE`."""
    monkeypatch.setenv("STOKER_KERNEL_CACHE", str(tmp_path / "kernels"))
    monkeypatch.setattr(compiling, "compiler_version", lambda: (13, 0))
    monkeypatch.setattr(compiling, "_compile", lambda *_: CODE)
    return tmp_path / "kernels"


def mode_of(path: Path) -> int:
    return stat.S_IMODE(path.stat().st_mode)


def test_a_new_folder_is_accessible_to_its_owner_alone(tmp_path: Path, umask: int) -> None:
    folder = tmp_path / "own"
    make_private_folder(folder)
    assert mode_of(folder) == 0o700
    make_private_folder(folder)
    (folder / "file").write_text("")


def test_kernels_are_cached_in_such_a_folder(kernels: Path, umask: int) -> None:
    assert compiling.compile_kernels("source", 90) == CODE
    assert mode_of(kernels) == 0o700 and len(list(kernels.glob("*.cubin"))) == 1
    assert not any(mode_of(path) & 0o077 for path in kernels.iterdir())


@pytest.mark.parametrize("mode", [0o777, 0o770, 0o702, 0o1777])
def test_a_folder_that_others_may_write_to_is_refused(tmp_path: Path, mode: int) -> None:
    (tmp_path / "open").mkdir()
    (tmp_path / "open").chmod(mode)
    for check in (make_private_folder, require_private_folder):
        with pytest.raises(PermissionError, match="its owner alone may write to"):
            check(tmp_path / "open")
    with pytest.raises(ArgumentError, match="its owner alone may write to"):
        IndexFolder(tmp_path / "open", index=None, device=None)  # type: ignore[arg-type]


def test_a_folder_of_another_user_is_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "theirs").mkdir(mode=0o700)
    own = os.geteuid()
    monkeypatch.setattr(os, "geteuid", lambda: own + 1)
    for check in (make_private_folder, require_private_folder):
        with pytest.raises(PermissionError, match="the user who runs this process"):
            check(tmp_path / "theirs")
    require_private_folder(tmp_path / "missing")


def test_kernels_of_others_are_not_run(kernels: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    compiling.compile_kernels("source", 90)
    (cached,) = kernels.glob("*.cubin")
    monkeypatch.setattr(compiling, "_compile", lambda *_: b"compiled again")
    assert compiling.compile_kernels("source", 90) == CODE
    kernels.chmod(0o777)
    with pytest.warns(RuntimeWarning, match=r"neither read nor kept.*STOKER_KERNEL_CACHE"):
        assert compiling.compile_kernels("source", 90) == b"compiled again"
    assert cached.exists() and len(list(kernels.iterdir())) == 1


def test_a_lock_does_not_follow_a_link(tmp_path: Path) -> None:
    target: Any = tmp_path / "target"
    folder = tmp_path / "kernels"
    make_private_folder(folder)
    (folder / "name.lock").symlink_to(target)
    with build_lock.build_lock(folder / "name.cubin"):
        pass
    assert not target.exists()
