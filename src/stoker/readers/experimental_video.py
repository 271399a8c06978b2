# SPDX-License-Identifier: Apache-2.0
"""``experimental.readers.video``: clips of video files, with the arguments of DALI's newer reader."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from ..contract.argument import arg
from ..contract.columns import DataSet
from ..video.sampling import PAD_NAMES, Rule, fill_of, pad_mode_of
from ._video_files import Bounds
from .video import ClipReader

_ROUNDINGS = {  # whether a start, and an end, between two frames mean the earlier and the later one
    "start_down_end_up": (True, True),
    "start_up_end_down": (False, False),
    "all_up": (False, True),
    "all_down": (True, False),
}


class ExperimentalVideoReader(ClipReader, name="experimental.readers.video"):
    """Read clips of videos. Outputs: as those of `readers.video`, which describes frames, colors and damage too.

    A line of `file_list` is ``path label [start [end]]``. Clips at the end of a video that lack frames are left out, or
    completed as `pad_mode` says.
    """

    step = arg("int", -1, doc="Distance between the first frames of consecutive clips; -1: `stride * sequence_length`.")
    pad_mode = arg(
        "str", "none", choices=PAD_NAMES,
        doc="Frames that complete clips at the end: of `fill_value`, the last one, or mirrored ones.",
    )  # fmt: skip
    fill_value = arg("object", (0,), doc="Value of the pixels of constant frames, 0 to 255, or one per channel.")
    file_list_format = arg(
        "str", "timestamps", choices=("timestamps", "frames"), doc="Meaning of starts and ends: seconds or frames."
    )  # fmt: skip
    file_list_rounding = arg(
        "str", "start_down_end_up", choices=tuple(_ROUNDINGS),
        doc="Whether a time between two frames means the earlier or the later one.",
    )  # fmt: skip
    file_list_include_end = arg("bool", True, doc="The end is the last frame of the range, not the one after it.")

    def validate(self, args: Mapping[str, Any]) -> None:
        """Check everything that does not depend on the disk."""
        super().validate(args)
        fill_of(args["fill_value"])

    @classmethod
    def dataset(cls, args: Mapping[str, Any]) -> DataSet:
        """Find the clips.

        Raises:
            ArgumentError: the arguments contradict each other, or there are no clips.
            OSError: the operating system fails.
        """
        mode = pad_mode_of(args["pad_mode"])
        rule = Rule(args["sequence_length"], args["stride"], mode)
        down, up = _ROUNDINGS[args["file_list_rounding"]]
        bounds = Bounds(
            args["file_list_format"] == "frames", start_down=down, end_up=up, include_end=args["file_list_include_end"]
        )
        step = args["stride"] * args["sequence_length"] if args["step"] < 0 else args["step"]
        return cls.clips_of(args, bounds, rule, step, fill=fill_of(args["fill_value"]))
