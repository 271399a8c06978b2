# SPDX-License-Identifier: Apache-2.0
"""Decoding at a reduced size: decoders that compute 4, 2 or 1 of 8 samples of a block's rows and columns.

The frames are those of FFmpeg's full decode with its option `lowres`.
"""

from __future__ import annotations

from typing import Any

from ..contract.errors import ArgumentError, DataError
from .frame_index import FrameIndex
from .pyav import Source, name_of

REDUCTIONS = (1, 2, 4, 8)
REDUCTION_DOC = (
    "Decode at 1/2, 1/4 or 1/8 of the height and width, which is faster, with 2, 4 or 8, where the codec allows it: "
    "MPEG-1, -2 and -4, H.263, FLV, WMV and Motion JPEG."
)
# FFmpeg's names of codecs whose decoders do this. With another one FFmpeg warns, and decodes at the full size.
_CODECS = frozenset(
    ("flv1", "h263", "mjpeg", "mpeg1video", "mpeg2video", "mpeg4", "msmpeg4v2", "msmpeg4v3", "wmv1", "wmv2")
)


def require_reduction(reduction: Any) -> None:
    """Check an argument.

    Raises:
        ArgumentError: it is none of `REDUCTIONS`.
    """
    if reduction not in REDUCTIONS:
        raise ArgumentError(f"expected 1, 2, 4 or 8 as `reduction`, got {reduction}")


def reducing_options(source: Source, index: FrameIndex, reduction: int) -> dict[str, str]:
    """Return the options of a decoder that divides the height and the width of the frames by a number.

    Raises:
        DataError: the codec has no such decoder.
    """
    if reduction == 1:
        return {}
    if index.codec_name not in _CODECS:
        raise DataError(
            f"expected a codec that decodes at a reduced size ({', '.join(sorted(_CODECS))}) in {name_of(source)}, got "
            f"{index.codec_name}. Leave out `reduction`, and resize the frames"
        )
    return {"lowres": str(REDUCTIONS.index(reduction))}


def reduced_size(size: tuple[int, int], reduction: int) -> tuple[int, int]:
    """Return the height and the width of reduced frames."""
    height, width = size
    return -(-height // reduction), -(-width // reduction)
