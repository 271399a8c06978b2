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
from ...video.engine_clips import as_result, shared_engines
from ...video.frame_index import FrameIndex, Ints
from ...video.indexing import open_video
from ...video.reduction import REDUCTION_DOC, require_reduction
from ...video.sampling import (
    PAD_NAMES,
    SLACK,
    FrameChoice,
    Rule,
    fill_of,
    first_at,
    last_at,
    pad_mode_of,
    padded,
)

_RANGE = ("start_frame", "start_time", "end_frame", "end_time", "sequence_length", "stride")
_CHOICE = ("fps", "keyframes_only", "uniform_sample", "random_crop")
_MOST = 1 << 20  # frames of a clip
_LARGEST = 1 << 31


class DecodeVideo(Operator, name="decoders.video"):
    """Decode frames of a video. Input: the bytes of its file, uint8 ``(n,)``. Output: the frames, FHWC of `dtype`.

    Without arguments all frames are decoded. `frames` lists the frames; or they are those from `start_frame` on,
    `stride` apart: `sequence_length` frames, or those before `end_frame`. Frames past the end of the video are replaced
    as `pad_mode` says, or with `pad_mode="none"` left out of a range and an error in `frames`. Each frame is that of
    FFmpeg's full decode, in the colors of the stream, as `readers.video` describes. A damaged picture among those that
    are needed is an error of its row, and so is a file that is no video.

    Beyond DALI, `times` lists seconds instead of frames, and a range may begin and end at a second. `fps` counts the
    frames that are shown at this rate, `keyframes_only` those that need no other frame. A clip of `sequence_length`
    frames may be at a random place of the range (`random_crop`) or extend over all of it (`uniform_sample`).

    Videos are decoded by FFmpeg, from the package `av` (extra `video`), or with `device="mixed"` by the GPU's video
    engines (NVDEC) to the same frames, as `readers.video` says.
    """

    devices = ("cpu",)
    draws = 1
    writes_to_gpu = True
    frames = arg("int", None, many=True, per_row=True, doc="Numbers of the frames, in any order; some may repeat.")
    times = arg("float", None, many=True, per_row=True, doc="Seconds: the frames that are shown then, in any order.")
    start_frame = arg("int", None, per_row=True, doc="The first frame; by default 0.")
    start_time = arg("float", None, per_row=True, doc="Second at which the first frame is shown.")
    end_frame = arg("int", None, per_row=True, doc="The frame before which the clip ends.")
    end_time = arg("float", None, per_row=True, doc="Second before which the last frame begins.")
    sequence_length = arg("int", None, per_row=True, doc="Number of frames; by default those up to the end.")
    stride = arg("int", None, per_row=True, doc="Distance between consecutive frames; by default 1.")
    fps = arg("float", 0.0, doc="Count the frames that are shown at this rate per second; 0: all frames.")
    keyframes_only = arg("bool", False, doc="Count key frames only, which need no other frame.")
    uniform_sample = arg("bool", False, doc="`sequence_length` frames at equal distances over the whole range.")
    random_crop = arg("bool", False, doc="`sequence_length` frames at a random place of the range.")
    pad_mode = arg(
        "str", "constant", choices=PAD_NAMES,
        doc="Frames in place of those past the end: of `fill_value`, the last one, mirrored ones, or none.",
    )  # fmt: skip
    fill_value = arg("object", (0,), doc="Value of the pixels of constant frames, 0 to 255, or one per channel.")
    image_type = arg("image_type", ImageType.RGB, doc="Channels: types.RGB, BGR, or YCbCr (as stored, in 8 bits).")
    dtype = arg(
        "dtype", DType.UINT8, doc="Element type: UINT8, or UINT16 with all bits of the samples, 65535 for white."
    )  # fmt: skip
    adjust_orientation = arg("bool", True, doc="Turn the frames as the file says that players do.")
    reduction = arg("int", 1, doc=REDUCTION_DOC)
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
        if args["dtype"] not in (DType.UINT8, DType.UINT16):
            raise ArgumentError(f"expected `dtype` UINT8 or UINT16, got {args['dtype']}")
        fill_of(args["fill_value"], _most(args["dtype"]))
        if ImageType(args["image_type"]) not in CHANNEL_ORDERS:
            raise ArgumentError(f"expected `image_type` RGB, BGR or YCbCr, got {ImageType(args['image_type']).name}")
        FrameChoice(args["fps"], args["keyframes_only"])
        require_reduction(args["reduction"])
        if args["uniform_sample"] and args["random_crop"]:
            raise ArgumentError("expected one of `uniform_sample` and `random_crop`, got both")
        given = [(args[k], k) for k in _RANGE if args.get(k) is not None]
        try:
            for value, key in given:
                _number(value, key)
            for key in ("frames", "times"):
                _numbers(args.get(key) or (), key)
        except DataError as error:
            raise ArgumentError(str(error)) from None

    def infer(self, c: Lowering, data: Value) -> Spec:
        c.expect(
            data.rank == 1 and data.dtype == DType.UINT8,
            f"expected the bytes of a file (uint8, one axis), got {data.dtype} with {data.rank} axes",
        )
        whole = c.const("uniform_sample") or c.const("random_crop")
        pairs = [("frames", "times"), ("start_frame", "start_time"), ("end_frame", "end_time")]
        pairs += [] if whole else [("sequence_length", "end_frame"), ("sequence_length", "end_time")]
        for one, other in pairs:
            c.expect(not (c.given(one) and c.given(other)), f"expected one of `{one}` and `{other}`, got both")
        listed = next((k for k in ("frames", "times") if c.given(k)), "")
        more = [f"`{k}`" for k in _RANGE if c.given(k)] + [f"`{k}`" for k in _CHOICE if listed and c.const(k)]
        more = [k for k in more if listed == "times" or k not in ("`fps`", "`keyframes_only`")]
        c.expect(not (listed and more), f"expected `{listed}` without {', '.join(more)}, got both")
        if whole:
            c.expect(c.given("sequence_length"), "expected `sequence_length`, the number of frames of the clip")
            c.expect(not (c.const("uniform_sample") and c.given("stride")), "`uniform_sample` decides the `stride`")
        return Spec(DType(c.const("dtype")), (self._length(c), None, None, 3), "FHWC")

    @staticmethod
    def _length(c: Lowering) -> int | None:
        """Return the number of frames if it is the same for all rows."""
        for listed in ("frames", "times"):
            if c.scope.args.get(listed) is not None:
                return len(c.scope.args[listed])
        if (pad_mode_of(c.const("pad_mode")) == "none" and not c.const("uniform_sample")) or c.given("frames"):
            return None
        length: int | None = c.scope.args.get("sequence_length")
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
        threads = rows[0].threads or default_threads()
        if rows[0].gpu is not None:  # the threads wait for the engines: it takes more of them than the processor's work
            threads = max(threads, default_threads())
        with ThreadPoolExecutor(min(len(rows), threads), thread_name_prefix="stoker-video") as pool:
            return list(pool.map(decode, rows, [x for (x,) in inputs]))

    def reference(self, row: RowContext, data: npt.NDArray[np.uint8]) -> Any:
        source = memoryview(np.ascontiguousarray(data).data)
        if not len(source):
            raise DataError("expected the bytes of a video, got none")
        pixels = ClipPixels(
            CHANNEL_ORDERS[ImageType(row["image_type"])], row["adjust_orientation"],
            fill_of(row["fill_value"], _most(row["dtype"])), np.uint16 if row["dtype"] == DType.UINT16 else np.uint8,
        )  # fmt: skip
        with contextlib.closing(open_video(source, row["reduction"])) as decoder:
            if decoder.index.damage and all(row[name] is None for name in _ENDS):
                raise DataError(
                    f"{decoder.index.damage}. `frames` and `end_frame` can choose frames among the "
                    f"{len(decoder.index)} that are left"
                )
            frames = _frames_of(row, decoder.index)
            if row.gpu is not None and row["reduction"] == 1 and (frames >= 0).any():
                on_gpu = shared_engines(row.gpu).decode_once(decoder, source, frames, pixels)
                if on_gpu is not None:
                    return as_result(on_gpu, on_gpu=True)
            clip = pixels.decode(decoder, [frames])[0]
        if isinstance(clip, BaseException):
            raise clip
        return clip


# Arguments without which a clip goes on to the end of the video.
_ENDS = ("frames", "times", "end_frame", "end_time", "sequence_length")


def _most(dtype: DType) -> int:
    return 65535 if dtype == DType.UINT16 else 255


def _gif(frames: int, height: int, width: int) -> npt.NDArray[np.uint8]:
    """Return the bytes of a GIF file of plain frames."""
    from PIL import Image

    first, *rest = (Image.new("RGB", (width, height), (40 * i, 90, 200 - 30 * i)) for i in range(frames))
    file = io.BytesIO()
    first.save(file, "GIF", save_all=True, append_images=rest, duration=40)
    return np.frombuffer(file.getvalue(), np.uint8)


def _frames_of(row: RowContext, index: FrameIndex) -> Ints:
    """Return the numbers of the frames of a row, -1 for constant ones.

    Raises:
        DataError: there are no such frames.
    """
    if row["times"] is not None:
        seconds = index.times
        at = np.searchsorted(seconds[:-1], _numbers(row["times"], "times") + SLACK, side="right") - 1
        past = _numbers(row["times"], "times") >= seconds[-1] - SLACK
        return _listed(np.where(past, len(index), at), len(index), row, "times")
    chosen = FrameChoice(row["fps"], row["keyframes_only"]).of(index)
    count = len(index) if chosen is None else len(chosen)
    if row["frames"] is not None:
        frames = _listed(_numbers(row["frames"], "frames"), count, row, "frames")
    else:
        frames = _range(row, index, chosen, count)
    return frames if chosen is None else np.where(frames >= 0, chosen[frames], -1)


def _listed(numbers: Ints, count: int, row: RowContext, name: str) -> Ints:
    """Return the frames of a list, those past the end replaced."""
    mode = pad_mode_of(row["pad_mode"])
    if not len(numbers):
        raise DataError(f"expected at least one frame in `{name}`, got none")
    if mode == "none" and numbers.max() >= count:
        limit = f"`frames` below {count}, the number of the video's frames" if name == "frames" else "`times` in it"
        got = int(numbers.max()) if name == "frames" else float(np.max(row[name]))
        raise DataError(f"expected {limit}, got {got}")
    return padded(numbers, 0, count, mode)


def _range(row: RowContext, index: FrameIndex, chosen: Ints | None, count: int) -> Ints:
    """Return the frames of a range, among those that are counted."""
    values = {k: None if row[k] is None else _number(row[k], k) for k in _RANGE}

    def position(frame: int) -> int:
        return frame if chosen is None else int(np.searchsorted(chosen, frame))

    first, end, length = int(values["start_frame"] or 0), values["end_frame"], values["sequence_length"]
    if values["start_time"] is not None:
        second = values["start_time"]
        shown = last_at(index.times[:-1], second) if second < index.times[-1] - SLACK else len(index)
        first = position(shown)
    if values["end_time"] is not None:
        end = position(first_at(index.times[:-1], values["end_time"]))
    if first >= count:
        name = "start_frame" if values["start_time"] is None else "start_time"
        limit = f"below {count}, the number of the video's frames" if name == "start_frame" else "within the video"
        raise DataError(f"expected a `{name}` {limit}, got {values[name] or 0:g}")
    end = count if end is None else int(end)
    if end <= first:
        raise DataError(f"expected the end of the range after its first frame, {first}, got {end}")
    stride = int(values["stride"] or 1)
    length = -(-(end - first) // stride) if length is None else int(length)
    if length > _MOST:
        raise DataError(f"expected a clip of at most 2**20 frames, got {length}")
    rule = Rule(length, stride, pad_mode_of(row["pad_mode"]), uniform=row["uniform_sample"], random=row["random_crop"])
    if rule.uniform or rule.random:
        return rule.frames(first, first, min(end, count), row.stream.uniform() if rule.random else 0.0)
    return rule.frames(first, 0, count)


def _number(value: Any, name: str) -> float:
    """Return a number of a frame, a number of frames, a stride, or seconds.

    Raises:
        DataError: it is none.
    """
    numbers = _numbers(value, name)
    if len(numbers) != 1:
        raise DataError(f"expected one number as `{name}`, got {brief(value)}")
    return numbers[0].item()  # type: ignore[no-any-return]


def _numbers(value: Any, name: str) -> npt.NDArray[Any]:
    """Return numbers of frames, or seconds.

    Raises:
        DataError: some are negative, too large, or no whole numbers where such are expected.
    """
    array = np.asarray(value).reshape(-1)
    numbers = array.astype(np.float64)
    if "time" in name:
        if not ((numbers >= 0) & np.isfinite(numbers)).all():
            raise DataError(f"expected seconds from 0 on as `{name}`, got {brief(value)}")
        return numbers
    least = 0 if name in ("frames", "start_frame") else 1
    if not ((numbers >= least) & (numbers <= _LARGEST) & (numbers == np.floor(numbers))).all():
        raise DataError(f"expected a whole number from {least} to 2**31 as `{name}`, got {brief(value)}")
    return array.astype(np.int64)
