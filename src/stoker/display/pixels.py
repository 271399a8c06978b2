# SPDX-License-Identifier: Apache-2.0
"""Pictures of arrays: any element type, any order of axes, masks, normalized floats, contact strips of clips."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import numpy.typing as npt
from PIL import Image

Array = npt.NDArray[np.generic]
Bytes = npt.NDArray[np.uint8]

FRAMES = 6  # of a contact strip, at most
_STRIP_GAP = 4
_STRIP_GROUND = (30, 33, 39)
_LEAST = 8  # extent of an image whose axes have no names; smaller arrays are boxes, points and matrices
_CLASSES = 64  # class numbers of a mask are smaller
_VOID = 255  # class number of pixels that are not annotated
_NOT_FINITE = (255, 0, 255)
_GOLDEN = 0.618034  # of a turn: neighbouring class numbers get distant hues


@dataclass(frozen=True)
class Scale:
    """Map from values to gray levels, the same for all rows of an output.

    Attributes:
        low, high: values that are black and white.
        classes: values are class numbers, and each has a colour.
    """

    low: float = 0.0
    high: float = 255.0
    classes: bool = False

    def __str__(self) -> str:
        return "a colour per class" if self.classes else f"black {self.low:.4g}, white {self.high:.4g}"

    def apply(self, plane: Array) -> Bytes:
        """Return gray levels of the same shape; of class numbers, colours ``(H, W, 3)``."""
        if self.classes:
            return _COLOURS[np.asarray(plane, np.int64)]
        if plane.dtype == np.uint8 and (self.low, self.high) == (0.0, 255.0):
            return np.asarray(plane, np.uint8)
        values = np.nan_to_num(np.asarray(plane, np.float64), nan=0.0, posinf=self.high, neginf=self.low)
        span = self.high - self.low
        shares = (values - self.low) / span if span > 0 else np.full(values.shape, 0.5)
        return (np.clip(shares, 0.0, 1.0) * 255.0 + 0.5).astype(np.uint8)


@dataclass(frozen=True)
class Pictures:
    """Pictures of one output's rows.

    Attributes:
        images: thumbnails, RGB; of clips, strips of thumbnails; None for a row without pixels.
        scale: their common map from values to gray levels.
        remark: the part of a row that the pictures show, if it is not all of it.
    """

    images: tuple[Image.Image | None, ...]
    scale: Scale = field(default_factory=Scale)
    remark: str = ""


def draw_rows(rows: Sequence[Array], layout: str, side: int) -> Pictures | None:
    """Draw rows as thumbnails of at most ``side`` pixels; None if the rows are no images.

    A clip (a layout with F) is a strip of up to ``FRAMES`` smaller thumbnails, from its first to its last frame.

    Args:
        rows: arrays of one element type and rank.
        layout: names of the axes; "" if they have none.
        side: limit of width and height. Smaller images keep their size.
    """
    is_clip = "F" in layout and all(row.ndim == len(layout) for row in rows)
    clips = [_spread_frames(np.moveaxis(row, layout.index("F"), 0)) if is_clip else row[None] for row in rows]
    inner = layout.replace("F", "", 1) if is_clip else layout
    found = [_find_axes(clip.shape[1:], inner) for clip in clips]
    axes = next((a for a in found if a is not None), None)
    if axes is None or any(a is None for a in found):
        return None
    planes = [[_plane(frame, axes) for frame in clip] for clip in clips]
    scale = _choose_scale([plane for clip in planes for plane, _ in clip])
    remark = next((text for clip in planes for _, text in clip if text), "")
    if not is_clip:
        return Pictures(tuple(_thumbnail(plane, scale, side) for ((plane, _),) in planes), scale, remark)
    counts = {row.shape[layout.index("F")] for row in rows}
    if max(counts, default=0) > FRAMES:
        lengths = f"{min(counts)} to {max(counts)}" if len(counts) > 1 else str(max(counts))
        remark = ", ".join([f"{FRAMES} of {lengths} frames per clip", *([remark] if remark else [])])
    strips = [_strip([_thumbnail(plane, scale, side * 2 // 3) for plane, _ in clip]) for clip in planes]
    return Pictures(tuple(strips), scale, remark)


def _spread_frames(clip: Array) -> Array:
    """Return at most ``FRAMES`` frames, from the first to the last one."""
    count = len(clip)
    return clip if count <= FRAMES else clip[np.linspace(0, count - 1, FRAMES).round().astype(int)]


def _strip(frames: Sequence[Image.Image | None]) -> Image.Image | None:
    """Return thumbnails side by side; None if there are none."""
    shown = [frame for frame in frames if frame is not None]
    if not shown:
        return None
    width = sum(frame.width for frame in shown) + _STRIP_GAP * (len(shown) - 1)
    strip = Image.new("RGB", (width, max(frame.height for frame in shown)), _STRIP_GROUND)
    left = 0
    for frame in shown:
        strip.paste(frame, (left, 0))
        left += frame.width + _STRIP_GAP
    return strip


def describe_values(array: Array, *, most: int = 8) -> str:
    """Describe a row that is no image: its numbers, its text, or its shape with statistics."""
    if array.size <= most and array.ndim <= 1 and not (text := _as_text(array)):
        return _number(array.item()) if array.size == 1 else f"[{', '.join(map(_number, array))}]"
    if text := _as_text(array):
        return text
    if array.ndim == 1 and array.dtype == np.uint8 and array[:3].tobytes() in (b"\xff\xd8\xff", b"\x89PN"):
        return f"encoded image, {array.size:,} bytes"
    return describe_statistics(array)


def describe_statistics(array: Array) -> str:
    """Describe an array by type, shape, range and mean."""
    head = f"{array.dtype} {tuple(array.shape)}"
    if not array.size:
        return f"{head}, empty"
    values = np.asarray(array, np.float64)
    finite = values[np.isfinite(values)]
    lost = values.size - finite.size
    if not finite.size:
        return f"{head}, no finite value"
    text = f"{head}, {_number(finite.min())} to {_number(finite.max())}, mean {_number(finite.mean())}"
    return text + (f", {lost:,} not finite" if lost else "")


def _number(value: object) -> str:
    if isinstance(value, (bool, np.bool_)):
        return str(bool(value))
    if isinstance(value, (int, np.integer)):
        return str(int(value))
    return f"{float(value):.4g}"  # type: ignore[arg-type]


def _as_text(array: Array) -> str:
    """Return the text that bytes hold as UTF-8; "" if they hold none."""
    if array.dtype != np.uint8 or array.ndim != 1 or not 1 < array.size <= 1000:
        return ""
    try:
        text = array.tobytes().decode()
    except UnicodeDecodeError:
        return ""
    return text if text.isprintable() and any(c.isalpha() for c in text) else ""


def _find_axes(shape: tuple[int, ...], layout: str) -> tuple[int, int, int | None] | None:
    """Return the axes of height, width and channels; None if the array is no image."""
    if layout and len(layout) == len(shape):
        if "H" not in layout or "W" not in layout:
            return None
        return layout.index("H"), layout.index("W"), layout.index("C") if "C" in layout else None
    if len(shape) == 2 and min(shape) >= _LEAST:
        return 0, 1, None
    if len(shape) == 3 and shape[2] in (1, 3, 4) and min(shape[:2]) >= _LEAST:
        return 0, 1, 2
    if len(shape) == 3 and shape[0] in (1, 3, 4) and min(shape[1:]) >= _LEAST:
        return 1, 2, 0
    return None


def _plane(row: Array, axes: tuple[int, int, int | None]) -> tuple[Array, str]:
    """Return the pixels of a row as ``(H, W)`` or ``(H, W, 3)``, and a remark about what is left out."""
    height, width, channels = axes
    index: list[int | slice] = [0] * row.ndim
    kept = [axis for axis in (height, width, channels) if axis is not None]
    for axis in kept:
        index[axis] = slice(None)
    others = [extent for axis, extent in enumerate(row.shape) if axis not in kept]
    remarks = [f"the first of {math.prod(others)} pictures per row"] if math.prod(others) > 1 else []
    if not row.size:
        return np.zeros((0, 0), row.dtype), ""
    order = sorted(kept)
    plane = row[tuple(index)].transpose([order.index(axis) for axis in kept])
    if channels is None:
        return plane, ", ".join(remarks)
    count = plane.shape[2]
    if count in (3, 4):
        remarks += ["the first 3 of 4 channels"] if count == 4 else []
        return plane[:, :, :3], ", ".join(remarks)
    remarks += [f"the first of {count} channels"] if count > 1 else []
    return plane[:, :, 0], ", ".join(remarks)


def _choose_scale(planes: Sequence[Array]) -> Scale:
    """Choose black and white so that values of common kinds of images look as expected."""
    planes = [plane for plane in planes if plane.size]
    if not planes or planes[0].dtype == np.bool_:
        return Scale(0.0, 1.0)
    if planes[0].dtype.kind in "iu":
        low, high = min(int(p.min()) for p in planes), max(int(p.max()) for p in planes)
        if all(p.ndim == 2 and _is_mask(p) for p in planes) and high > 0:
            return Scale(classes=True)
        return Scale() if low >= 0 and high <= 255 else Scale(float(min(low, 0)), float(high))
    finite = [p[np.isfinite(p)] for p in planes]
    ranges = [(float(f.min()), float(f.max())) for f in finite if f.size]
    if not ranges:
        return Scale(0.0, 1.0)
    lowest, highest = min(r[0] for r in ranges), max(r[1] for r in ranges)
    if lowest >= 0 and highest <= 1:
        return Scale(0.0, 1.0)
    if lowest >= 0 and 100 < highest <= 255:  # pixels of 8 bits that became floats
        return Scale()
    return Scale(lowest, highest)


def _is_mask(plane: Array) -> bool:
    """Return whether all values are class numbers; black-and-white images of 0 and 255 are none."""
    values: npt.NDArray[Any] = np.asarray(plane)
    void = values == _VOID
    is_class = (values >= 0) & (values < _CLASSES) | void
    return bool(is_class.all()) and not bool(((values == 0) | void).all())


def _thumbnail(plane: Array, scale: Scale, side: int) -> Image.Image | None:
    if not plane.size:
        return None
    step = max(1, max(plane.shape[:2]) // (4 * side))  # bounds the work for huge images
    plane = plane[::step, ::step]
    levels = scale.apply(plane)
    colours = levels if levels.ndim == 3 else np.repeat(levels[:, :, None], 3, axis=2)
    if plane.dtype.kind == "f" and not (finite := np.isfinite(plane)).all():
        colours = colours.copy()
        colours[~(finite if plane.ndim == 2 else finite.all(axis=2))] = _NOT_FINITE
    image = Image.fromarray(np.ascontiguousarray(colours))
    # Averages of class colours would be the colours of other classes.
    image.thumbnail((side, side), Image.Resampling.NEAREST if scale.classes else Image.Resampling.LANCZOS)
    return image


def _class_colours() -> Bytes:
    """Return a colour for each class number: black for 0, white for 255, distinct hues between."""
    number = np.arange(256)
    turns = (number * _GOLDEN % 1.0)[:, None] + np.array([0.0, -1 / 3, 1 / 3])
    hue = np.clip(np.abs((turns % 1.0) * 6 - 3) - 1, 0, 1)
    bright = np.where(number % 3 == 0, 0.65, 1.0)[:, None]
    colours = ((0.25 + 0.75 * hue) * bright * 255 + 0.5).astype(np.uint8)
    colours[0], colours[_VOID] = 0, 255
    return np.asarray(colours)


_COLOURS = _class_colours()
