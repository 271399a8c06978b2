# SPDX-License-Identifier: Apache-2.0
"""``eager.video``: random access to the frames of one video, on the CPU or a GPU, and videos of frames.

``eager.video.open(path)[10:50:2]`` are frames as a NumPy array. A :class:`Video` has the calls of TorchCodec's
``VideoDecoder`` and of decord's ``VideoReader`` too. Each frame is that of FFmpeg's full decode of the file.

With ``device="gpu"`` the GPU's video engines decode, and frames are arrays in its memory with the CPU's bits, which
``torch.from_dlpack`` and ``cupy.from_dlpack`` take without a copy.

Videos share one pool of decoders, so a program may have thousands of them open. Calls are thread-safe.
"""

from __future__ import annotations

import contextlib
import io
import os
import threading
import weakref
from collections.abc import Iterable, Iterator
from functools import partial
from typing import Any

import numpy as np

from ..contract.errors import ArgumentError, DataError, ResourceError, StateError
from ..contract.file_path import regular_file
from ..contract.text import brief, printable, reason_of
from ..contract.types import DType, ImageType
from ..contract.warning import warn
from ..contract.whole_number import as_whole_number
from ..readers._video import index_of
from ..video.clip import ClipPixels, excess_of
from ..video.colors import CHANNEL_ORDERS
from ..video.frame_index import KEY, FrameIndex
from ..video.indexing import index_video
from ..video.pool import POOL, VideoFile, VideoOwner
from ..video.reduction import REDUCTIONS, reducing_options
from ..video.writing import write_video
from .video_device import EngineVideo, gpu_number
from .video_frames import (
    Doubles,
    Frame,
    FrameBatch,
    Ints,
    Metadata,
    OutOfRangeError,
    Pixels,
    frame_of,
    metadata_of,
    seconds_of,
    times_of,
)

__all__ = ["Frame", "FrameBatch", "Metadata", "OutOfRangeError", "Video", "open", "write"]
_ORDERS = ("NHWC", "NCHW")
_ITERATED_BYTES = 32 << 20  # of frames that iteration decodes together


def open(
    source: str | bytes | os.PathLike[str], *, dimension_order: str = "NHWC", image_type: ImageType = ImageType.RGB,
    adjust_orientation: bool = True, dtype: DType = DType.UINT8, reduction: int = 1, device: str = "cpu",
    device_id: int | None = None,
) -> Video:  # fmt: skip
    """Open a video file. The first call for a file makes its frame index, which is kept as for ``readers.video``.

    >>> from stoker import eager
    >>> with eager.video.open("clip.mp4") as video:  # doctest: +SKIP
    ...     video[10:50:2].shape
    (20, 720, 1280, 3)

    Args:
        source: path of a file, or the contents of one (bytes, or an array of them, which is copied).
        dimension_order: axes of the frames: "NHWC", or "NCHW" as by default in TorchCodec (on the CPU a view of the
            same memory).
        image_type: channels: RGB, BGR, or YCbCr as stored.
        adjust_orientation: turn the frames as the file says that players do.
        dtype: UINT8, or UINT16 with all bits of the samples and 65535 for white.
        reduction: decode at 1/2, 1/4 or 1/8 of the height and width, with 2, 4 or 8, where the codec allows it.
        device: "cpu" for NumPy arrays; "gpu" for arrays in a GPU's memory, decoded by its video engines (NVDEC). What
            these do not decode is decoded on the CPU, with a warning, and copied.
        device_id: number of the GPU; by default the one that the launcher's variables give this process, or 0.

    Raises:
        ArgumentError: an argument is wrong.
        DataError: the file is no video, or none of its frames can be decoded, or its codec has no reduced sizes.
        DeviceError: the GPU cannot be used.
        OSError: the file cannot be read.
        ResourceError: the file needs more memory than there is.
        UnsupportedError: PyAV is not installed (the extra ``video``).
    """
    return Video(
        source, dimension_order=dimension_order, image_type=image_type, adjust_orientation=adjust_orientation,
        dtype=dtype, reduction=reduction, device=device, device_id=device_id,
    )  # fmt: skip


def write(
    path: str | os.PathLike[str], frames: Any, fps: float = 25, *, audio: Any = None, sample_rate: int | None = None
) -> None:
    """Write a video file, to look at a clip: H.264 (.mp4, .mov, .mkv) or VP9 (.webm) of good quality, which is lossy.

    Audio is AAC, or Opus in a .webm file, and is lossy too. It begins with the first frame. Neither is cut.
    The file says BT.709 and the limited range. It appears when it is complete, and replaces one of this name.

    >>> import numpy as np
    >>> from stoker import eager
    >>> eager.video.write("clip.mp4", np.zeros((10, 48, 64, 3), np.uint8), fps=30)  # doctest: +SKIP

    Args:
        path: path of the file, whose ending decides the form.
        frames: uint8 ``(frames, height, width, channels)`` with 3 channels, red, green and blue, or 1; or an iterable
            of ``(height, width, channels)``, such as a :class:`Video` or a generator, of which one is held at a time.
            H.264 has a chroma sample for 2 x 2 pixels if the height and the width are even, and one for each pixel
            otherwise, which browsers do not play.
        fps: frames per second, from 0.1 to 1000. Matroska and WebM round times to milliseconds.
        audio: samples of the audio track, float32 from -1 to 1 or int16, ``(samples,)`` or ``(samples, channels)`` with
            1 or 2 channels. By default the file has none.
        sample_rate: sampling rate of ``audio`` in Hz: one of AAC (8000, 16000, 22050, 44100, 48000 and others), or of
            Opus (8000, 12000, 16000, 24000, 48000).

    Raises:
        ArgumentError: an argument is wrong, or the frames have several shapes.
        OSError: the file cannot be written.
        UnsupportedError: PyAV is not installed (the extra ``video``), or has no encoder.
    """
    write_video(path, frames, fps, audio, sample_rate)


class Video:
    """Open video: ``len(video)``, ``video[10]``, ``video[10:50:2]``, ``video[[3, 1, 1]]``, and iteration.

    Indexing returns NumPy arrays, or arrays in a GPU's memory; calls with TorchCodec's names return a :class:`Frame` or
    a :class:`FrameBatch`. Negative numbers count from the end. Times are those of the file, in seconds. A damaged frame
    is an error.

    Args:
        source: path of a file, or the contents of one.
        dimension_order: axes of the frames.
        image_type: channels.
        adjust_orientation: turn the frames as the file says that players do.
        dtype: UINT8 or UINT16.
        reduction: number by which the height and the width of the frames are divided.
        device: "cpu" or "gpu".
        device_id: number of the GPU.
    """

    def __init__(
        self, source: str | bytes | os.PathLike[str], *, dimension_order: str = "NHWC",
        image_type: ImageType = ImageType.RGB, adjust_orientation: bool = True, dtype: DType = DType.UINT8,
        reduction: int = 1, device: str = "cpu", device_id: int | None = None,
    ) -> None:  # fmt: skip
        self._options: dict[str, Any] = {
            "dimension_order": dimension_order, "image_type": image_type, "adjust_orientation": adjust_orientation,
            "dtype": dtype, "reduction": reduction,
        }  # fmt: skip
        _check_options(self._options)
        number = gpu_number(device, device_id)
        self._options |= {"device": device, "device_id": device_id}
        self._pixels = ClipPixels(
            CHANNEL_ORDERS[image_type], adjust_orientation, dtype=np.uint16 if dtype == DType.UINT16 else np.uint8,
            reduction=reduction,
        )  # fmt: skip
        content = _content_of(source)
        find = partial(index_of, content) if isinstance(content, str) else partial(index_video, content)
        with _enough_memory():
            index: FrameIndex = find()
        _require_reducible(content, index, reduction)
        self._owner = VideoOwner()
        self._file = VideoFile(self._owner, 0, content, find, index.state, reduction)
        self._metadata = metadata_of(index, adjust_orientation, reduction)
        self._position = 0  # of `next`
        self._moving = threading.Lock()
        weakref.finalize(self, POOL.abandon, self._owner).atexit = False
        self._on_gpu: EngineVideo | None = None
        if number is not None:
            self._on_gpu = EngineVideo(number, self._file, self._pixels, planar=dimension_order == "NCHW")
            weakref.finalize(self, self._on_gpu.release).atexit = False
        if index.damage:
            warn(f"{self._name} is damaged: {index.damage}. Its other frames can be read", stacklevel=3)

    # ---- Python ----

    def __len__(self) -> int:
        return self._metadata.num_frames

    def __getitem__(self, key: Any) -> Pixels:
        numbers, is_one = self._numbers(key)
        found = self._decoded(numbers)
        return frame_of(found, 0) if is_one else found

    def __iter__(self) -> Iterator[Pixels]:
        """Yield all frames. Some are decoded together, and are views of one array."""
        count = min(max(_ITERATED_BYTES // self._frame_bytes(), 1), 16)
        for first in range(0, len(self), count):
            try:
                several = self[first : first + count]
                frames: Iterable[Pixels] = [frame_of(several, i) for i in range(several.shape[0])]
            except DataError:  # the frames before the damaged one are not
                frames = (self[number] for number in range(first, min(first + count, len(self))))
            yield from frames

    def __enter__(self) -> Video:
        self._require_open()
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def __reduce__(self) -> Any:
        """Return the state for pickle: the other process opens the file again."""
        self._require_open()
        return partial(open, **self._options), (self._file.source,)

    def __repr__(self) -> str:
        if self._owner.is_closed:
            return f"<Video {self._name}, closed>"
        m = self._metadata
        return (
            f"<Video {self._name}: {m.num_frames} frames of {m.height} x {m.width}, {m.average_fps:g} fps, {m.codec}>"
        )

    def close(self) -> None:
        """Close the video. Calls of other threads that are in flight are completed. Idempotent."""
        POOL.close(self._owner)
        if self._on_gpu is not None:
            self._on_gpu.release()

    @property
    def metadata(self) -> Metadata:
        """Return the facts of the video."""
        return self._metadata

    # ---- the calls of TorchCodec's VideoDecoder ----

    def get_frame_at(self, index: int) -> Frame:
        """Return a frame by its number.

        Args:
            index: its number; a negative one counts from the end.

        Raises:
            OutOfRangeError: there is no such frame.
            DataError: it cannot be decoded.
        """
        return self._batch(np.array([self._number(index)]))[0]

    def get_frames_at(self, indices: Any) -> FrameBatch:
        """Return frames by their numbers. Frames of one group of pictures are decoded together.

        Args:
            indices: their numbers, in any order, also repeated: a list, an array or a range.

        Raises:
            OutOfRangeError: there is no such frame.
            DataError: a frame cannot be decoded.
        """
        if as_whole_number(indices) is not None:
            raise ArgumentError(f"`eager.video`: expected a list of numbers of frames, got {brief(indices)}")
        return self._batch(self._numbers(indices)[0])

    def get_frames_in_range(self, start: int, stop: int, step: int = 1) -> FrameBatch:
        """Return the frames ``start``, ``start + step``, ... before ``stop``.

        Args:
            start: number of the first frame; a negative one counts from the end.
            stop: number after the last one; a negative one counts from the end.
            step: distance between the frames, at least 1.

        Raises:
            ArgumentError: an argument is wrong.
            DataError: a frame cannot be decoded.
        """
        number = as_whole_number(step)
        if number is None or number < 1:
            raise ArgumentError(f"`eager.video`: expected a whole number from 1 on as `step`, got {brief(step)}")
        return self._batch(self._numbers(slice(start, stop, number))[0])

    def get_frame_played_at(self, seconds: float) -> Frame:
        """Return the frame that is shown at a time: the last one that begins at it or before.

        Args:
            seconds: time, from ``metadata.begin_stream_seconds`` to before ``metadata.end_stream_seconds``.

        Raises:
            OutOfRangeError: no frame is shown then.
            DataError: the frame cannot be decoded.
        """
        return self.get_frames_played_at([seconds])[0]

    def get_frames_played_at(self, seconds: Any) -> FrameBatch:
        """Return the frames that are shown at times.

        Args:
            seconds: times, in any order: a list or an array.

        Raises:
            OutOfRangeError: no frame is shown at one of them.
            DataError: a frame cannot be decoded.
        """
        return self._batch(self._shown_at(times_of(seconds)))

    def get_frames_played_in_range(
        self, start_seconds: float, stop_seconds: float, fps: float | None = None
    ) -> FrameBatch:  # fmt: skip
        """Return the frames that are shown from a time on to before another one.

        Args:
            start_seconds: time, from ``metadata.begin_stream_seconds`` on.
            stop_seconds: time, up to ``metadata.end_stream_seconds``, which is not included.
            fps: rate at which frames are taken: those that are shown at ``start_seconds + k / fps``, with these times
                as ``pts_seconds``. None: each frame once.

        Raises:
            ArgumentError: an argument is wrong.
            OutOfRangeError: the times are outside of the video.
            DataError: a frame cannot be decoded.
        """
        start, stop = times_of([start_seconds, stop_seconds]).tolist()
        m = self._metadata
        if not m.begin_stream_seconds <= start <= stop <= m.end_stream_seconds:
            raise OutOfRangeError(
                f"`eager.video`: expected times from {m.begin_stream_seconds:g} to {m.end_stream_seconds:g} s in order "
                f"({self._name}), got {start:g} and {stop:g}"
            )
        if fps is None:
            if start == stop:
                return self._batch(np.zeros(0, np.int64))
            first = int(self._shown_at(np.array([start]))[0])
            end = int(np.searchsorted(self._begins(), stop, side="left"))
            return self._batch(np.arange(first, end))
        rate = float(times_of([fps])[0])
        if not rate > 0:
            raise ArgumentError(f"`eager.video`: expected a rate above 0 as `fps`, got {brief(fps)}")
        self._require_room((stop - start) * rate)
        moments = start + np.arange(np.ceil((stop - start) * rate) + 1) / rate
        moments = moments[moments < stop]
        found = self._batch(self._shown_at(moments))
        return FrameBatch(found.data, moments, np.full(len(moments), 1 / rate))

    # ---- the calls of decord's VideoReader ----

    def get_batch(self, indices: Any) -> Pixels:
        """Return frames by their numbers, as an array.

        Args:
            indices: their numbers, in any order, also repeated: a list, an array or a range.

        Raises:
            OutOfRangeError: there is no such frame.
            DataError: a frame cannot be decoded.
        """
        return self.get_frames_at(indices).data

    def get_avg_fps(self) -> float:
        """Return the average number of frames per second."""
        return self._metadata.average_fps

    def get_key_indices(self) -> list[int]:
        """Return the numbers of the frames that are decoded without others."""
        index = self._index()
        return [int(n) for n in np.flatnonzero(index.packet_flags[index.order] & KEY)]

    def get_frame_timestamp(self, idx: Any) -> Doubles:
        """Return the seconds at which frames begin and end.

        Args:
            idx: number of a frame, or a list or slice of them.

        Returns:
            float64 ``(2,)`` for a number, and ``(frames, 2)`` for several.

        Raises:
            OutOfRangeError: there is no such frame.
        """
        numbers, is_one = self._numbers(idx)
        begins, ends = self._begins(), self._ends()
        found = np.stack([begins[numbers], ends[numbers]], -1)
        return found[0] if is_one else found

    def next(self) -> Pixels:
        """Return the frame at the position, and move the position to the frame after it.

        Raises:
            StopIteration: the position is after the last frame.
            DataError: the frame cannot be decoded. The position has moved past it.
        """
        with self._moving:
            number = self._position
            self._position = min(number + 1, len(self))
        if number >= len(self):
            self._require_open()
            raise StopIteration
        return self[number]

    def seek(self, pos: int) -> None:
        """Move the position to the last frame at ``pos`` or before it that is decoded without others.

        Args:
            pos: number of a frame.

        Raises:
            OutOfRangeError: there is no such frame.
        """
        number = self._number(pos)
        self.seek_accurate(max((n for n in self.get_key_indices() if n <= number), default=0))

    def seek_accurate(self, pos: int) -> None:
        """Move the position to a frame.

        Args:
            pos: number of the frame.

        Raises:
            OutOfRangeError: there is no such frame.
        """
        number = self._number(pos)
        with self._moving:
            self._position = number

    def skip_frames(self, num: int = 1) -> None:
        """Move the position by a number of frames.

        Args:
            num: number of frames that :meth:`next` does not return.

        Raises:
            ArgumentError: it is no positive whole number.
        """
        number = as_whole_number(num)
        if number is None or number < 1:
            raise ArgumentError(f"`eager.video`: expected a whole number from 1 on as `num`, got {brief(num)}")
        with self._moving:
            self._position = min(self._position + number, len(self))

    # ---- numbers, times, pixels ----

    @property
    def _name(self) -> str:
        source = self._file.source
        return f"'{printable(source)}'" if isinstance(source, str) else f"a video of {len(source)} bytes"

    def _require_open(self) -> None:
        if self._owner.is_closed:
            raise StateError(f"`eager.video`: {self._name} is closed; open it again with `eager.video.open`")

    def _index(self) -> FrameIndex:
        self._require_open()
        with _enough_memory():
            return POOL.index(self._file)

    def _begins(self) -> Doubles:
        return seconds_of(self._index().pts, self._index())

    def _ends(self) -> Doubles:
        index = self._index()
        return seconds_of(np.append(index.pts[1:], index.end), index)

    def _number(self, value: Any) -> int:
        """Return the number of one frame, from 0 on."""
        number = as_whole_number(value)
        if number is None:
            raise ArgumentError(f"`eager.video`: expected the number of a frame, got {brief(value)}")
        return int(self._numbers(number)[0][0])

    def _numbers(self, key: Any) -> tuple[Ints, bool]:
        """Return numbers of frames from 0 on, and whether the key is a single number."""
        self._require_open()
        count, one = len(self), as_whole_number(key)
        if isinstance(key, slice):
            try:
                return np.array(range(*key.indices(count)), np.int64), False
            except (TypeError, ValueError) as error:
                raise ArgumentError(f"`eager.video`: expected a slice of whole numbers: {reason_of(error)}") from None
        try:
            numbers = np.asarray(key if one is None else [one])
        except Exception as error:  # a foreign `__array__` may raise anything, and NumPy refuses ragged lists
            text = f"expected numbers of frames, got {brief(key)}: {reason_of(error)}"
            raise ArgumentError(f"`eager.video`: {text}") from error
        if numbers.shape == (0,) and numbers.dtype.kind in "iuf":  # the list without elements is one of floats
            return np.zeros(0, np.int64), False
        if numbers.ndim != 1 or numbers.dtype.kind not in "iu":
            text = "expected the number of a frame, a slice, or a list of numbers"
            raise ArgumentError(f"`eager.video`: {text}, got {brief(key)}")
        wrong = np.flatnonzero((numbers < -count) | (numbers >= count))
        if len(wrong):
            raise OutOfRangeError(
                f"`eager.video`: expected a number from {-count} to {count - 1} ({self._name} has {count} frames), "
                f"got {numbers[wrong[0]]}"
            )
        numbers = numbers.astype(np.int64)
        return np.where(numbers < 0, numbers + count, numbers), one is not None

    def _shown_at(self, seconds: Doubles) -> Ints:
        """Return the numbers of the frames that are shown at times."""
        m = self._metadata
        outside = seconds[(seconds < m.begin_stream_seconds) | (seconds >= m.end_stream_seconds)]
        if len(outside):
            raise OutOfRangeError(
                f"`eager.video`: expected times from {m.begin_stream_seconds:g} to before {m.end_stream_seconds:g} s "
                f"({self._name}), got {outside[0]:g}"
            )
        return np.searchsorted(self._begins(), seconds, side="right") - 1

    def _frame_bytes(self) -> int:
        return 3 * self._metadata.height * self._metadata.width * np.dtype(self._pixels.dtype).itemsize

    def _require_room(self, frames: float) -> None:
        m = self._metadata
        excess = excess_of(frames, m.height, m.width, np.dtype(self._pixels.dtype).itemsize)
        if excess:
            raise ResourceError(f"`eager.video`: {excess}")

    def _batch(self, numbers: Ints) -> FrameBatch:
        begins, ends = self._begins()[numbers], self._ends()[numbers]
        return FrameBatch(self._decoded(numbers), begins, ends - begins)

    def _decoded(self, numbers: Ints) -> Pixels:
        self._require_open()
        self._require_room(len(numbers))
        with _enough_memory():
            found = self._found(numbers)
        if isinstance(found, DataError):
            raise DataError(f"`eager.video`: {found}") from found
        if isinstance(found, BaseException):
            with _enough_memory():
                raise found
        if self._options["dimension_order"] == "NHWC" or self._on_gpu is not None:
            return found
        return found.transpose(0, 3, 1, 2)

    def _found(self, numbers: Ints) -> Pixels | BaseException:
        """Decode frames on the device. Return them, or the error of one that failed."""
        m = self._metadata
        if self._on_gpu is not None:
            return self._on_gpu.decode(numbers) if len(numbers) else self._on_gpu.empty(m.height, m.width)
        if not len(numbers):
            return np.zeros((0, m.height, m.width, 3), self._pixels.dtype)
        with POOL.borrow(self._file, int(numbers.min())) as decoder:
            return self._pixels.decode(decoder, [numbers])[0]


@contextlib.contextmanager
def _enough_memory() -> Iterator[None]:
    """Turn errors about memory, also of FFmpeg for absurd sizes in damaged files, into Stoker's."""
    try:
        yield
    except MemoryError as error:
        reason = str(error) or "expected a video that fits into memory"
        raise ResourceError(f"`eager.video`: {reason}") from error


def _require_reducible(content: str | bytes, index: FrameIndex, reduction: int) -> None:
    try:
        reducing_options(content, index, reduction)
    except DataError as error:
        raise DataError(f"`eager.video.open`: {error}") from None


def _check_options(options: dict[str, Any]) -> None:
    order, channels, turned, dtype, reduction = options.values()
    for name, is_right, wanted in (
        ("dimension_order", isinstance(order, str) and order in _ORDERS, "NHWC or NCHW"),
        ("image_type", isinstance(channels, ImageType) and channels in CHANNEL_ORDERS, "RGB, BGR or YCbCr"),
        ("adjust_orientation", isinstance(turned, bool), "True or False"),
        ("dtype", isinstance(dtype, DType) and dtype in (DType.UINT8, DType.UINT16), "UINT8 or UINT16"),
        ("reduction", as_whole_number(reduction) in REDUCTIONS, "1, 2, 4 or 8"),
    ):
        if not is_right:
            text = f"expected {wanted} as `{name}`, got {brief(options[name])}"
            raise ArgumentError(f"`eager.video.open`: {text}")


def _content_of(source: Any) -> str | bytes:
    """Return a path that does not depend on the working folder, or the bytes of a file."""
    if isinstance(source, bytes):
        return source
    if isinstance(source, (bytearray, memoryview, np.ndarray)):
        try:
            view = memoryview(source)  # type: ignore[arg-type]
            if view.ndim == 1 and view.format in ("B", "b", "c"):
                return view.tobytes()
        except (ValueError, BufferError):  # types without a format; a view that was released
            pass
        text = f"expected the bytes of a file as uint8 (n,), got {brief(source)}"
        raise ArgumentError(f"`eager.video.open`: {text}")
    if isinstance(source, io.IOBase):
        text = f"expected a path or the contents of a file, got {brief(source)}: pass its `read()`"
        raise ArgumentError(f"`eager.video.open`: {text}")
    if isinstance(source, str) and "://" in source and not os.path.exists(source):
        text = f"expected a file of this machine, got the address {brief(source)}: read it, and pass the bytes"
        raise ArgumentError(f"`eager.video.open`: {text}")
    return os.path.abspath(regular_file(source, "eager.video.open"))
