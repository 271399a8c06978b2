# SPDX-License-Identifier: Apache-2.0
"""``experimental.inputs.video``: videos that are fed by hand, in batches of consecutive sequences."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from ..contract.argument import arg
from ..contract.errors import ArgumentError, DataError, StateError
from ..contract.lowering import Lowering
from ..contract.operator import Spec
from ..contract.reader import Source
from ..contract.step import Value
from ..contract.types import DType, ImageType
from ..video.clip import ClipPixels
from ..video.colors import CHANNEL_ORDERS
from ..video.decoder import VideoDecoder
from ..video.engine_clips import as_result, shared_engines
from ..video.frame_index import Ints
from ..video.indexing import open_video
from ..video.pool import VideoFile, VideoOwner
from ..video.reduction import REDUCTION_DOC, require_reduction
from ._declared import Declared
from ._feeding import Column, ManualFeeder

_MOST = 1 << 20
_SPEC = Spec(DType.UINT8, (None, None, None, 3), "FHWC")


class VideoInput(Source, name="experimental.inputs.video"):
    """Decode videos that are fed by hand. Output: sequences of frames, uint8 FHWC.

    ``pipe.feed_input(name, [data])`` takes the bytes of one video, uint8 ``(n,)``. Its frames are returned in order: a
    batch has at most `batch_size` sequences of `sequence_length` frames, and the last batch of a video may be smaller.
    Then follows the video that was fed next. Frames and colors are those of `readers.video`. A damaged picture is an
    error of its batch, and the next run continues after that batch.

    Videos are decoded by FFmpeg, from the package `av` (extra `video`), or with `device="gpu"` or "mixed" by the GPU's
    video engines (NVDEC) to the same frames, as `readers.video` says.
    """

    devices = ("cpu",)
    result_neutral = ("affine", "blocking", "no_copy")
    sequence_length = arg("int", doc="Number of frames of a sequence.")
    last_sequence_policy = arg(
        "str", "partial", choices=("partial", "pad"),
        doc='Last sequence of a video: "partial" leaves it shorter, "pad" completes it with frames of zeros.',
    )  # fmt: skip
    blocking = arg("bool", False, doc="Wait for another thread to feed a video.")
    no_copy = arg("bool", False, doc="Read the bytes in place; they must not change until the video has ended.")
    image_type = arg("image_type", ImageType.RGB, doc="Channels: types.RGB, BGR, or YCbCr (as stored, in 8 bits).")
    adjust_orientation = arg("bool", True, doc="Turn the frames as the file says that players do.")
    reduction = arg("int", 1, doc=REDUCTION_DOC)
    affine = arg("bool", True, doc="No effect: threads are not pinned.")

    def validate(self, args: Mapping[str, Any]) -> None:
        """Check everything that does not depend on the data."""
        if not 1 <= args["sequence_length"] <= _MOST:
            raise ArgumentError(
                f"expected a number from 1 to 2**20 as `sequence_length`, got {args['sequence_length']}"
            )
        if ImageType(args["image_type"]) not in CHANNEL_ORDERS:
            raise ArgumentError(f"expected `image_type` RGB, BGR or YCbCr, got {ImageType(args['image_type']).name}")
        require_reduction(args["reduction"])

    @classmethod
    def open(cls, args: Mapping[str, Any]) -> VideoFeeder:
        """Return the feeder, which decodes."""
        pixels = ClipPixels(
            CHANNEL_ORDERS[ImageType(args["image_type"])], args["adjust_orientation"], reduction=args["reduction"]
        )  # fmt: skip
        return VideoFeeder(
            args["name"] or "name", pixels, args["sequence_length"], pads=args["last_sequence_policy"] == "pad",
            waits=args["blocking"], copies=not args["no_copy"],
        )  # fmt: skip

    def lower(self, c: Lowering) -> tuple[Value, ...]:
        return (c.fed(_SPEC, 0),)


class VideoFeeder(ManualFeeder):
    """Feeder that decodes one video after the other.

    Args:
        name: name of the node.
        pixels: form of the pixels.
        length: number of frames of a sequence.
        pads: whether the last sequence is completed with zeros.
        waits: whether a run waits for videos.
        copies: whether the bytes are copied.
    """

    subject = "experimental.inputs.video"

    def __init__(
        self, name: str, pixels: ClipPixels, length: int, *, pads: bool, waits: bool, copies: bool
    ) -> None:  # fmt: skip
        super().__init__(Declared.of(1, DType.UINT8, 1, None), name, repeats=False, waits=waits, copies=copies)
        self._pixels, self._length, self._pads = pixels, length, pads
        self._decoder: VideoDecoder | None = None
        self._file: VideoFile | None = None  # the one that is being decoded, for the engines
        self._next = 0  # first frame that was not returned
        self._gpu: Any = None

    @property
    def specs(self) -> tuple[Spec, ...]:
        return (_SPEC,)

    @property
    def ready(self) -> bool:
        return self._decoder is not None or bool(self._queue)

    def use_gpu(self, gpu: Any) -> None:
        """Decode by the video engines of a GPU, where they can. Frames are in the GPU's memory then."""
        self._gpu = gpu

    def feed(self, data: Any, limit: int, layout: str | None) -> None:
        rows = getattr(data, "shape", None) or (len(data) if isinstance(data, (list, tuple)) else 0,)
        if rows[0] != 1:
            raise DataError(
                f"`{self.subject}`: expected a batch of one video, `[bytes of its file]`, got {rows[0]} rows"
            )
        super().feed(data, 1, None if layout == "B" else layout)

    def convert(self, data: Any) -> tuple[Column, ...]:
        raise StateError(f"`{self.subject}`: expected videos from `feed_input`, of which each gives several batches")

    def pull(self, count: int, epoch: int) -> tuple[Column, ...]:
        if self._decoder is None or self._file is None:
            source = np.ascontiguousarray(self._queue.popleft()[0][0]).data
            decoder = self._decoder = open_video(source, self._pixels.reduction)
            self._file, self._next = VideoFile(VideoOwner(), 0, source, lambda: decoder.index), 0
        decoder, file, frames = self._decoder, self._file, len(self._decoder.index)
        wanted = [self._sequence(first, frames) for first in range(self._next, frames, self._length)[:count]]
        self._next += self._length * len(wanted)
        try:
            clips = self._decoded(decoder, file, wanted)
        finally:
            if self._next >= frames:
                self._end(decoder, file)
        failed = next((c for c in clips if isinstance(c, BaseException)), None)
        if failed is not None:
            raise failed
        return ([as_result(c, on_gpu=self._gpu is not None) for c in clips],)

    def _decoded(self, decoder: VideoDecoder, file: VideoFile, wanted: list[Ints]) -> list[Any]:
        """Decode sequences: by the engines if there are some, and by the CPU what these leave."""
        on_gpu: dict[int, Any] = {}
        if self._gpu is not None and self._pixels.reduction == 1:
            on_gpu = shared_engines(self._gpu).decode(file, dict(enumerate(wanted)), self._pixels, decoder)
        left = [k for k in range(len(wanted)) if k not in on_gpu]
        on_cpu = self._pixels.decode(decoder, [wanted[k] for k in left]) if left else []
        found = on_gpu | dict(zip(left, on_cpu, strict=True))
        return [found[k] for k in range(len(wanted))]

    def _end(self, decoder: VideoDecoder, file: VideoFile) -> None:
        """Close the video. Its decoder on the engines is used for the next one."""
        decoder.close()
        file.owner.is_closed = True
        self._decoder = self._file = None
        if self._gpu is not None:
            shared_engines(self._gpu).sweep()

    def _sequence(self, first: int, frames: int) -> Ints:
        """Return the numbers of the frames of a sequence, -1 for those past the end."""
        numbers = np.arange(first, first + self._length)
        return np.where(numbers < frames, numbers, -1) if self._pads else numbers[numbers < frames]
