# SPDX-License-Identifier: Apache-2.0
"""Audio files that are not plain WAV, decoded by libsndfile: the Python twins of the native steps."""

from __future__ import annotations

import importlib
import io
from collections.abc import Callable, Sequence
from typing import Any

from ..._import_lock import IMPORT_LOCK
from ...contract.errors import DataError, UnsupportedError
from ...contract.types import DType
from ._wav import converted, quantized

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


def _opened(data: Any) -> Any:
    soundfile = _soundfile()
    try:
        return soundfile.SoundFile(io.BytesIO(bytes(data)))
    except (RuntimeError, TypeError) as error:
        raise DataError(
            f"expected an audio file that libsndfile reads (WAV, FLAC, Ogg Vorbis, Opus, MP3, AIFF), got {len(data)} "
            f"bytes that begin with {bytes(data[:8])!r}: {error}"
        ) from None


def twin_header(inputs: Sequence[Any], params: Sequence[float], outputs: Sequence[Any]) -> None:
    """Write frames, channels and rate."""
    with _opened(inputs[0]) as file:
        frames = file.frames
        if frames >= _UNKNOWN:
            frames = sum(len(block) for block in file.blocks(_BLOCK, dtype="int16", always_2d=True))
        outputs[0][:] = frames, file.channels, file.samplerate


def twin_decode(dtype: DType, downmix: bool) -> Callable[..., None]:
    """Return a twin that writes the frames from ``params[0]`` on."""

    def twin(inputs: Sequence[Any], params: Sequence[float], outputs: Sequence[Any]) -> None:
        out, first = outputs[0], int(params[0])
        with _opened(inputs[0]) as file:
            means = downmix and file.channels > 1
            as_floats = means or dtype == DType.FLOAT or file.subtype in _FLOATS
            try:
                if first:
                    file.seek(first)
                x = file.read(len(out), dtype="float32" if as_floats else dtype.numpy.name, always_2d=True)
            except RuntimeError as error:
                raise DataError(f"expected {len(out)} frames from frame {first} on: {error}") from None
        if len(x) != len(out):
            raise DataError(f"expected {len(out)} frames from frame {first} on, as the header says, got {len(x)}")
        if means:
            out[:] = converted(x, dtype, True)
            return
        x = quantized(x, dtype) if as_floats else x
        out[:] = x[:, 0] if downmix else x

    return twin
