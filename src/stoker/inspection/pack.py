# SPDX-License-Identifier: Apache-2.0
"""``stoker pack``: writes the files of a folder into shards of containers."""

from __future__ import annotations

import argparse
import hashlib
import json
import os
import sys
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from ..contract.errors import ArgumentError, StokerError
from ..contract.text import printable
from .progress import progress_bar
from .shard_files import WRITERS, Sample, mds_index, read_shard

_OVERHEAD = 600  # about, bytes of a record without its file


@dataclass(frozen=True)
class Shard:
    """Shard to write: its file, and the files in it."""

    path: Path
    samples: tuple[Sample, ...]


def parser() -> argparse.ArgumentParser:
    """Return the command's parser."""
    found = argparse.ArgumentParser(
        prog="stoker pack",
        description="Write the files of a folder into shards: tar (WebDataset), tfrecord, rec (MXNet) or mds.",
    )
    found.add_argument("folder", type=Path, metavar="FOLDER", help="the files; each sub-folder is a class")
    found.add_argument("out", type=Path, metavar="OUT", help="out.tar, out.tfrecord, out.rec or out.mds")
    found.add_argument("--shard-size", type=int, default=1024, metavar="MIB", help="largest size of a shard; 0: any")
    found.add_argument("--extensions", nargs="+", metavar=".EXT", help="take only files with these extensions")
    found.add_argument("--no-verify", action="store_true", help="do not read the shards back")
    return found


def find_samples(folder: Path, extensions: Sequence[str] | None) -> tuple[list[Sample], list[int]]:
    """Return the files of a folder in the order of their paths, and their sizes. Hidden files are left out.

    Raises:
        ArgumentError: there are none.
        OSError: the folder cannot be read.
    """
    names: list[str] = []
    for parent, folders, files in os.walk(folder, onerror=_raise):
        folders[:] = sorted(f for f in folders if not f.startswith("."))
        below = os.path.relpath(parent, folder)
        names += [f if below == "." else f"{below}/{f}".replace(os.sep, "/") for f in files if not f.startswith(".")]
    wanted = None if extensions is None else {e.lower() for e in extensions}
    names = sorted(n for n in names if wanted is None or os.path.splitext(n)[1].lower() in wanted)
    if not names:
        raise ArgumentError(f"expected files in '{printable(str(folder))}', got none")
    classes = {name: number for number, name in enumerate(sorted({n.rpartition("/")[0] for n in names}))}
    samples = [Sample(n, classes[n.rpartition("/")[0]], i) for i, n in enumerate(names)]
    return samples, [os.path.getsize(folder / n) for n in names]


def _raise(error: OSError) -> None:
    raise error


def divide(out: Path, kind: str, samples: Sequence[Sample], sizes: Sequence[int], limit_bytes: int) -> list[Shard]:
    """Return the shards: files in order, as many as fit."""
    groups: list[list[Sample]] = [[]]
    used = 0
    for sample, size in zip(samples, sizes, strict=True):
        if groups[-1] and limit_bytes and used + size + _OVERHEAD > limit_bytes:
            groups.append([])
            used = 0
        groups[-1].append(sample)
        used += size + _OVERHEAD
    if kind == "mds":
        paths = [out / f"shard.{i:05}.mds" for i in range(len(groups))]
    elif len(groups) == 1:
        paths = [out]
    else:
        paths = [out.with_name(f"{out.stem}-{i:05}{out.suffix}") for i in range(len(groups))]
    return [Shard(path, tuple(group)) for path, group in zip(paths, groups, strict=True)]


def pack(folder: Path, out: Path, *, limit_bytes: int, extensions: Sequence[str] | None, verify: bool) -> list[Path]:
    """Write the shards and return their paths. Complete shards of an interrupted run are kept.

    Raises:
        ArgumentError: the format is unknown, there are no files, or another data set is at ``out``.
        OSError: a file cannot be read or written.
    """
    kind = out.suffix[1:]
    if kind not in WRITERS:
        raise ArgumentError(
            f"expected a name that ends with .{', .'.join(WRITERS)} for the shards, got '{printable(str(out))}'"
        )
    samples, sizes = find_samples(folder, extensions)
    shards = divide(out, kind, samples, sizes, limit_bytes)
    digest = hashlib.blake2b(digest_size=16)
    for sample, size in zip(samples, sizes, strict=True):
        digest.update(f"{sample.name}\0{size}\0{os.stat(folder / sample.name).st_mtime_ns}\0".encode(errors="replace"))
    digest.update(f"{kind} {limit_bytes}".encode())
    (out if kind == "mds" else out.parent).mkdir(parents=True, exist_ok=True)
    journal = out.with_name(f".{out.name}.pack")
    done = _begin(journal, digest.hexdigest(), shards)
    with progress_bar(len(samples), "packing", "files") as bar:
        for shard in shards:
            if shard.path.name not in done:
                _write(folder, shard, kind, verify)
                done[shard.path.name] = shard.path.stat().st_size
                _replace(journal, json.dumps({"digest": digest.hexdigest(), "shards": done}))
            bar.update(len(shard.samples))
    _write_sidecars(out, kind, shards)
    journal.unlink()
    return [shard.path for shard in shards]


def _begin(journal: Path, digest: str, shards: Sequence[Shard]) -> dict[str, int]:
    """Return the complete shards of an interrupted run, with their sizes."""
    try:
        found = json.loads(journal.read_text())
        done = {str(name): int(size) for name, size in found["shards"].items()} if found["digest"] == digest else None
    except (FileNotFoundError, ValueError, KeyError, TypeError, AttributeError):
        done = None
    sizes = {s.path.name: s.path.stat().st_size for s in shards if s.path.exists()}
    if done is None and sizes:
        raise ArgumentError(
            f"expected no shards yet, got '{printable(str(shards[0].path.parent / next(iter(sizes))))}', which belongs "
            "to other files or is complete: delete it, or choose another name"
        )
    return {name: size for name, size in (done or {}).items() if sizes.get(name) == size}


def _write(folder: Path, shard: Shard, kind: str, verify: bool) -> None:
    """Write a shard under a temporary name, compare it with the files, and rename it."""
    part = shard.path.with_name(f".{shard.path.name}.part")
    digests = []
    try:
        with open(part, "wb") as file:
            writer = WRITERS[kind](file)
            for sample in shard.samples:
                content = (folder / sample.name).read_bytes()
                digests.append(hashlib.blake2b(content, digest_size=16).digest())
                writer.add(sample, content)
            writer.finish()
            file.flush()
            os.fsync(file.fileno())
        if verify:
            _compare(part, shard, kind, digests)
        os.replace(part, shard.path)
    finally:
        part.unlink(missing_ok=True)


def _compare(part: Path, shard: Shard, kind: str, digests: Sequence[bytes]) -> None:
    names = {sample.number: sample.name for sample in shard.samples}
    found = [(name, hashlib.blake2b(content, digest_size=16).digest()) for name, content in
             read_shard(part, kind, names)]  # fmt: skip
    if found != list(zip((s.name for s in shard.samples), digests, strict=True)):
        raise OSError(f"'{printable(str(shard.path))}' does not contain what was written: is the disk damaged?")


def _write_sidecars(out: Path, kind: str, shards: Sequence[Shard]) -> None:
    if kind == "mds":
        rows = [(s.path.name, len(s.samples), s.path.stat().st_size) for s in shards]
        _replace(out / "index.json", mds_index(rows))
    if kind == "rec":  # records have no names; MXNet keeps them in lists too
        for shard in shards:
            lines = [f"{s.number}\t{s.label}\t{s.name}\n" for s in shard.samples]
            _replace(shard.path.with_suffix(".lst"), "".join(lines))


def _replace(path: Path, text: str) -> None:
    part = path.with_name(f".{path.name}.part")
    part.write_text(text, encoding="utf-8", errors="surrogateescape")
    os.replace(part, path)


def main(argv: list[str] | None = None) -> int:
    """Run the command and return its exit status."""
    args = parser().parse_args(argv)
    try:
        paths = pack(args.folder, args.out, limit_bytes=args.shard_size << 20, extensions=args.extensions,
                     verify=not args.no_verify)  # fmt: skip
    except (StokerError, OSError) as error:
        print(f"stoker pack: {printable(str(error))}", file=sys.stderr)
        return 2 if isinstance(error, ArgumentError) else 1
    size = sum(path.stat().st_size for path in paths)
    print(f"{len(paths)} shard{'s' if len(paths) > 1 else ''}, {size} bytes, the first is {printable(str(paths[0]))}")
    return 0
