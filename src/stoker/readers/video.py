# SPDX-License-Identifier: Apache-2.0
"""``readers.video``: clips of video files."""

from __future__ import annotations

from abc import ABC
from collections.abc import Mapping
from dataclasses import replace
from typing import Any, ClassVar

import numpy as np

from ..contract.argument import arg
from ..contract.columns import Column, DataSet
from ..contract.errors import ArgumentError
from ..contract.reader import OpenSource, Sampler
from ..contract.types import DType, ImageType
from ..video.clip import ClipPixels
from ..video.clip_audio import MAX_RATE
from ..video.colors import CHANNEL_ORDERS
from ..video.reduction import REDUCTION_DOC, require_reduction
from ..video.sampling import PAD_NAMES, FrameChoice, Rule, pad_mode_of
from ._clip_audio import audio_columns
from ._clip_frames import ClipFramesColumn, seconds_at
from ._columns import Values, fingerprint, ragged
from ._containers import is_missing
from ._sampled import SampledReader
from ._samplers import Bucketed
from ._video import ClipColumn, ClipStorage
from ._video_files import Bounds, FoundClips, find_clips, list_ranges

_MOST = 1 << 20
_NUMBERS = ("none", "scalar", "sequence")


class ClipReader(SampledReader, ABC):
    """Base class of readers of clips."""

    outputs = 1
    result_neutral: ClassVar[tuple[str, ...]] = (
        *SampledReader.result_neutral, "filenames", "file_root", "file_list", "base", "labels", "initial_fill",
        "prefetch_queue_depth", "read_ahead", "skip_cached_images", "dont_use_mmap", "lazy_init", "tensor_init_bytes",
    )  # fmt: skip
    filenames = arg("object", None, doc="Path of a video, or a list of paths.")
    file_root = arg(
        "str", None, doc="Folder with one sub-folder per class; with `file_list`, the folder of relative paths."
    )  # fmt: skip
    file_list = arg("str", None, doc='Text file with one "path label [start [end]]" per line.')
    base = arg(
        "str", None, doc="Folder of relative paths in `file_list`; by default `file_root`, or that of the list. DALI's "
        "is the current folder.",
    )  # fmt: skip
    labels = arg("object", None, doc="One integer per path of `filenames`; an empty list: the index of the path.")
    sequence_length = arg("int", doc="Number of frames of a clip.")
    stride = arg("int", 1, doc="Distance between consecutive frames of a clip.")
    uniform_sample = arg("bool", False, doc="One clip per file or range, of frames at equal distances from end to end.")
    random_crop = arg(
        "bool", False, doc="One clip per file or range, at a random place, which is another one in every epoch."
    )
    fps = arg(
        "float", 0.0, doc="Take the frames that are shown at this rate per second: `sequence_length`, `stride` and "
        "`step` count those; 0: all frames.",
    )  # fmt: skip
    keyframes_only = arg(
        "bool", False, doc="Take key frames only, which need no other frame: `sequence_length`, `stride` and `step` "
        "count those.",
    )  # fmt: skip
    size_group = arg(
        "int", 0, doc="Positions in the order whose clips have frames of one size, for batches of one size without "
        "resizing: the batch size times the number of shards. 0: clips of all sizes mix.",
    )  # fmt: skip
    enable_frame_num = arg(
        "str", "none", choices=_NUMBERS, doc='Return the number of the first frame ("scalar"), or of all ("sequence").'
    )  # fmt: skip
    enable_timestamps = arg("bool", False, doc="Return the seconds from the file's first frame to each frame.")
    with_audio = arg(
        "bool", False, doc="Return the audio of each clip too, float32 `(samples, channels)`, and its sampling rate."
    )
    sample_rate = arg("float", None, doc="Resample the audio to this rate in Hz; by default each file keeps its own.")
    downmix = arg("bool", False, doc="Return the mean over the audio's channels, without their axis.")
    image_type = arg("image_type", ImageType.RGB, doc="Channels: types.RGB, BGR, or YCbCr (as stored, in 8 bits).")
    adjust_orientation = arg("bool", True, doc="Turn the frames as the file says that players do.")
    reduction = arg("int", 1, doc=REDUCTION_DOC)
    initial_fill = arg("int", 1024, doc="No effect: a shuffle is over the whole data set, not over a buffer.")
    prefetch_queue_depth = arg("int", 1, doc="No effect: the pipeline's prefetch_queue_depth holds.")
    read_ahead = arg("bool", False, doc="No effect: rows are prefetched with their batches.")
    skip_cached_images = arg("bool", False, doc="No effect: there is no cache of decoded frames.")
    dont_use_mmap = arg("bool", False, doc="No effect: files are always read, never mapped.")
    lazy_init = arg("bool", False, doc="No effect: the files are indexed when the pipeline is built.")
    tensor_init_bytes = arg("int", 1048576, doc="No effect: memory is planned.")

    def validate(self, args: Mapping[str, Any]) -> None:
        """Check everything that does not depend on the disk."""
        super().validate(args)
        for key in ("sequence_length", "stride"):
            if not 1 <= args[key] <= _MOST:
                raise ArgumentError(f"expected a number from 1 to 2**20 as `{key}`, got {args[key]}")
        self._check_sampling(args)
        if not 0 <= args["size_group"] <= _MOST:
            raise ArgumentError(f"expected a number from 0 to 2**20 as `size_group`, got {args['size_group']}")
        if args["size_group"] and (args["sampler"] is not None or args["shuffle_after_epoch"]):
            raise ArgumentError("expected neither `sampler` nor `shuffle_after_epoch` with `size_group`, an order too")
        if args["step"] == 0 or args["step"] > _MOST:
            raise ArgumentError(f"expected a number from 1 to 2**20 as `step`, or -1, got {args['step']}")
        if ImageType(args["image_type"]) not in CHANNEL_ORDERS:
            raise ArgumentError(f"expected `image_type` RGB, BGR or YCbCr, got {ImageType(args['image_type']).name}")
        require_reduction(args["reduction"])

    @classmethod
    def ordering(cls, args: Mapping[str, Any]) -> Sampler:
        if args["size_group"]:
            raise ArgumentError("expected no `size_group` in a reader that is joined with others")
        return super().ordering(args)

    @classmethod
    def open(cls, args: Mapping[str, Any]) -> OpenSource:
        """Open the data set. With `size_group` the order depends on the sizes of the frames."""
        if not args["size_group"]:
            return super().open(args)
        shards, data = cls.shards(args), cls.dataset(args)
        storage = data.columns[0].storage
        assert isinstance(storage, ClipStorage)
        numbers = storage.table.size_numbers(turned=storage.pixels.adjust_orientation)
        limits = list(range(1, int(numbers.max()) + 1))
        sampler = Bucketed(numbers, args["size_group"], buckets=limits, shuffle=args["random_shuffle"])
        order = sampler.bind(len(data), data.labels, shards, cls.order_seed(args))
        return OpenSource(order, data.columns, data.fingerprint, shards, repr(sampler), data.notes)

    @staticmethod
    def _check_sampling(args: Mapping[str, Any]) -> None:
        FrameChoice(args["fps"], args["keyframes_only"])
        rate = args["sample_rate"]
        if rate is not None and not (np.isfinite(rate) and 0 < rate <= MAX_RATE):
            raise ArgumentError(f"expected a `sample_rate` above 0 Hz and up to 2**20, got {rate:g}")
        if not args["with_audio"] and (rate is not None or args["downmix"]):
            raise ArgumentError("expected `with_audio` with `sample_rate` and `downmix`, which are about the audio")
        if args["uniform_sample"] and (args["stride"] != 1 or args["step"] > 0):
            raise ArgumentError("expected neither `stride` nor `step` with `uniform_sample`, which decides the frames")
        if args["random_crop"] and (args["uniform_sample"] or args["step"] > 0):
            raise ArgumentError("expected neither `uniform_sample` nor `step` with `random_crop`, got both")

    @classmethod
    def has_labels(cls, args: Mapping[str, Any]) -> bool:
        """Return whether the clips have labels."""
        return args["labels"] is not None or is_missing(args["filenames"])

    def count_outputs(self, args: Mapping[str, Any]) -> int:
        more = (self.has_labels(args), args["enable_frame_num"] != "none", args["enable_timestamps"])
        return 1 + sum(map(bool, more)) + (2 if args["with_audio"] else 0)

    def returns_tuple(self, args: Mapping[str, Any]) -> bool:
        return self.count_outputs(args) > 1

    @classmethod
    def clips_of(
        cls, args: Mapping[str, Any], bounds: Bounds, rule: Rule, step: int, dtype: DType = DType.UINT8,
        *, normalized: bool = False, fill: tuple[int, ...] = (0,),
    ) -> DataSet:  # fmt: skip
        """Find the clips and return their columns.

        Raises:
            ArgumentError: there are no clips.
            OSError: the operating system fails.
        """
        ranges, has_labels = list_ranges(args)
        rule = replace(rule, uniform=args["uniform_sample"], random=args["random_crop"])
        choice = FrameChoice(args["fps"], args["keyframes_only"])
        found = find_clips(
            ranges, bounds, choice, rule, step, with_times=args["enable_timestamps"], with_audio=args["with_audio"]
        )
        pixels = ClipPixels(
            CHANNEL_ORDERS[ImageType(args["image_type"])],
            args["adjust_orientation"],
            fill,
            np.uint16 if dtype == DType.UINT16 else np.uint8,
            args["reduction"],
        )
        storage = ClipStorage(found.table, rule, pixels)
        columns: list[Column] = [ClipColumn(storage, dtype, normalized=normalized)]
        if has_labels:
            columns.append(Values("label", found.labels))
        columns += _random_numbers(args, found, storage) if rule.random else _numbers(args, found, rule)
        columns += audio_columns(storage, found.rates, args) if args["with_audio"] else []
        decides = fingerprint("\0".join(r.path for r in ranges), found.labels, found.table.fingerprint())
        return DataSet(tuple(columns), decides, "label" if has_labels else None, (found.note,) if found.note else ())


def _numbers(args: Mapping[str, Any], found: FoundClips, rule: Rule) -> list[Column]:
    """Return the columns of frame numbers and times; -1 for constant frames."""
    table, kind = found.table, args["enable_frame_num"]
    columns: list[Column] = []
    if kind == "scalar":
        first = [-1 if k in table.failures else int(table.frames(k, rule)[0]) for k in range(len(table))]
        columns.append(Values("frame_num", np.array(first, np.int32)[:, None]))
    if kind != "sequence" and not args["enable_timestamps"]:
        return columns
    nothing = np.full(rule.length, -1)
    frames = [nothing if k in table.failures else table.frames(k, rule) for k in range(len(table))]
    if kind == "sequence":
        columns.append(_column("frame_num", [f.astype(np.int32) for f in frames]))
    if args["enable_timestamps"]:
        seconds = [seconds_at(found.times, table.file(k), f) for k, f in enumerate(frames)]
        columns.append(_column("timestamps", seconds))
    return columns


def _random_numbers(args: Mapping[str, Any], found: FoundClips, storage: ClipStorage) -> list[Column]:
    """Return the columns of frame numbers and times of random clips."""
    kind = args["enable_frame_num"]
    columns: list[Column] = [] if kind == "none" else [ClipFramesColumn(storage, kind)]
    return [*columns, ClipFramesColumn(storage, "timestamps", found.times)] if args["enable_timestamps"] else columns


def _column(name: str, rows: list[Any]) -> Column:
    lengths = [len(row) for row in rows]
    if len(set(lengths)) == 1:
        return Values(name, np.stack(rows))
    return ragged(name, np.concatenate(rows), np.cumsum(lengths))


class VideoReader(ClipReader, name="readers.video"):
    """Read clips of videos. Outputs: the frames, FHWC of `dtype`; the label, int32 ``(1,)``, unless `filenames` are
    given without `labels`; with `enable_frame_num`, the number of the first frame, int32 ``(1,)``, or of all frames,
    int32 ``(F,)``; with `enable_timestamps`, their seconds, float64 ``(F,)``.

    A clip has `sequence_length` frames, `stride` frames apart; clips of a video begin `step` frames apart. Frames are
    those that FFmpeg's decoder gives for the whole file, in the order of their times, also with variable rates,
    pictures out of order and open groups of pictures. Colors follow the matrix and the range that the stream states;
    DALI takes BT.601 for all. The files are indexed when the pipeline is built, and indexes are kept.

    A clip with a damaged picture is an error of its row, and so is a file that cannot be read. A file that is cut off
    has the clips of what is left, and one more that fails.

    A line of `file_list` is ``path label [start [end]]``, in seconds or (with `file_list_frame_num`) frames, negative
    ones from the end. A start between two frames means the later one, an end the earlier one, and a clip ends before
    it.

    Videos are decoded by FFmpeg, from the package `av` (extra `video`), or with `device="gpu"` by the GPU's video
    engines (NVDEC) to the same frames. What the engines do not decode is decoded on the CPU, with a warning.
    """

    result_neutral: ClassVar[tuple[str, ...]] = (
        *ClipReader.result_neutral, "additional_decode_surfaces", "skip_vfr_check",
    )  # fmt: skip
    step = arg("int", -1, doc="Distance between the first frames of consecutive clips; -1: `sequence_length`.")
    pad_sequences = arg(
        "bool", False, doc="Complete clips at the end with frames of zeros, instead of leaving them out."
    )
    pad_mode = arg(
        "str", "none", choices=PAD_NAMES,
        doc="Frames that complete clips at the end: constant zeros, the last frame, or mirrored ones.",
    )  # fmt: skip
    file_list_frame_num = arg("bool", False, doc="Starts and ends in `file_list` are frames instead of seconds.")
    file_list_include_preceding_frame = arg(
        "bool", False, doc="A start between two frames means the earlier one, and an end the later one."
    )  # fmt: skip
    dtype = arg(
        "dtype", DType.UINT8,
        doc="Element type: UINT8; UINT16 with all bits of the samples, 65535 for white; or FLOAT of the bytes.",
    )  # fmt: skip
    normalized = arg("bool", False, doc="Values from 0 to 1, with `dtype` FLOAT.")
    channels = arg("int", 3, doc="Number of channels: 3.")
    additional_decode_surfaces = arg("int", 2, doc="No effect: decoders get the surfaces that they need.")
    skip_vfr_check = arg("bool", False, doc="No effect: frames are found by their times.")

    def validate(self, args: Mapping[str, Any]) -> None:
        """Check everything that does not depend on the disk."""
        super().validate(args)
        dtype = DType(args["dtype"])
        if dtype not in (DType.UINT8, DType.UINT16, DType.FLOAT):
            raise ArgumentError(f"expected `dtype` UINT8, UINT16 or FLOAT, got {dtype}")
        if args["normalized"] and dtype != DType.FLOAT:
            raise ArgumentError(f"expected `dtype` FLOAT with `normalized`, got {dtype}")
        if args["channels"] != 3:
            raise ArgumentError(f"expected 3 `channels`, got {args['channels']}")
        if args["pad_sequences"] and pad_mode_of(args["pad_mode"]) not in ("none", "constant"):
            raise ArgumentError(f'expected `pad_mode` "constant" with `pad_sequences`, got {args["pad_mode"]!r}')

    @classmethod
    def dataset(cls, args: Mapping[str, Any]) -> DataSet:
        """Find the clips.

        Raises:
            ArgumentError: the arguments contradict each other, or there are no clips.
            OSError: the operating system fails.
        """
        mode = "constant" if args["pad_sequences"] else pad_mode_of(args["pad_mode"])
        rule = Rule(args["sequence_length"], args["stride"], mode)
        precedes = args["file_list_include_preceding_frame"]
        bounds = Bounds(args["file_list_frame_num"], start_down=precedes, end_up=precedes)
        step = args["sequence_length"] if args["step"] < 0 else args["step"]
        return cls.clips_of(args, bounds, rule, step, DType(args["dtype"]), normalized=args["normalized"])
