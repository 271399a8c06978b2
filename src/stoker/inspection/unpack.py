# SPDX-License-Identifier: Apache-2.0
"""``stoker unpack``: writes the samples of containers into a folder, as files."""

from __future__ import annotations

import argparse
import os
import sys
from collections.abc import Sequence
from pathlib import Path, PurePosixPath

from ..contract.errors import ArgumentError, StokerError
from ..contract.text import printable
from .progress import progress_bar
from .shard_files import WRITERS, read_shard

_KINDS = (*WRITERS, "zip")


def parser() -> argparse.ArgumentParser:
    """Return the command's parser."""
    found = argparse.ArgumentParser(
        prog="stoker unpack",
        description="Write the samples of containers into a folder: tar, zip, and what `stoker pack` writes.",
    )
    found.add_argument("files", nargs="+", type=Path, metavar="FILE", help="shards, or a folder with shards of mds")
    found.add_argument("--to", type=Path, required=True, metavar="FOLDER", help="folder for the files")
    return found


def unpack(files: Sequence[Path], folder: Path) -> int:
    """Write the files of shards and return their number. Files that are there with equal contents are kept.

    Raises:
        ArgumentError: a shard is damaged, or a name leads out of the folder.
        OSError: a file cannot be read or written.
    """
    shards = [shard for file in files for shard in (sorted(file.glob("*.mds")) if file.is_dir() else [file])]
    count = 0
    with progress_bar(len(shards), "unpacking", "shards") as bar:
        for shard in shards:
            kind = shard.suffix[1:]
            if kind not in _KINDS:
                raise ArgumentError(
                    f"expected a file that ends with .{', .'.join(_KINDS)}, got '{printable(str(shard))}'"
                )
            for name, content in read_shard(shard, kind, _names(shard) if kind == "rec" else None):
                _write(folder, name, content)
                count += 1
            bar.update()
    return count


def _names(shard: Path) -> dict[int, str]:
    """Return the names in the list next to a file of records; none if there is no list."""
    path = shard.with_suffix(".lst")
    if not path.exists():
        return {}
    lines = path.read_text(encoding="utf-8", errors="surrogateescape").splitlines()
    parts = [line.split("\t") for line in lines if line.strip()]
    try:
        return {int(p[0]): p[-1] for p in parts}
    except ValueError:
        raise ArgumentError(f"expected \"number label path\" in every line of '{printable(str(path))}'") from None


def _write(folder: Path, name: str, content: bytes) -> None:
    parts = PurePosixPath(name).parts
    if not parts or name.startswith("/") or any(p in ("..", ".") or "\0" in p or os.sep in p for p in parts):
        raise ArgumentError(f"expected names of files below the folder, got '{printable(name)}'")
    path = folder.joinpath(*parts)
    if path.is_symlink() or any(p.is_symlink() for p in path.parents if folder in p.parents):
        raise ArgumentError(f"expected a folder without links, got '{printable(str(path))}'")
    if path.exists() and path.stat().st_size == len(content) and path.read_bytes() == content:
        return
    path.parent.mkdir(parents=True, exist_ok=True)
    part = path.with_name(f".{path.name}.part")
    try:
        part.write_bytes(content)
        os.replace(part, path)
    finally:
        part.unlink(missing_ok=True)


def main(argv: list[str] | None = None) -> int:
    """Run the command and return its exit status."""
    args = parser().parse_args(argv)
    try:
        count = unpack(args.files, args.to)
    except (StokerError, OSError) as error:
        print(f"stoker unpack: {printable(str(error))}", file=sys.stderr)
        return 2 if isinstance(error, ArgumentError) else 1
    print(f"{count} files in {printable(str(args.to))}")
    return 0
