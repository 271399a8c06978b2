# SPDX-License-Identifier: Apache-2.0
"""``readers.nemo_asr``: speech with transcripts, listed in manifests of NVIDIA NeMo."""

from __future__ import annotations

import json
import math
import os
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from ..contract.argument import arg
from ..contract.columns import Column, DataSet
from ..contract.errors import ArgumentError
from ..contract.text import brief, printable
from ..remote.addresses import folder_of, is_remote, join
from ..remote.copies import local_copy
from ._audio import AudioColumn, AudioFiles, AudioReader, Decoding, RateColumn
from ._columns import Values, fingerprint, strings
from ._containers import paths_of
from ._folders import whole_files

_UNKNOWN = -1.0  # duration of an entry without one, as in DALI: `min_duration` leaves it out, `max_duration` keeps it


class NemoAsrReader(AudioReader, name="readers.nemo_asr"):
    """Read speech and transcripts by manifests of NVIDIA NeMo: text files with one JSON object per line. Outputs: the
    samples, ``(frames,)`` (or ``(frames, channels)`` without ``downmix``); the sampling rate of the file in Hz, float32
    without axes; the text, uint8 ``(N,)``; and with ``read_idxs`` the entry's number, int64 ``(1,)``.

    An entry has ``audio_filepath``, and optionally ``duration`` and ``offset`` in seconds (a part of the file, which
    ends with the file at the latest) and ``text``. Other keys are ignored. Lines that are no entry are left out, with a
    warning. Numbers of entries count those that are kept, from 0 in each manifest, as DALI's do; the rate is that of
    the file, also after resampling. Files are decoded as by `decoders.audio`; an offset means the nearest sample, in
    DALI the sample before.
    """

    outputs = 3
    positional = ("manifest_filepaths",)
    result_neutral = (
        *AudioReader.result_neutral, "manifest_filepaths", "base", "initial_fill", "prefetch_queue_depth", "read_ahead",
        "shuffle_after_epoch_seed", "skip_cached_images", "dont_use_mmap", "lazy_init", "tensor_init_bytes",
        "normalize_text",
    )  # fmt: skip
    manifest_filepaths = arg("object", doc="Manifest file or its address, or a list of them.")
    base = arg(
        "str", None, doc="Folder of relative paths; by default that of the manifest, as in NeMo. DALI's is the current "
        "folder.",
    )  # fmt: skip
    read_sample_rate = arg("bool", True, doc="Return the sampling rate.")
    read_text = arg("bool", True, doc="Return the text.")
    read_idxs = arg("bool", False, doc="Return the number of the entry.")
    min_duration = arg("float", 0.0, doc="Leave out entries with a shorter `duration` or none; 0: none of them.")
    max_duration = arg("float", 0.0, doc="Leave out entries with a longer `duration`; 0: none of them.")
    preroll = arg(
        "float", None, doc="Seconds to decode before an `offset` in Opus files; by default all that is before it, for "
        "exact samples (`decoders.audio`).",
    )  # fmt: skip
    shuffle_after_epoch_seed = arg("int", None, doc="No effect: `seed` decides the order of shuffled epochs.")
    initial_fill = arg("int", 1024, doc="No effect: a shuffle is over the whole data set, not over a buffer.")
    prefetch_queue_depth = arg("int", 1, doc="No effect: the pipeline's prefetch_queue_depth holds.")
    read_ahead = arg("bool", False, doc="No effect: rows are prefetched with their batches.")
    skip_cached_images = arg("bool", False, doc="No effect: there is no cache of decoded images.")
    dont_use_mmap = arg("bool", False, doc="No effect: files are always read, never mapped.")
    lazy_init = arg("bool", False, doc="No effect: manifests are read when the pipeline is built.")
    tensor_init_bytes = arg("int", 1048576, doc="No effect: memory is planned.")
    normalize_text = arg("bool", False, doc="No effect, as in DALI: texts are returned as the manifest has them.")

    def validate(self, args: Mapping[str, Any]) -> None:
        """Check everything that does not depend on the disk."""
        super().validate(args)
        paths_of("manifest_filepaths", args["manifest_filepaths"], may_be_remote=True)
        for name in ("min_duration", "max_duration"):
            if math.isnan(args[name]):
                raise ArgumentError(f"expected seconds as `{name}`, got nan")
        preroll = args["preroll"]
        if preroll is not None and not (math.isfinite(preroll) and preroll >= 0):
            raise ArgumentError(f"expected a `preroll` of at least 0 seconds, got {preroll}")

    def count_outputs(self, args: Mapping[str, Any]) -> int:
        return 1 + sum(bool(args[name]) for name in ("read_sample_rate", "read_text", "read_idxs"))

    @classmethod
    def dataset(cls, args: Mapping[str, Any]) -> DataSet:
        """Read the manifests.

        Raises:
            ArgumentError: a manifest is missing, or no entry is left.
            OSError: the operating system fails.
        """
        paths = paths_of("manifest_filepaths", args["manifest_filepaths"], may_be_remote=True)
        entries = _Entries()
        for path in paths:
            _read_manifest(path, args, entries)
        if not entries.names:
            text = f"expected entries in {len(paths)} manifests such as {printable(paths[0])!r}, got none"
            raise ArgumentError(f"{text}{f'; {entries.note}' if entries.note else ''}")
        offset, duration = np.asarray(entries.offset), np.asarray(entries.duration)
        in_part = bool((offset > 0).any() or (duration > 0).any())
        storage = whole_files(entries.names)
        files = AudioFiles(storage, offset, duration) if in_part else AudioFiles(storage)
        decoding = Decoding.of(args)
        columns: list[Column] = [AudioColumn(files, decoding)]
        if args["read_sample_rate"]:
            columns.append(RateColumn(files, decoding))
        if args["read_text"]:
            columns.append(strings("text", entries.text))
        if args["read_idxs"]:
            columns.append(Values("idx", np.asarray(entries.number, np.int64)[:, None]))
        decides = fingerprint("\0".join(entries.listed), offset, duration, "\0".join(entries.text))
        return DataSet(tuple(columns), decides, None, (entries.note,) if entries.note else ())


@dataclass
class _Entries:
    """Entries of all manifests."""

    names: list[str] = field(default_factory=list)
    listed: list[str] = field(default_factory=list)  # the names in the manifests
    offset: list[float] = field(default_factory=list)
    duration: list[float] = field(default_factory=list)
    text: list[str] = field(default_factory=list)
    number: list[int] = field(default_factory=list)
    left_out: int = 0
    first_left_out: str = ""

    @property
    def note(self) -> str:
        """Return a remark about lines that are no entries; "" if there are none."""
        if not self.left_out:
            return ""
        lines = "1 line is" if self.left_out == 1 else f"{self.left_out} lines are"
        return f"{lines} left out of the manifests: {self.first_left_out}"


def _read_manifest(path: str, args: Mapping[str, Any], entries: _Entries) -> None:
    """Add the entries of a manifest."""
    if not is_remote(path) and not os.path.isfile(path):
        raise ArgumentError(f"expected `manifest_filepaths` to be files, there is none at {path!r}")
    base = folder_of(path) if args["base"] is None else args["base"]
    least, most, kept = args["min_duration"], args["max_duration"], 0
    file = local_copy("manifest_filepaths", path)
    with open(file, encoding="utf-8", errors="surrogateescape") as lines:
        for number, line in enumerate(lines, 1):
            if not line.strip():
                continue
            try:
                name, offset, duration, text = _entry(line)
            except ValueError as error:
                entries.first_left_out = entries.first_left_out or f"line {number} of {printable(path)!r}: {error}"
                entries.left_out += 1
                continue
            if (least > 0 and duration < least) or (most > 0 and duration > most):
                continue
            if not kept and not is_remote(base) and not is_remote(name):
                _require_base(path, base, name, args["base"])
            entries.listed.append(name)
            entries.names.append(join(base, name))
            entries.offset.append(max(offset, 0.0))
            entries.duration.append(max(duration, 0.0))
            entries.text.append(text)
            entries.number.append(kept)
            kept += 1


def _require_base(manifest: str, base: str, name: str, given: str | None) -> None:
    """Refuse a manifest whose first file is missing in its folder, but exists relative to the current one.

    NeMo looks for it in both folders.
    """
    if given is None and not os.path.exists(os.path.join(base, name)) and os.path.exists(name):
        raise ArgumentError(
            f"expected files relative to the folder of the manifest {printable(manifest)!r}, got {printable(name)!r}, "
            'which is relative to the current folder: pass `base="."`'
        )


def _entry(line: str) -> tuple[str, float, float, str]:
    """Return path, offset, duration and text of a line; raise ValueError if it has no entry."""
    try:
        entry = json.loads(line)
    except (ValueError, RecursionError) as error:
        raise ValueError(f"expected a JSON object, got {brief(line.strip())} ({error})") from None
    if not isinstance(entry, dict):
        raise ValueError(f"expected a JSON object, got {brief(line.strip())}")
    name, text = entry.get("audio_filepath"), entry.get("text", "")
    if not isinstance(name, str) or not name or "\0" in name:
        raise ValueError(f"expected a path as `audio_filepath`, got {brief(name)}")
    if not isinstance(text, str):
        raise ValueError(f"expected a string as `text`, got {brief(text)}")
    return name, _seconds(entry, "offset", 0.0), _seconds(entry, "duration", _UNKNOWN), text


def _seconds(entry: Mapping[str, Any], key: str, default: float) -> float:
    value = entry.get(key, default)
    try:
        number = math.nan if isinstance(value, (bool, str)) else float(value)
    except (TypeError, ValueError, OverflowError):
        number = math.nan
    if not math.isfinite(number) or (key in entry and number < 0 and number != default):
        raise ValueError(f"expected seconds as `{key}`, got {brief(value)}")
    return number
