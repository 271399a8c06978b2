# SPDX-License-Identifier: Apache-2.0
"""``readers.video_resize``: resized clips of video files."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

import numpy.typing as npt

from ..contract.columns import Column, DataSet
from ..contract.errors import ArgumentError, UnsupportedError
from ..contract.lowering import Lowering
from ..contract.pixel import load
from ..contract.resizing import ResizeArguments
from ..contract.step import Value
from ..contract.types import DType
from ..video.frame_resize import FrameResize
from ._video import ClipColumn
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
        data = super().dataset(args)
        resizing = {k: args.get(k) for k in ResizeArguments.declared()}
        clips = ResizedClips(data.columns[0].storage, DType(args["dtype"]), args["normalized"], resizing)
        return replace(data, columns=(clips, *data.columns[1:]))


class ResizedClips(ClipColumn):
    """Decoded and resized clips.

    Args:
        storage: the clips.
        dtype: UINT8, UINT16 or FLOAT.
        normalized: values from 0 to 1 instead of 0 to 255.
        resizing: constant arguments of `resize`. Others are inputs of the reader's node.
    """

    def __init__(self, storage: Any, dtype: DType, normalized: bool, resizing: Mapping[str, Any]) -> None:
        super().__init__(storage, dtype, normalized=normalized)
        self._resizing = resizing

    def lower(self, c: Lowering, reader: int) -> Value:
        resize = self._resize_of(c)
        self._storage.resize(resize)
        clips = self._storage.lower(c, reader, DType.UINT8, (), self.layout)
        if resize is not None:
            return clips
        per_row = {k: v for k, v in c.scope.edges.items() if k in self._resizing}
        resized: Value = c.apply("resize", clips, **{**self._resizing, **per_row, "dtype": self.dtype})
        return c.pointwise([resized], load(self.dtype) * (1 / 255)) if self._normalized else resized

    def _resize_of(self, c: Lowering) -> FrameResize | None:
        """Return the resize that the decoders do; None: a step after them resizes.

        A video of 1280x720 has a clip of 44 MB, which is neither written nor read if its rows are resized when they are
        converted. On a GPU the resize is one of the GPU's steps.
        """
        in_frames = c.scope.device in (None, "cpu") and FrameResize.takes(self.dtype)
        if not in_frames or self._normalized or c.scope.edges.keys() & self._resizing.keys():
            return None
        return FrameResize.of(self._resizing)

    def row(self, index: int) -> npt.NDArray[Any]:
        raise UnsupportedError("expected a clip of `readers.video`, got a resized one, which a pipeline makes")

    def joined(self, others: Sequence[Column]) -> ResizedClips:
        same = [o for o in others if isinstance(o, ResizedClips)]
        mine = (self.dtype, self._normalized, self._resizing)
        if len(same) < len(others) or any((o.dtype, o._normalized, o._resizing) != mine for o in same):
            raise ArgumentError("expected parts that are clips of videos, resized with the same arguments")
        storage = self._storage.joined([o.storage for o in same])
        return ResizedClips(storage, self.dtype, self._normalized, self._resizing)
