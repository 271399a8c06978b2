# SPDX-License-Identifier: Apache-2.0
"""Folders whose content Stoker trusts as its own: compiled kernels, and the JPEG index of a GPU.

Stoker runs code and returns pixels from these folders. So a folder must belong to the user who runs the process, and no
other user may write to it.
"""

from __future__ import annotations

import os
import stat
from pathlib import Path

_WRITABLE_BY_OTHERS = stat.S_IWGRP | stat.S_IWOTH


def make_private_folder(folder: Path) -> None:
    """Create a folder that only its owner may use, whatever the umask, or accept an existing one.

    Raises:
        PermissionError: the folder is another user's, or other users may write to it.
        OSError: it cannot be created.
    """
    folder.parent.mkdir(parents=True, exist_ok=True)
    try:
        folder.mkdir(mode=0o700)
    except FileExistsError:
        require_private_folder(folder)
        return
    folder.chmod(0o700)  # a umask may have taken the owner's rights as well


def require_private_folder(folder: Path) -> None:
    """Raise PermissionError if a folder is another user's or other users may write to it.

    A folder that does not exist is accepted, and so is every folder on a system without users.
    """
    if not hasattr(os, "geteuid"):
        return
    try:
        status = folder.stat()
    except (FileNotFoundError, NotADirectoryError):
        return
    own = os.geteuid()
    if status.st_uid != own:
        raise PermissionError(
            f"expected a folder of the user who runs this process (number {own}), got '{folder}' of user "
            f"{status.st_uid}: Stoker would run or use files that others put there"
        )
    if stat.S_IMODE(status.st_mode) & _WRITABLE_BY_OTHERS:
        raise PermissionError(
            f"expected a folder that its owner alone may write to, got '{folder}' with mode "
            f"{stat.S_IMODE(status.st_mode):03o}: `chmod go-w '{folder}'`"
        )
