# SPDX-License-Identifier: Apache-2.0
"""``decoders.audio``."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any

import numpy as np

from ...contract import expr as ex
from ...contract.argument import ON_ERROR, arg
from ...contract.expr import Scalar
from ...contract.lowering import Lowering
from ...contract.operator import Operator, RowContext
from ...contract.samples import Rows
from ...contract.step import FileAccess, Value, ViewOp
from ...contract.types import DType
from ...video.samples import converted
from ._opus import libopus
from ._soundfile import twin_decode, twin_header
from ._wav import read_wav, wav_files
from .audio_resample import MEANINGS

_TYPES = (DType.FLOAT, DType.INT16, DType.INT32)
MAX_SAMPLES = 1 << 30


class DecodeAudio(Operator, name="decoders.audio"):
    """Decode an audio file. Input: its bytes, uint8 ``(n,)``. Outputs: the samples, ``(frames, channels)``, or
    ``(frames,)`` with ``downmix``; and the sampling rate in Hz, float32 without axes.

    WAV files (8, 16, 24 and 32 bits, floats of 32 and 64 bits, extensible, RF64) are decoded natively, all others
    (FLAC, Ogg Vorbis, Opus, MP3, AIFF, compressed WAV) by libsndfile, from the package `soundfile`; FLAC by dr_flac,
    to the same bits, if the package `miniaudio` is installed; Opus natively by libopus, twice as fast and within 5e-7,
    if PyAV or the system has that library. AAC (M4A, MP4, ADTS), ALAC, and the audio of Matroska,
    WebM, WMA and WavPack files are decoded by FFmpeg, from the package `av`; samples that the container excludes, such
    as the encoder's priming and padding in M4A files, are removed. Integers are scaled by powers of two, so that full
    scale is 1. A float becomes an integer as ``round(32767 x)``, saturated (int32: 2147483647); DALI gives 0
    for most. Files that are cut off, Ogg files without the page that ends them, and MP3 files with other bytes between
    their frames, impossible side information or another number of frames than they state, are errors of their row; DALI
    returns what is left.

    The samples of a part of an Opus file depend on all packets before it, which are therefore decoded too. A `preroll`
    limits them: after 1 second of it, all measured parts had the samples of the whole; after the 0.08 seconds of
    RFC 7845, 4.6, some began with errors of half of the largest sample.
    """

    devices = ("cpu",)
    outputs = 2
    sample_rate = arg(
        "float", 0.0, per_row=True, doc="Resample to this rate in Hz, which is the second output too; 0: keep it."
    )
    quality = arg("float", 50.0, doc="Quality of resampling, 0 to 100 (`audio_resample`).")
    filter = arg("str", "exact", choices=MEANINGS, doc="Filter of resampling (`audio_resample`).")
    downmix = arg("bool", False, doc="Return the mean over the channels, without their axis.")
    dtype = arg("dtype", DType.FLOAT, doc="Element type: FLOAT, INT16 or INT32.")
    offset = arg("float", 0.0, per_row=True, doc="First second to decode. WAV files decode nothing else.")
    duration = arg("float", 0.0, per_row=True, doc="Seconds to decode, at most to the end of the file; 0: all of them.")
    preroll = arg(
        "float", None, doc="Seconds to decode before `offset` in Opus files; by default all that is before it, for "
        "exact samples. No effect on other files.",
    )  # fmt: skip
    max_samples = arg(
        "int", MAX_SAMPLES, doc="Files that declare more samples (of all channels) are errors. 0: no limit."
    )
    on_error = ON_ERROR
    result_neutral = ("on_error",)
    cases = (
        {},
        {"dtype": "int16"},
        {"dtype": "int32"},
        {"downmix": True},
        {"downmix": True, "dtype": "int16"},
        {"offset": 0.0005, "duration": 0.0004},
    )

    @classmethod
    def case_inputs(cls, case: Mapping[str, Any]) -> Rows:
        return wav_files(case)

    def lower(self, c: Lowering, data: Value) -> tuple[Value, Value]:
        c.expect(
            data.rank == 1 and data.dtype == DType.UINT8,
            f"expected the bytes of a file (uint8, one axis), got {data.dtype} with {data.rank} axes",
        )
        dtype, downmix, limit = c.const("dtype"), c.const("downmix"), c.const("max_samples")
        c.expect(dtype in _TYPES, f"expected `dtype` FLOAT, INT16 or INT32, got {dtype}")
        c.expect(limit >= 0, f"expected `max_samples` >= 0 (0: no limit), got {limit}")
        header = c.native(
            "audio_header", [data], [(DType.INT64, (3,), "")], twin=twin_header, file=FileAccess(header_only=True)
        )[0]
        frames, channels, rate = (c.element(header, i) for i in range(3))
        if limit:
            text = "expected at most {1} samples, got a file that declares {0}; `max_samples` allows more"
            c.require(frames * channels <= limit, text, frames * channels, limit)
        first, count = self._range(c, frames, rate)
        shape = (count,) if downmix else (count, channels)
        samples = c.native(
            "decode_audio", [data], [(dtype, shape, "")], attrs=(downmix, libopus()), params=(first, _preroll(c)),
            twin=twin_decode(dtype, downmix),
        )[0]  # fmt: skip
        if not c.scope_given("sample_rate"):
            return samples, c.numbers([rate], DType.FLOAT, ())
        asked = c.scalar("sample_rate")
        c.require(ex.both(ex.isfinite(asked), asked >= 0), "expected `sample_rate` of at least 0 Hz, got {0}", asked)
        wanted = ex.where(asked > 0, asked, rate)
        rates = c.numbers([rate, wanted], DType.FLOAT64)
        before, after = (c.view(rates, [ViewOp("slice", 0, i, 1, 1), ViewOp("drop", 0)]) for i in (0, 1))
        resampled = c.apply(
            "audio_resample",
            samples,
            in_rate=before,
            out_rate=after,
            quality=c.const("quality"),
            filter=c.const("filter"),
        )
        return resampled, c.numbers([wanted], DType.FLOAT, ())

    @staticmethod
    def _range(c: Lowering, frames: Scalar, rate: Scalar) -> tuple[Scalar, Scalar]:
        """Return the first frame and the number of frames."""
        offset, duration = c.scalar("offset"), c.scalar("duration")
        for name, value in (("offset", offset), ("duration", duration)):
            c.require(
                ex.both(ex.isfinite(value), value >= 0), f"expected a `{name}` of at least 0 seconds, got {{0}}", value
            )
        first = ex.round_even(offset * rate)
        text = "expected an `offset` within the file of {1} seconds, got {0}"
        c.require(first <= frames, text, offset, frames / ex.maximum(rate, 1))
        left = frames - first
        return first, ex.where(duration > 0, ex.minimum(ex.round_even(duration * rate), left), left)

    def reference(self, row: RowContext, data: Any) -> Any:
        x, rate = read_wav(data)
        first, length = (int(np.rint(row.number(name) * rate)) for name in ("offset", "duration"))
        x = x[first : first + length] if row.number("duration") else x[first:]
        return converted(x, row["dtype"], row["downmix"]), np.float32(rate)


def _preroll(c: Lowering) -> float:
    """Return the seconds to decode before a part; -1: all."""
    given = c.const("preroll")
    c.expect(
        given is None or (math.isfinite(given) and given >= 0),
        f"expected a `preroll` of at least 0 seconds, got {given}",
    )
    return -1.0 if given is None else float(given)
