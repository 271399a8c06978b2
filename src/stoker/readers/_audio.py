# SPDX-License-Identifier: Apache-2.0
"""Shared code of readers of audio files: columns of decoded samples and sampling rates, and their arguments."""

from __future__ import annotations

import importlib
import io
from abc import ABC
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np
import numpy.typing as npt

from .._import_lock import IMPORT_LOCK
from ..contract.argument import arg
from ..contract.columns import Column
from ..contract.errors import ArgumentError, UnsupportedError
from ..contract.lowering import Lowering
from ..contract.step import ALLOCATES, Value, ViewOp
from ..contract.storage import Bools
from ..contract.types import DType
from ..video.audio_track import audio_container, audio_track, read_audio
from ..video.samples import converted
from ._fetching import AsyncStorage
from ._sampled import SampledReader
from ._storages import FileStorage

EXTENSIONS = (
    ".wav",
    ".flac",
    ".ogg",
    ".opus",
    ".mp3",
    ".aif",
    ".aiff",
    ".au",
    ".caf",
    ".w64",
    ".m4a",
    ".m4b",
    ".aac",
    ".mka",
    ".wma",
    ".wv",
)
_TYPES = (DType.FLOAT, DType.INT16, DType.INT32)


class AudioReader(SampledReader, ABC):
    """Base class of readers that decode audio files."""

    result_neutral: ClassVar[tuple[str, ...]] = SampledReader.result_neutral
    sample_rate = arg("float", None, doc="Resample to this rate in Hz; by default each file keeps its own.")
    quality = arg("float", 50.0, doc="Quality of resampling, 0 to 100 (`audio_resample`).")
    filter = arg("str", "exact", choices=("exact", "dali"), doc="Filter of resampling (`audio_resample`).")
    downmix = arg("bool", True, doc="Return the mean over the channels, without their axis.")
    dtype = arg("dtype", DType.FLOAT, doc="Element type of the samples: FLOAT, INT16 or INT32.")

    def validate(self, args: Mapping[str, Any]) -> None:
        """Check everything that does not depend on the disk."""
        super().validate(args)
        rate = args["sample_rate"]
        if rate is not None and rate != -1 and not (np.isfinite(rate) and rate >= 0):
            raise ArgumentError(f"expected a positive `sample_rate` in Hz, or 0 or -1 to keep it, got {rate:g}")
        if not 0 <= args["quality"] <= 100:
            raise ArgumentError(f"expected `quality` from 0 to 100, got {args['quality']:g}")
        if DType(args["dtype"]) not in _TYPES:
            raise ArgumentError(f"expected `dtype` FLOAT, INT16 or INT32, got {args['dtype']}")


@dataclass(frozen=True)
class Decoding:
    """Arguments of the decoder that are the same for all files."""

    downmix: bool
    dtype: DType
    sample_rate: float  # 0: the file's
    quality: float
    filter: str
    preroll: float | None = None

    @classmethod
    def of(cls, args: Mapping[str, Any]) -> Decoding:
        """Return the decoding that a reader's arguments describe."""
        rate = max(args["sample_rate"] or 0.0, 0.0)
        return cls(args["downmix"], DType(args["dtype"]), rate, args["quality"], args["filter"], args.get("preroll"))


class AudioFiles:
    """Audio files, and the range of each that a sample consists of.

    Args:
        storage: the files, or whole objects.
        offset: first second per sample; None: the beginning.
        duration: seconds per sample, 0: to the end; given with ``offset``.
    """

    def __init__(
        self,
        storage: FileStorage | AsyncStorage,
        offset: npt.NDArray[np.float64] | None = None,
        duration: npt.NDArray[np.float64] | None = None,
    ) -> None:
        self.storage, self.offset, self.duration = storage, offset, duration
        if isinstance(storage, FileStorage):
            storage.is_read_in_parts = offset is not None

    def range_of(self, index: int) -> tuple[float, float]:
        """Return the first second and the number of seconds of a sample."""
        if self.offset is None or self.duration is None:
            return 0.0, 0.0
        return float(self.offset[index]), float(self.duration[index])

    def decode(self, c: Lowering, reader: int, **arguments: Any) -> tuple[Value, Value]:
        """Build the steps that decode a row's file, and return its samples and its rate."""
        if self.offset is None or self.duration is None:
            data = self.storage.lower(c, reader, DType.UINT8, (), "")
        else:
            table = np.stack([self.offset, self.duration], 1)
            (part,) = c.native("lookup", [], [(DType.FLOAT64, (2,), "")], attrs=(table.ravel(), len(table), reader))
            if isinstance(self.storage, FileStorage):
                data, left = c.opaque(DType.UINT8, 1), c.new_value(DType.FLOAT64, (2,))
                seconds = (c.element(part, 0), c.element(part, 1))
                attrs = (self.storage.table, reader)
                c.emit("read_audio_part", [], [data, left], attrs=attrs, params=seconds, memory=ALLOCATES)
            else:
                data, left = self.storage.lower(c, reader, DType.UINT8, (), ""), part
            for i, name in enumerate(("offset", "duration")):
                arguments[name] = c.view(left, [ViewOp("slice", 0, i, 1, 1), ViewOp("drop", 0)])
        samples, rate = c.apply("decoders.audio", data, **arguments)
        return samples, rate

    def joined(self, others: Sequence[AudioFiles]) -> AudioFiles:
        """Return the files of all parts."""
        parts = (self, *others)
        if any(type(o.storage) is not type(self.storage) for o in others):
            raise ArgumentError("expected parts that are all files, or all objects of a store")
        own: Any = self.storage
        storage = own.joined([o.storage for o in others])
        if all(p.offset is None for p in parts):
            return AudioFiles(storage)

        def table(name: str) -> npt.NDArray[np.float64]:
            found = ((getattr(p, name), len(p.storage)) for p in parts)
            return np.concatenate([np.zeros(n) if one is None else one for one, n in found])

        return AudioFiles(storage, table("offset"), table("duration"))


class _OfFiles(Column):
    """Column that is computed from audio files."""

    optional = False
    layout = ""

    def __init__(self, files: AudioFiles, decoding: Decoding) -> None:
        self.files, self.decoding = files, decoding

    def __len__(self) -> int:
        return len(self.files.storage)

    @property
    def storage(self) -> FileStorage | AsyncStorage:
        return self.files.storage

    def absent(self) -> Bools | None:
        return None

    def joined(self, others: Sequence[Column]) -> _OfFiles:
        same = [o for o in others if isinstance(o, type(self)) and o.decoding == self.decoding]
        if len(same) < len(others):
            raise ArgumentError(f"expected parts that decode audio with the same arguments, {self.decoding}")
        return type(self)(self.files.joined([o.files for o in same]), self.decoding)

    def _read(self, index: int) -> tuple[npt.NDArray[Any], float]:
        """Read a sample with libsndfile or PyAV."""
        content, (first, seconds) = self.files.storage.content(index), self.files.range_of(index)
        form = audio_container(content)
        if form is not None:
            track = audio_track(content, form)
            start = min(round(first * track.rate), track.frames)
            count = min(round(seconds * track.rate) or track.frames, track.frames - start)
            blocks = [converted(x, self.decoding.dtype, False) for x in read_audio(content, form, start, count)]
            return np.concatenate([np.empty((0, track.channels), self.decoding.dtype.numpy), *blocks]), track.rate
        try:
            with IMPORT_LOCK:
                soundfile = importlib.import_module("soundfile")
        except (ImportError, OSError) as error:
            raise UnsupportedError(f"expected the package `soundfile` to read single samples: {error}") from error
        with soundfile.SoundFile(io.BytesIO(content)) as file:
            file.seek(round(first * file.samplerate))
            count = round(seconds * file.samplerate) if seconds else -1
            return file.read(count, dtype=self.decoding.dtype.numpy.name, always_2d=True), file.samplerate


class AudioColumn(_OfFiles):
    """Decoded samples, ``(frames,)`` or ``(frames, channels)``."""

    name = "audio"

    def __init__(self, files: AudioFiles, decoding: Decoding) -> None:
        super().__init__(files, decoding)
        self.dtype, self.rank = decoding.dtype, 1 if decoding.downmix else 2

    def lower(self, c: Lowering, reader: int) -> Value:
        d = self.decoding
        more: dict[str, Any] = {} if d.preroll is None else {"preroll": d.preroll}
        if d.sample_rate:
            more |= {"sample_rate": d.sample_rate, "quality": d.quality, "filter": d.filter}
        return self.files.decode(c, reader, downmix=d.downmix, dtype=d.dtype, **more)[0]

    def row(self, index: int) -> npt.NDArray[Any]:
        samples, rate = self._read(index)
        if self.decoding.sample_rate not in (0.0, rate) or (self.decoding.downmix and samples.shape[1] > 1):
            raise UnsupportedError("expected a file of one channel at the wanted rate: pipelines resample and downmix")
        return samples[:, 0] if self.decoding.downmix else samples


class RateColumn(_OfFiles):
    """Sampling rates of the files in Hz, before resampling."""

    name = "sample_rate"
    dtype = DType.FLOAT
    rank = 0

    def lower(self, c: Lowering, reader: int) -> Value:
        return self.files.decode(c, reader)[1]

    def row(self, index: int) -> npt.NDArray[Any]:
        return np.asarray(self._read(index)[1], np.float32)
