# SPDX-License-Identifier: Apache-2.0
"""``readers.audio``: decoded audio files of a folder, a list file or a given list, with labels or texts."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from ..contract.argument import arg
from ..contract.columns import Column, DataSet
from ..contract.errors import ArgumentError
from ..contract.text import brief
from ..remote.addresses import folder_of
from ._audio import EXTENSIONS, AudioColumn, AudioFiles, AudioReader, Decoding, RateColumn
from ._columns import fingerprint, strings
from ._containers import paths_of
from ._fetching import AsyncStorage
from ._folders import whole_files
from ._listing import list_file, list_files
from ._storages import FileStorage


class AudioFileReader(AudioReader, name="readers.audio"):
    """Read and decode audio files. Outputs: the samples, ``(frames,)`` (or ``(frames, channels)`` without ``downmix``);
    the sampling rate of the file in Hz, float32 without axes; and the label, int32 ``(1,)``, or the text, uint8
    ``(N,)``.

    Every sub-folder of ``file_root`` is a class, as in `readers.file`. A line of ``file_list`` is ``path label``, or
    with a tab ``path<tab>text``; all lines have the same form. ``texts`` go with ``files``. Files are decoded as by
    `decoders.audio`.
    """

    outputs = 3
    result_neutral = (
        *AudioReader.result_neutral, "file_root", "file_list", "files", "labels", "texts", "extensions", "file_filters",
        "dir_filters", "case_sensitive_filter",
    )  # fmt: skip
    file_root = arg("str", None, doc="Folder with one sub-folder per class; the base of relative paths otherwise.")
    file_list = arg("str", None, doc='Text file with one "path label" or "path<tab>text" per line.')
    files = arg("object", None, doc="Paths, absolute or relative to file_root.")
    labels = arg("object", None, doc="One integer per path of `files`; the index of the path if not given.")
    texts = arg("object", None, doc="One text per path of `files`, in place of `labels`.")
    extensions = arg(
        "object", None, doc="Extensions of the files to take, with their dot. By default " + ", ".join(EXTENSIONS) + "."
    )  # fmt: skip
    file_filters = arg("object", None, doc="Patterns of the names to take, in place of `extensions`.")
    dir_filters = arg("object", None, doc="Patterns of the class folders to take; by default all.")
    case_sensitive_filter = arg("bool", False, doc="Whether the patterns distinguish upper and lower case.")

    def validate(self, args: Mapping[str, Any]) -> None:
        """Check everything that does not depend on the disk."""
        super().validate(args)
        if args["extensions"] is not None and args["file_filters"] is not None:
            raise ArgumentError("expected one of `extensions` and `file_filters`, got both")
        given = args["extensions"]
        listed = given is None or isinstance(given, (list, tuple, set, frozenset))
        if not listed or not all(isinstance(x, str) and x[:1] in ("", ".") for x in given or ()):
            raise ArgumentError(f'expected `extensions` such as [".wav", ".flac"], got {brief(given)}')
        if args["texts"] is None:
            return
        if args["files"] is None or args["labels"] is not None:
            raise ArgumentError("expected `texts` with `files`, in place of `labels`")
        _texts(args)

    @classmethod
    def dataset(cls, args: Mapping[str, Any]) -> DataSet:
        """List the files.

        Raises:
            ArgumentError: the arguments contradict each other, or there are no files.
            OSError: the operating system fails.
        """
        root, names, texts = args["file_root"] or "", None, None
        if args["texts"] is not None:
            names, texts = paths_of("files", args["files"], may_be_remote=True), _texts(args)
        elif args["file_list"] is not None and args["files"] is None:
            names, texts = _texts_of_list(args["file_list"])
            root = root or folder_of(args["file_list"])
        if names is not None and texts is not None:
            label: Column = strings("text", texts)
            files = AudioFiles(whole_files(names, root))
            decides = fingerprint("\0".join(names), "\0".join(texts))
            return DataSet((*_columns(files, args), label), decides)
        extensions = args["extensions"]
        if extensions is None and args["file_filters"] is None:
            extensions = EXTENSIONS
        listed = list_files({**args, "extensions": extensions}).finish()
        storage, label = listed.columns[0].storage, listed.columns[1]
        assert isinstance(storage, (FileStorage, AsyncStorage))
        return DataSet((*_columns(AudioFiles(storage), args), label), listed.fingerprint, listed.label, listed.notes)


def _columns(files: AudioFiles, args: Mapping[str, Any]) -> tuple[Column, Column]:
    decoding = Decoding.of(args)
    return AudioColumn(files, decoding), RateColumn(files, decoding)


def _texts(args: Mapping[str, Any]) -> list[str]:
    """Return the texts of the given files."""
    texts, count = args["texts"], len(paths_of("files", args["files"], may_be_remote=True))
    if isinstance(texts, np.ndarray) and texts.shape == (count,):  # a view of an array may have 2**61 rows
        texts = texts.tolist()
    listed = isinstance(texts, (list, tuple))
    if not listed or len(texts) != count or not all(isinstance(text, str) for text in texts):
        raise ArgumentError(f"expected one text for each of {count} files as `texts`, got {brief(texts)}")
    return list(texts)


def _texts_of_list(path: str) -> tuple[list[str] | None, list[str] | None]:
    """Return paths and texts of a list file; None if its lines have labels."""
    names, texts, other = [], [], 0
    with open(list_file(path), encoding="utf-8", errors="surrogateescape") as lines:
        for number, line in enumerate(lines, 1):
            name, tab, text = line.rstrip("\r\n").partition("\t")
            if tab and name.strip():
                names.append(name.strip())
                texts.append(text)
            elif line.strip():
                other = other or number
    if names and other:
        raise ArgumentError(f"expected a tab after the path in line {other} of {path!r}, as other lines have")
    return (names, texts) if names else (None, None)
