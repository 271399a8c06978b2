# SPDX-License-Identifier: Apache-2.0
"""``decoders.video``."""

from __future__ import annotations

import contextlib
import io
from collections.abc import Mapping
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import numpy as np
import numpy.typing as npt

from ...contract.argument import ON_ERROR, arg
from ...contract.errors import ArgumentError, DataError
from ...contract.lowering import Lowering
from ...contract.operator import Operator, RowContext, Spec
from ...contract.samples import Rows, each
from ...contract.step import Value
from ...contract.text import brief
from ...contract.types import DType, ImageType
from ...settings import default_threads
from ...video.clip import ClipPixels
from ...video.colors import CHANNEL_ORDERS
from ...video.decoder import VideoDecoder
from ...video.indexing import index_video
from ...video.sampling import PAD_NAMES, Ints, fill_of, pad_mode_of, padded

_RANGE = ("start_frame", "end_frame", "sequence_length", "stride")
_MOST = 1 << 20  # frames of a clip


class DecodeVideo(Operator, name="decoders.video"):
    """Decode frames of a video. Input: the bytes of its file, uint8 ``(n,)``. Output: the frames, uint8 FHWC.

    Without arguments all frames are decoded. `frames` lists the frames; or they are those from `start_frame` on,
    `stride` apart: `sequence_length` frames, or those before `end_frame`. Frames past the end of the video are replaced
    as `pad_mode` says, or with `pad_mode="none"` left out of a range and an error in `frames`. Each frame is that of
    FFmpeg's full decode, in the colors of the stream, as `readers.video` describes. A damaged picture among those that
    are needed is an error of its row, and so is a file that is no video.

    Videos are decoded on the CPU by FFmpeg, from the package `av` (extra `video`).
    """

    devices = ("cpu",)
    frames = arg("int", None, many=True, per_row=True, doc="Numbers of the frames, in any order; some may repeat.")
    start_frame = arg("int", None, per_row=True, doc="The first frame; by default 0.")
    end_frame = arg("int", None, per_row=True, doc="The frame before which the clip ends.")
    sequence_length = arg("int", None, per_row=True, doc="Number of frames; by default those up to the end.")
    stride = arg("int", None, per_row=True, doc="Distance between consecutive frames; by default 1.")
    pad_mode = arg(
        "str", "constant", choices=PAD_NAMES,
        doc="Frames in place of those past the end: of `fill_value`, the last one, mirrored ones, or none.",
    )  # fmt: skip
    fill_value = arg("object", (0,), doc="Value of the pixels of constant frames, 0 to 255, or one per channel.")
    image_type = arg("image_type", ImageType.RGB, doc="Channels: types.RGB, BGR, or YCbCr (as stored, in 8 bits).")
    adjust_orientation = arg("bool", True, doc="Turn the frames as the file says that players do.")
    build_index = arg("bool", True, doc="No effect: frames are found by an index of the packets.")
    affine = arg("bool", True, doc="No effect: threads are not pinned.")
    on_error = ON_ERROR
    result_neutral = ("on_error", "build_index", "affine")
    cases = (
        {},
        {"frames": (2, 0, 2, 9), "pad_mode": "edge"},
        {"start_frame": 1, "sequence_length": 4, "pad_mode": "reflect_101"},
        {"start_frame": 1, "end_frame": 7, "stride": 2, "fill_value": (9, 8, 7)},
        {"start_frame": 1, "end_frame": 7, "stride": 2, "pad_mode": "none", "image_type": "BGR"},
    )

    @classmethod
    def case_inputs(cls, case: Mapping[str, Any]) -> Rows:
        """Return GIF files, which Pillow writes."""
        return each(*(_gif(frames, 9 + frames, 14) for frames in (3, 2, 5)))

    def validate(self, args: Mapping[str, Any]) -> None:
        """Check everything that does not depend on the data."""
        fill_of(args["fill_value"])
        if ImageType(args["image_type"]) not in CHANNEL_ORDERS:
            raise ArgumentError(f"expected `image_type` RGB, BGR or YCbCr, got {args['image_type']}")
        given = [(args[k], k) for k in ("start_frame", "sequence_length", "stride") if args.get(k) is not None]
        try:
            for value, key in [*given, *((number, "frames") for number in args.get("frames") or ())]:
                _number(value, key)
        except DataError as error:
            raise ArgumentError(str(error)) from None

    def infer(self, c: Lowering, data: Value) -> Spec:
        c.expect(
            data.rank == 1 and data.dtype == DType.UINT8,
            f"expected the bytes of a file (uint8, one axis), got {data.dtype} with {data.rank} axes",
        )
        given = [f"`{k}`" for k in _RANGE if c.given(k)]
        c.expect(not (c.given("frames") and given), f"expected `frames` without {', '.join(given)}, got both")
        both = c.given("sequence_length") and c.given("end_frame")
        c.expect(not both, "expected one of `sequence_length` and `end_frame`, got both")
        return Spec(DType.UINT8, (self._length(c), None, None, 3), "FHWC")

    @staticmethod
    def _length(c: Lowering) -> int | None:
        """Return the number of frames if it is the same for all rows."""
        if "frames" in c.scope.args and c.const("frames") is not None:
            return len(c.const("frames"))
        if pad_mode_of(c.const("pad_mode")) == "none" or "sequence_length" not in c.scope.args:
            return None
        length: int | None = c.const("sequence_length")
        return length

    def runs_batches(self, args: Mapping[str, Any]) -> bool:
        return True

    def run_rows(self, rows: list[RowContext], inputs: list[tuple[Any, ...]]) -> list[Any]:
        """Decode the videos of a batch on threads."""

        def decode(row: RowContext, data: Any) -> Any:
            try:
                return self.reference(row, data)
            except Exception as error:  # noqa: BLE001 - whatever a decoder raises fails the row
                return error

        if len(rows) < 2:
            return [decode(row, *x) for row, x in zip(rows, inputs, strict=True)]
        with ThreadPoolExecutor(min(len(rows), default_threads()), thread_name_prefix="stoker-video") as pool:
            return list(pool.map(decode, rows, [x for (x,) in inputs]))

    def reference(self, row: RowContext, data: npt.NDArray[np.uint8]) -> Any:
        source = memoryview(np.ascontiguousarray(data).data)
        if not len(source):
            raise DataError("expected the bytes of a video, got none")
        index = index_video(source)
        wanted = _frames_of(row, len(index))
        pixels = ClipPixels(
            CHANNEL_ORDERS[ImageType(row["image_type"])], row["adjust_orientation"], fill_of(row["fill_value"])
        )  # fmt: skip
        with contextlib.closing(VideoDecoder(source, index)) as decoder:
            clip = pixels.decode(decoder, [wanted])[0]
        if isinstance(clip, BaseException):
            raise clip
        return clip


def _gif(frames: int, height: int, width: int) -> npt.NDArray[np.uint8]:
    """Return the bytes of a GIF file of plain frames."""
    from PIL import Image

    first, *rest = (Image.new("RGB", (width, height), (40 * i, 90, 200 - 30 * i)) for i in range(frames))
    file = io.BytesIO()
    first.save(file, "GIF", save_all=True, append_images=rest, duration=40)
    return np.frombuffer(file.getvalue(), np.uint8)


def _frames_of(row: RowContext, count: int) -> Ints:
    """Return the numbers of the frames of a row, -1 for constant ones.

    Args:
        row: the arguments.
        count: number of frames of the video.

    Raises:
        DataError: there are no such frames.
    """
    mode = pad_mode_of(row["pad_mode"])
    if row["frames"] is not None:
        listed = np.array([_number(n, "frames") for n in np.asarray(row["frames"]).reshape(-1)], np.int64)
        if not len(listed):
            raise DataError("expected at least one frame in `frames`, got none")
        if mode == "none" and listed.max() >= count:
            raise DataError(f"expected `frames` below {count}, the number of the video's frames, got {listed.max()}")
        return padded(listed, 0, count, mode)
    first, stride = (0 if row["start_frame"] is None else _number(row["start_frame"], "start_frame"), 1)
    if first >= count:
        raise DataError(f"expected a `start_frame` below {count}, the number of the video's frames, got {first}")
    if row["stride"] is not None:
        stride = _number(row["stride"], "stride")
    if row["sequence_length"] is not None:
        length = _number(row["sequence_length"], "sequence_length")
    else:
        end = count if row["end_frame"] is None else int(row.number("end_frame"))
        if end <= first:
            raise DataError(f"expected an `end_frame` after the `start_frame` {first}, got {end}")
        length = -(-(end - first) // stride)
    if length > _MOST:
        raise DataError(f"expected a clip of at most 2**20 frames, got {length}")
    return padded(first + stride * np.arange(length), 0, count, mode)


def _number(value: Any, name: str) -> int:
    """Return a number of a frame, a number of frames, or a stride.

    Raises:
        DataError: it is negative, 0 where there must be some, or no whole number.
    """
    number = np.asarray(value).reshape(-1)
    least = 0 if name in ("frames", "start_frame") else 1
    most = 1 << 31
    if len(number) != 1 or not least <= number[0] <= most or int(number[0]) != number[0]:
        raise DataError(f"expected a whole number from {least} to 2**31 as `{name}`, got {brief(value)}")
    return int(number[0])
