# SPDX-License-Identifier: Apache-2.0
"""``readers.video_resize``: resized clips of video files."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from ..contract.columns import DataSet
from ..contract.lowering import Lowering
from ..contract.pixel import load
from ..contract.reader import lower_columns
from ..contract.resizing import ResizeArguments
from ..contract.step import Value
from ..contract.types import DType
from .video import VideoReader


class VideoResizeReader(VideoReader, ResizeArguments, name="readers.video_resize"):
    """Read clips of videos and resize their frames. Outputs: those of `readers.video`.

    The arguments are those of `readers.video` and of `resize`, whose filters and sizes these are: the frames are those
    that `resize` makes of the frames of `readers.video`. With `dtype` FLOAT they are computed in float32 and not
    rounded.
    """

    @classmethod
    def dataset(cls, args: Mapping[str, Any]) -> DataSet:
        """Find the clips.

        Raises:
            ArgumentError: the arguments contradict each other, or there are no clips.
            OSError: the operating system fails.
        """
        return super().dataset({**args, "dtype": DType.UINT8, "normalized": False})

    def lower(self, c: Lowering) -> tuple[Value, ...]:
        clips, *others = lower_columns(c)
        dtype = DType(c.const("dtype"))
        resized = c.apply("resize", clips, dtype=dtype, **{k: c.pass_on(k) for k in ResizeArguments.declared()})
        if c.const("normalized"):
            resized = c.pointwise([resized], load(dtype) * (1 / 255))
        return resized, *others
