# SPDX-License-Identifier: Apache-2.0
"""``readers.file``: files of a folder, a list file or a given list, with integer labels."""

from __future__ import annotations

import fnmatch
import hashlib
import os
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from ..contract.errors import ArgumentError
from ..contract.lowering import Lowering
from ..contract.operator import Operator, arg
from ..contract.reader import OpenSource
from ..contract.step import Value
from ..contract.types import DType
from ..native import _native
from .order import Ordered

IMAGES = (
    "*.jpg", "*.jpeg", "*.png", "*.bmp", "*.tif", "*.tiff", "*.pnm", "*.ppm", "*.pgm", "*.pbm", "*.jp2", "*.webp",
    "*.gif", "*.flac", "*.ogg", "*.wav",
)  # fmt: skip


class FileReader(Operator, name="readers.file"):
    """Read whole files. Outputs: the bytes, uint8 ``(N,)``, and the label, int32 ``(1,)``.

    Without ``files`` or ``file_list``, every sub-folder of ``file_root`` is a class; classes are numbered in
    lexicographic order, and files come in lexicographic order within their class, as in DALI.
    """

    inputs = (0, 0)
    outputs = 2
    kind = "source"
    # Which files there are is told by the data set's own fingerprint.
    incidental = (
        "file_root", "file_list", "files", "labels", "file_filters", "dir_filters", "case_sensitive_filter",
        "num_shards", "shard_id", "stick_to_shard", "pad_last_batch", "initial_fill", "prefetch_queue_depth",
        "read_ahead", "skip_cached_images", "dont_use_mmap", "lazy_init", "tensor_init_bytes",
    )  # fmt: skip
    file_root = arg("str", None, doc="Folder with one sub-folder per class; the base of relative paths otherwise.")
    file_list = arg("str", None, doc='Text file with one "path label" per line.')
    files = arg("object", None, doc="Paths, absolute or relative to file_root.")
    labels = arg("object", None, doc="One integer per path of `files`; the index of the path if not given.")
    file_filters = arg("object", None, doc="Patterns of the names to take; by default the usual image and audio ones.")
    dir_filters = arg("object", None, doc="Patterns of the class folders to take; by default all.")
    case_sensitive_filter = arg("bool", False, doc="Whether the patterns tell upper from lower case.")
    random_shuffle = arg("bool", False, doc="Another order every epoch: a permutation of the whole data set.")
    shuffle_after_epoch = arg("bool", False, doc="As random_shuffle, but the first epoch is in order.")
    seed = arg("int", None, doc="Seed of the order; by default the pipeline's.")
    num_shards = arg("int", 1, doc="Into how many parts every epoch is divided.")
    shard_id = arg("int", 0, doc="Which part this pipeline takes: positions shard_id, shard_id + num_shards, ...")
    stick_to_shard = arg("bool", False, doc="Accepted: shards are strided over one global order.")
    pad_last_batch = arg("bool", False, doc="Told by reader_meta; shards are equally long in any case.")
    initial_fill = arg("int", 1024, doc="Accepted: a shuffle is over the whole data set, not over a buffer.")
    prefetch_queue_depth = arg("int", 1, doc="Accepted: the pipeline's prefetch_queue_depth holds.")
    read_ahead = arg("bool", False, doc="Accepted.")
    skip_cached_images = arg("bool", False, doc="Accepted.")
    dont_use_mmap = arg("bool", False, doc="Accepted: files are always read, never mapped.")
    lazy_init = arg("bool", False, doc="Accepted.")
    tensor_init_bytes = arg("int", 1048576, doc="Accepted.")

    @staticmethod
    def open(args: Mapping[str, Any]) -> OpenSource:
        """List the files. ArgumentError for contradictory arguments or an empty data set, OSError for the disk's."""
        names, labels = _list(args)
        shards, shard = args["num_shards"], args["shard_id"]
        if shards < 1 or not 0 <= shard < shards:
            raise ArgumentError(f"expected 0 <= shard_id < num_shards, got shard_id={shard} of num_shards={shards}")
        blob = [os.fsencode(n) for n in names]
        offsets = np.zeros(len(blob) + 1, np.uint64)
        np.cumsum([len(b) for b in blob], out=offsets[1:])
        joined = b"".join(blob)
        digest = hashlib.blake2b(digest_size=8)
        root = os.fsencode(_base(args))  # the folder may move
        digest.update(b"\0".join(b.removeprefix(root) for b in blob))
        digest.update(labels.tobytes())
        shuffle = args["random_shuffle"] or args["shuffle_after_epoch"]
        sampler = Ordered(len(names), shuffle, args["seed"], 1 if args["shuffle_after_epoch"] else 0)
        return OpenSource(
            sampler, _native.FileTable(joined, offsets.tolist()), labels, digest.hexdigest(), shard, shards,
            args["pad_last_batch"], args["stick_to_shard"],
        )  # fmt: skip

    def lower(self, c: Lowering) -> tuple[Value, Value]:
        reader, source = c.reader(), c.source
        data = c.opaque(DType.UINT8, 1)
        c.emit("read", [], [data], attrs=(source.storage, reader), allocates=True)
        label = c.native("lookup", [], [(DType.INT32, (1,), "")], attrs=(source.labels.tolist(), reader))[0]
        return data, label


def _list(args: Mapping[str, Any]) -> tuple[list[str], np.ndarray[Any, np.dtype[np.int32]]]:
    given = [k for k in ("files", "file_list") if args[k] is not None]
    if len(given) > 1:
        raise ArgumentError("expected one of `files` and `file_list`, got both")
    if args["labels"] is not None and args["files"] is None:
        raise ArgumentError("`labels` go with `files`, which are not given")
    if args["files"] is not None:
        names, labels = _given(args["files"], args["labels"], args["file_root"])
    elif args["file_list"] is not None:
        names, labels = _from_list(args["file_list"], _base(args))
    elif args["file_root"] is not None:
        names, labels = _walk(args)
    else:
        raise ArgumentError("expected `file_root`, `file_list` or `files`, got none of them")
    if not names:
        raise ArgumentError(f"no file was found{_where(args)}. Are the files in class sub-folders? Else give `files`")
    return names, np.asarray(labels, np.int32)


def _base(args: Mapping[str, Any]) -> str:
    """The folder that relative paths are taken from; "" for the current one."""
    root: str | None = args["file_root"]
    return os.path.dirname(args["file_list"]) if root is None and args["file_list"] is not None else root or ""


def _where(args: Mapping[str, Any]) -> str:
    return f" in {args['file_root']!r}" if args["file_root"] else ""


def _given(files: Any, labels: Any, root: str | None) -> tuple[list[str], Sequence[int]]:
    names = [os.path.join(root or "", os.fspath(f)) for f in files]
    if labels is None:
        return names, range(len(names))
    numbers = [int(x) for x in labels]
    if len(numbers) != len(names):
        raise ArgumentError(f"expected one label per file, got {len(numbers)} labels for {len(names)} files")
    return names, numbers


def _from_list(path: str, base: str) -> tuple[list[str], list[int]]:
    names, labels = [], []
    with open(path, encoding="utf-8") as lines:
        for number, line in enumerate(lines, 1):
            if not line.strip():
                continue
            name, _, label = line.strip().rpartition(" ")
            if not name or not label.lstrip("-").isdigit():
                raise ArgumentError(f'expected "path label" in line {number} of {path!r}, got {line.strip()!r}')
            names.append(os.path.join(base, name.strip()))
            labels.append(int(label))
    return names, labels


def _walk(args: Mapping[str, Any]) -> tuple[list[str], list[int]]:
    fold = (lambda s: s) if args["case_sensitive_filter"] else str.lower
    patterns = [fold(p) for p in _patterns(args["file_filters"], IMAGES)]
    folders = [fold(p) for p in _patterns(args["dir_filters"], ("*",))]
    names: list[str] = []
    labels: list[int] = []
    with os.scandir(args["file_root"]) as entries:
        classes = sorted(e.name for e in entries if e.is_dir() and _matches(fold(e.name), folders))
    for label, name in enumerate(classes):
        folder = os.path.join(args["file_root"], name)
        with os.scandir(folder) as entries:
            files = sorted(e.name for e in entries if _matches(fold(e.name), patterns) and e.is_file())
        names += [f"{folder}{os.sep}{f}" for f in files]
        labels += [label] * len(files)
    return names, labels


def _patterns(given: Any, default: Sequence[str]) -> Sequence[str]:
    return default if given is None else [given] if isinstance(given, str) else list(given)


def _matches(name: str, patterns: Sequence[str]) -> bool:
    return any(fnmatch.fnmatchcase(name, p) for p in patterns)
