# SPDX-License-Identifier: Apache-2.0
"""Audio files that are not plain WAV: the Python twins of the native steps. FLAC goes to miniaudio if it is installed,
AAC and containers of video files go to PyAV, all others go to libsndfile.
"""

from __future__ import annotations

import contextlib
import functools
import importlib
import io
import math
import os
from collections.abc import Callable, Iterator, Sequence
from typing import Any

import numpy as np

from ..._import_lock import IMPORT_LOCK
from ...contract.errors import DataError, UnreadableFile, UnsupportedError
from ...contract.types import DType
from ...video.audio_track import audio_container, audio_track, read_audio
from ...video.samples import converted, quantized
from ._miniaudio import decode_flac, flac_header
from ._mp3 import checked

_UNKNOWN = 1 << 62  # frames of a file whose header does not say how many
_BLOCK = 1 << 16  # frames
_FLOATS = ("FLOAT", "DOUBLE", "VORBIS", "OPUS")  # encodings without integers


def _soundfile() -> Any:
    with IMPORT_LOCK:
        try:
            return importlib.import_module("soundfile")
        except (ImportError, OSError) as error:
            raise UnsupportedError(
                "expected a WAV file of plain numbers: other audio files need the package `soundfile`, which is not "
                f"installed ({error}). It is the extra `audio`: `pip install soundfile`"
            ) from error


def _reason(error: Exception) -> str:
    """Return the reason that libsndfile gives, without the name of the object that the bytes are read from."""
    return str(getattr(error, "error_string", error))


@contextlib.contextmanager
def _opened(data: Any) -> Iterator[Any]:
    """Open the bytes of a file with libsndfile.

    libsndfile reads them from a file in memory, if the system has such files: for a Python object it would call back
    into Python for each read, and threads would wait for the GIL in turn.
    """
    soundfile, content = _soundfile(), checked(bytes(data))
    descriptor = _file_in_memory(content)
    try:
        try:
            source = io.BytesIO(content) if descriptor is None else descriptor
            file = soundfile.SoundFile(source, closefd=False)
        except (RuntimeError, TypeError) as error:
            raise UnreadableFile(
                "expected an audio file that libsndfile reads (WAV, FLAC, Ogg Vorbis, Opus, MP3, AIFF) or PyAV (M4A, "
                f"AAC, Matroska, WMA, WavPack), got {len(data)} bytes that begin with {bytes(data[:8])!r}: "
                f"{_reason(error)}"
            ) from None
        with file:
            yield file
    finally:
        if descriptor is not None:
            os.close(descriptor)


def _file_in_memory(content: bytes) -> int | None:
    """Return the descriptor of a file in memory with a content; None where the system has none."""
    if not hasattr(os, "memfd_create"):
        return None
    try:
        descriptor = os.memfd_create("stoker-audio")
    except OSError:  # a sandbox forbids the call, or all descriptors are in use
        return None
    try:
        rest = memoryview(content)
        while rest:
            rest = rest[os.write(descriptor, rest) :]
        os.lseek(descriptor, 0, os.SEEK_SET)
    except OSError:
        os.close(descriptor)
        return None
    return descriptor


def twin_header(inputs: Sequence[Any], params: Sequence[float], outputs: Sequence[Any]) -> None:
    """Write frames, channels and rate."""
    known = flac_header(inputs[0])
    if known is not None:
        outputs[0][:] = known
        return
    form = audio_container(inputs[0])
    if form is not None:
        outputs[0][:] = audio_track(bytes(inputs[0]), form)
        return
    with _opened(inputs[0]) as file:
        frames = file.frames
        if frames >= _UNKNOWN:
            frames = sum(len(block) for block in file.blocks(_BLOCK, dtype="int16", always_2d=True))
        outputs[0][:] = frames, file.channels, file.samplerate


def twin_decode(dtype: DType, downmix: bool) -> Callable[..., None]:
    """Return a twin that writes the frames from ``params[0]`` on."""

    def twin(inputs: Sequence[Any], params: Sequence[float], outputs: Sequence[Any]) -> None:
        (data,), out, first, preroll = inputs, outputs[0], int(params[0]), params[1]
        form = audio_container(data)
        if form is not None:
            _read_by_pyav(bytes(data), form, first, out, dtype, downmix)
            return
        header = flac_header(data)
        read: Callable[..., tuple[Any, bool]] = functools.partial(_read_by_libsndfile, preroll=preroll)
        if header is not None:
            read = functools.partial(_read_flac, channels=header[1])
        x, done = read(data, first, out, dtype, downmix)
        if len(x) != len(out):
            raise DataError(f"expected {len(out)} frames from frame {first} on, as the header says, got {len(x)}")
        if not done:
            out[:] = converted(x, dtype, True) if downmix and x.shape[1] > 1 else _placed(x, dtype, downmix)

    return twin


def _placed(x: Any, dtype: DType, downmix: bool) -> Any:
    x = quantized(x, dtype) if x.dtype.kind == "f" else x
    return x[:, 0] if downmix else x


def _read_flac(data: Any, first: int, out: Any, dtype: DType, downmix: bool, *, channels: int) -> tuple[Any, bool]:
    """Return the frames, and whether they are in the output already."""
    means = downmix and channels > 1
    in_place = not means and out.flags.c_contiguous and out.dtype == dtype.numpy
    x = out if in_place else np.empty((len(out), channels), np.float32 if means else dtype.numpy)
    count = decode_flac(np.ascontiguousarray(data), first, x, DType.FLOAT if means else dtype)
    return x[:count], in_place


def _read_by_pyav(data: bytes, form: str, first: int, out: Any, dtype: DType, downmix: bool) -> None:
    at = 0
    for block in read_audio(data, form, first, len(out)):
        out[at : at + len(block)] = converted(block, dtype, downmix)
        at += len(block)


def _read_by_libsndfile(
    data: Any, first: int, out: Any, dtype: DType, downmix: bool, *, preroll: float
) -> tuple[Any, bool]:
    with _opened(data) as file:
        as_floats = (downmix and file.channels > 1) or dtype == DType.FLOAT or file.subtype in _FLOATS
        try:
            kind = "float32" if as_floats else dtype.numpy.name
            begin = first
            if file.subtype == "OPUS":  # libsndfile decodes only 80 ms before the position, which is not exact
                begin = 0 if preroll < 0 else max(first - math.ceil(preroll * file.samplerate), 0)
            if begin:
                file.seek(begin)
            for at in range(begin, first, _BLOCK):
                file.read(min(_BLOCK, first - at), dtype="float32")
            return file.read(len(out), dtype=kind, always_2d=True), False
        except RuntimeError as error:
            raise DataError(f"expected {len(out)} frames from frame {first} on: {error}") from None
