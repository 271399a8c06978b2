# SPDX-License-Identifier: Apache-2.0
"""Lists of files with arrays, and the arguments that name them, as DALI's readers of NumPy and FITS files have them."""

from __future__ import annotations

import fnmatch
import os
from collections.abc import Mapping
from typing import Any

from ..contract.errors import ArgumentError
from ..remote.addresses import folder_of
from ._containers import paths_of
from ._folders import Folder, open_folder
from ._listing import list_file


def check_names(args: Mapping[str, Any]) -> None:
    """Raise ArgumentError if the arguments do not name files in one way."""
    given = [name for name in ("files", "file_list") if args[name] is not None]
    if len(given) > 1:
        raise ArgumentError("expected one of `files` and `file_list`, got both")
    if not given and args["file_root"] is None:
        raise ArgumentError("expected `file_root`, `file_list` or `files`, got none of them")


def list_names(args: Mapping[str, Any]) -> tuple[Folder, list[str]]:
    """Return the folder of relative paths, and the paths, of ``file_root``, ``file_filter``, ``file_list``, ``files``.

    Raises:
        ArgumentError: there are no files.
    """
    root: str = args["file_root"] or ""
    if args["files"] is not None:
        return Folder(root), paths_of("files", args["files"], may_be_remote=True)
    if args["file_list"] is not None:
        with open(list_file(args["file_list"]), encoding="utf-8", errors="surrogateescape") as lines:
            names = [line.strip() for line in lines if line.strip()]
        if not names:
            raise ArgumentError(f"expected paths in {args['file_list']!r}, got none")
        return Folder(root or folder_of(args["file_list"])), names
    folder = open_folder("file_root", root)
    names = []
    for entry in folder.scan():
        if entry.is_dir():
            names += [os.path.join(entry.name, e.name) for e in folder.scan(entry.name) if not e.is_dir()]
        else:
            names.append(entry.name)
    names = sorted(n for n in names if fnmatch.fnmatchcase(os.path.basename(n), args["file_filter"]))
    if not names:
        raise ArgumentError(f"no file was found in {root!r} for `file_filter={args['file_filter']!r}`")
    return folder, names
