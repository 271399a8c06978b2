# SPDX-License-Identifier: Apache-2.0
"""``fn``: operators as functions on nodes. Written by tools/stubs.py."""

from collections.abc import Sequence
from os import PathLike
from typing import Any, Literal, TypeAlias, overload

import numpy as np
import numpy.typing as npt

from ..contract.types import DType, ImageType, InterpType
from .constants import Constant
from .data_node import DataNode

Input: TypeAlias = DataNode | Constant | npt.ArrayLike
DTypeLike: TypeAlias = DType | npt.DTypeLike

def audio_resample(
    x: Input,
    /,
    *,
    in_rate: float | DataNode | None = None,
    out_rate: float | DataNode | None = None,
    scale: float | DataNode | None = None,
    out_length: int | DataNode | None = None,
    quality: float = 50.0,
    dtype: DTypeLike | None = None,
    filter: Literal["exact", "dali"] = "exact",
    name: str | None = None,
    device: Literal["cpu", "gpu", "mixed"] | None = None,
    preserve: bool = False,
    bytes_per_sample_hint: int | Sequence[int] | npt.NDArray[np.generic] = 0,
) -> DataNode:
    """Convert a signal to another sampling rate. Input: ``(n,)`` or ``(n, channels)``, float32 or signed integers,
    whose full scale is 1. Output: ``ceil(n * out_rate / in_rate)`` samples.

    Output o is the signal at input ``o * in_rate / out_rate``, a fraction of whole numbers without rounding. The
    filter is a windowed sinc (Kaiser) that removes what a lower rate cannot hold, by ``40 + 0.8 quality`` dB from
    half of the lower rate on. A higher ``quality`` also passes more: up to 0.69 of half of the lower rate for 50,
    0.82 for 75, and 0.88 for 100. Beyond its ends the signal is 0. Ratios with many phases interpolate between 2048
    filters. All machines give the same bits.

    DALI has no anti-aliasing filter: a 9 kHz tone comes back at full level as 7 kHz if 44.1 kHz become 16 kHz.
    ``stoker.dali`` keeps this meaning (``filter="dali"``), within 1e-3.

    Args:
        in_rate: Sampling rate of the input, with `out_rate`.
        out_rate: Sampling rate of the output.
        scale: Samples of the output per sample of the input, in place of rates.
        out_length: Samples of the output, in place of rates.
        quality: 0 (fast, 3 lobes of the sinc) to 100 (64 lobes); 50: 16 lobes, 75: 36.
        dtype: Element type of the output, float32 or a signed integer; by default the input's.
        filter: "exact", or "dali": DALI's filter, with its aliasing.
        name: Name of the node, shown in errors and by which outputs and readers are found.
        device: Where the operator runs.
        preserve: Run the operator also if its output is not used.
    """
    ...

def autocontrast(
    x: Input,
    /,
    *,
    name: str | None = None,
    device: Literal["cpu", "gpu", "mixed"] | None = None,
    preserve: bool = False,
    bytes_per_sample_hint: int | Sequence[int] | npt.NDArray[np.generic] = 0,
) -> DataNode:
    """Stretch the values of each channel to the type's full range. Input: images of uint8, uint16 or float32, with axes
    H and W. Output: the same.

    The smallest element of a channel becomes 0, the largest one ``full``: the type's largest number, 1 for floats.
    Channels of one value stay as they are. Frames of a video are independent. Equal to torchvision's ``autocontrast``,
    bit for bit; as there, fractions are cut off.

    Args:
        name: Name of the node, shown in errors and by which outputs and readers are found.
        device: Where the operator runs.
        preserve: Run the operator also if its output is not used.
    """
    ...

def batch_permutation(
    *,
    allow_repetitions: bool = False,
    no_fixed_points: bool = False,
    seed: int | None = None,
    name: str | None = None,
    device: Literal["cpu", "gpu", "mixed"] | None = None,
    preserve: bool = False,
    bytes_per_sample_hint: int | Sequence[int] | npt.NDArray[np.generic] = 0,
) -> DataNode:
    """Draw a permutation of the batch: a row number per row, int32, for ``permute_batch``.

    Every row draws a number, and the order of these numbers gives the permutation. It depends on which rows share the
    batch. In a branch of an ``if``, the branch's rows are the batch, and numbered from 0. Runs in Python.

    Args:
        allow_repetitions: Draw every index by itself: some rows twice, some not at all.
        no_fixed_points: No row gets its own number.
        seed: Seed of this operator's draws; by default it follows from the pipeline's.
        name: Name of the node, shown in errors and by which outputs and readers are found.
        device: Where the operator runs.
        preserve: Run the operator also if its output is not used.
    """
    ...

def batched_nms(
    boxes: Input,
    scores: Input,
    labels: Input,
    /,
    *,
    iou_threshold: float | DataNode = 0.5,
    max_outputs: int = 0,
    name: str | None = None,
    device: Literal["cpu", "gpu", "mixed"] | None = None,
    preserve: bool = False,
    bytes_per_sample_hint: int | Sequence[int] | npt.NDArray[np.generic] = 0,
) -> DataNode:
    """Keep the boxes that no box of the same label with a higher score overlaps too much.

    Inputs: boxes ``x0, y0, x1, y1`` of shape (N, 4), scores (N,), and labels (N,), whole numbers. Output: the numbers
    of the kept boxes by descending score, int64. This is ``nms(boxes, scores, labels=labels)``.

    On a GPU the length of a row is known when the batch is done. There, ``fn.gather`` and operators on single elements
    may follow, and with gathered boxes ``fn.roi_align``, ``fn.roi_pool`` and ``fn.box_iou``. Others are refused.

    Args:
        iou_threshold: Overlap (intersection over union) above which the box with the lower score is suppressed.
        max_outputs: Greatest number of boxes to keep, the best ones; 0: no limit.
        name: Name of the node, shown in errors and by which outputs and readers are found.
        device: Where the operator runs.
        preserve: Run the operator also if its output is not used.
    """
    ...

def bb_flip(
    x: Input,
    /,
    *,
    horizontal: int | DataNode = 1,
    vertical: int | DataNode = 0,
    ltrb: bool = False,
    name: str | None = None,
    device: Literal["cpu", "gpu", "mixed"] | None = None,
    preserve: bool = False,
    bytes_per_sample_hint: int | Sequence[int] | npt.NDArray[np.generic] = 0,
) -> DataNode:
    """Mirror bounding boxes in an image whose sides are 1 long. Input: floats, four numbers for each box, for example
    (N, 4). Output: the same shape and type.

    Boxes are mirrored through their corners: ``1 - x1, 1 - x0``. With x, y, width and height (the default), ``x1`` is
    ``x + width`` and the new width is the difference of the new corners, so that a width of 0.3 may be 0.29999995.
    Numbers along an axis that is not mirrored keep their bits. Boxes outside the image are not refused. The number of
    elements must be a multiple of 4; DALI returns zeros for others.

    Args:
        horizontal: Mirror left and right where not 0.
        vertical: Mirror top and bottom where not 0.
        ltrb: Boxes are left, top, right, bottom instead of x, y, width, height.
        name: Name of the node, shown in errors and by which outputs and readers are found.
        device: Where the operator runs.
        preserve: Run the operator also if its output is not used.
    """
    ...

def bbox_paste(
    x: Input,
    /,
    *,
    ratio: float | DataNode,
    ltrb: bool = False,
    paste_x: float | DataNode = 0.5,
    paste_y: float | DataNode = 0.5,
    name: str | None = None,
    device: Literal["cpu", "gpu", "mixed"] | None = None,
    preserve: bool = False,
    bytes_per_sample_hint: int | Sequence[int] | npt.NDArray[np.generic] = 0,
) -> DataNode:
    """Move bounding boxes with their image onto a larger canvas (`paste`). Input: float32, boxes along the last axis of
    4 elements, relative to the image: (x, y, w, h), or with ``ltrb`` (left, top, right, bottom). Output: the same,
    relative to the canvas.

    Numbers are multiplied by ``1 / ratio``; places are then moved by ``paste * (1 - 1 / ratio)``, in float32.

    Args:
        ratio: Extents of the canvas as multiples of the image's, at least 1.
        ltrb: Boxes are (left, top, right, bottom).
        paste_x: Horizontal place of the image, from 0 (left) to 1 (right).
        paste_y: Vertical place of the image, from 0 (top) to 1 (bottom).
        name: Name of the node, shown in errors and by which outputs and readers are found.
        device: Where the operator runs.
        preserve: Run the operator also if its output is not used.
    """
    ...

def bbox_rotate(
    boxes: Input,
    /,
    *labels: Input,
    angle: float | DataNode,
    input_shape: int | Sequence[int | DataNode] | npt.NDArray[np.generic] | DataNode,
    bbox_layout: str = "xyXY",
    bbox_normalized: bool = True,
    keep_size: bool = False,
    mode: Literal["expand", "fixed", "halfway"] = "expand",
    remove_threshold: float = 0.1,
    shape_layout: str = "HW",
    size: float | Sequence[float | DataNode] | npt.NDArray[np.generic] | DataNode | None = None,
    name: str | None = None,
    device: Literal["cpu", "gpu", "mixed"] | None = None,
    preserve: bool = False,
    bytes_per_sample_hint: int | Sequence[int] | npt.NDArray[np.generic] = 0,
) -> DataNode:
    """Rotate bounding boxes with their image (`rotate`). Inputs: boxes, float32 (N, 4); optionally N labels, any type.
    Outputs: the boxes that are left, each the smallest one around its rotated corners, on the canvas of `rotate`; their
    labels, if there are any.

    Boxes are cut at the canvas. A box is dropped if less than ``remove_threshold`` of its area is left, or nothing.
    ``mode`` "fixed" shrinks a box to the size that it had, with its longer side along the longer side of the rotated
    box; "halfway" is between both. Computed in double and rounded once. The operator runs on the CPU, as in DALI: a row
    has few boxes.

    Args:
        angle: Angle in degrees, counter-clockwise.
        input_shape: Size of the image in pixels; channels may follow.
        bbox_layout: Numbers of a box: xyXY or xyWH.
        bbox_normalized: Boxes are relative to the image, else in pixels.
        keep_size: The canvas has the image's size.
        mode: Size of the boxes: expand, fixed or halfway.
        remove_threshold: Least share of a box within the canvas.
        shape_layout: Order of `input_shape`: HW or WH, with or without C.
        size: Size of the canvas in pixels, (height, width).
        name: Name of the node, shown in errors and by which outputs and readers are found.
        device: Where the operator runs.
        preserve: Run the operator also if its output is not used.
    """
    ...

def boolean_mask(
    x: Input,
    mask: Input,
    /,
    *,
    name: str | None = None,
    device: Literal["cpu", "gpu", "mixed"] | None = None,
    preserve: bool = False,
    bytes_per_sample_hint: int | Sequence[int] | npt.NDArray[np.generic] = 0,
) -> DataNode:
    """Keep the elements along the first axis where a mask is true: boxes above a score, audio that is not silent.

    Inputs: data of at least one axis, and a mask of type bool with one axis, as long as the first axis of the data.
    Output: the kept elements in their order. Rows have different lengths; without a true element a row is empty. Exact.

    On a GPU the length of a row is known when the batch is done. There, operators on single elements may follow, others
    are refused.

    Args:
        name: Name of the node, shown in errors and by which outputs and readers are found.
        device: Where the operator runs.
        preserve: Run the operator also if its output is not used.
    """
    ...

def box_encoder(
    boxes: Input,
    labels: Input,
    /,
    *,
    anchors: float | Sequence[float] | npt.NDArray[np.generic],
    criteria: float = 0.5,
    means: float | Sequence[float] | npt.NDArray[np.generic] = (0.0, 0.0, 0.0, 0.0),
    offset: bool = False,
    scale: float = 1.0,
    stds: float | Sequence[float] | npt.NDArray[np.generic] = (1.0, 1.0, 1.0, 1.0),
    name: str | None = None,
    device: Literal["cpu", "gpu", "mixed"] | None = None,
    preserve: bool = False,
    bytes_per_sample_hint: int | Sequence[int] | npt.NDArray[np.generic] = 0,
) -> tuple[DataNode, DataNode]:
    """Turn the boxes of an image into a target for each anchor of a detector such as SSD. Inputs: boxes (left, top,
    right, bottom), float32 (N, 4); their labels, int32 (N,) or (N, 1). Outputs: a box (centre x, centre y, width,
    height) for each anchor, float32 (M, 4); a label for each, int32 (M,).

    A box belongs to the anchor with the largest IoU, and to each anchor whose IoU with it exceeds ``criteria`` and is
    the largest of the anchor; of equal ones the last counts. All other anchors get label 0 and their own box; with
    ``offset`` zeros. IoU is computed in float32. Boxes and labels of different numbers, and no anchors, are refused.

    Args:
        anchors: Boxes (left, top, right, bottom) of all anchors, one after another.
        criteria: IoU that a match exceeds, from 0 to 1.
        means: Subtracted from offsets: x, y, width, height.
        offset: Targets are offsets from their anchors.
        scale: Factor of boxes and anchors before offsets are computed.
        stds: Divisors of offsets.
        name: Name of the node, shown in errors and by which outputs and readers are found.
        device: Where the operator runs.
        preserve: Run the operator also if its output is not used.
    """
    ...

def box_iou(
    a: Input,
    b: Input,
    /,
    *,
    kind: Literal["iou", "giou", "diou", "ciou"] = "iou",
    rotated: bool = False,
    name: str | None = None,
    device: Literal["cpu", "gpu", "mixed"] | None = None,
    preserve: bool = False,
    bytes_per_sample_hint: int | Sequence[int] | npt.NDArray[np.generic] = 0,
) -> DataNode:
    """Compute the overlap of all pairs of boxes of two sets.

    Inputs: boxes (N, 4) and (M, 4), ``x0, y0, x1, y1``, both float32 or both float64; with ``rotated`` (N, 5) and (M,
    5), ``centre x, centre y, width, height, degrees``. Output: (N, M) of their type.

    Kinds: intersection over union ("iou"), generalized ("giou"), distance ("diou") and complete ("ciou"). The first
    three have the bits of torchvision's functions, with 1e-7 as the epsilon of "diou" and "ciou". "ciou" rounds its two
    arc tangents correctly in nearly all cases, while torch's depend on the processor. Boxes without area give NaN where
    torchvision does.

    On a GPU, the first boxes may be kept ones (``nms`` and others) that ``fn.gather`` has taken. The output has a row
    for each, whose number is known when the batch is done. As second boxes they are refused: a row of the output would
    be as long as a number that only the GPU knows.

    Args:
        kind: Overlap: iou, giou, diou or ciou.
        rotated: Boxes have an angle. Only for iou.
        name: Name of the node, shown in errors and by which outputs and readers are found.
        device: Where the operator runs.
        preserve: Run the operator also if its output is not used.
    """
    ...

def brightness(
    x: Input,
    /,
    *,
    dtype: DTypeLike | None = None,
    brightness: float | DataNode = 1.0,
    brightness_shift: float | DataNode = 0.0,
    name: str | None = None,
    device: Literal["cpu", "gpu", "mixed"] | None = None,
    preserve: bool = False,
    bytes_per_sample_hint: int | Sequence[int] | npt.NDArray[np.generic] = 0,
) -> DataNode:
    """Change the brightness: ``brightness * x + brightness_shift * full``. Input: any shape. Output: the same.

    ``full`` is the output type's largest value, 1 for floats.

    Args:
        dtype: Element type of the output; by default the input's.
        brightness: Factor of the brightness; 1: unchanged.
        brightness_shift: Added, as a share of full intensity: 255 for uint8, 1 for floats.
        name: Name of the node, shown in errors and by which outputs and readers are found.
        device: Where the operator runs.
        preserve: Run the operator also if its output is not used.
    """
    ...

def brightness_contrast(
    x: Input,
    /,
    *,
    dtype: DTypeLike | None = None,
    brightness: float | DataNode = 1.0,
    brightness_shift: float | DataNode = 0.0,
    contrast: float | DataNode = 1.0,
    contrast_center: float | DataNode | None = None,
    name: str | None = None,
    device: Literal["cpu", "gpu", "mixed"] | None = None,
    preserve: bool = False,
    bytes_per_sample_hint: int | Sequence[int] | npt.NDArray[np.generic] = 0,
) -> DataNode:
    """Change brightness and contrast. Input: any shape and type. Output: the same shape.

    ``brightness * (contrast_center + contrast * (x - contrast_center)) + brightness_shift * full``, where ``full`` is
    the output type's largest value, 1 for floats. Sums are float32's, float64's for elements of 32 bits and more.

    Args:
        dtype: Element type of the output; by default the input's.
        brightness: Factor of the brightness; 1: unchanged.
        brightness_shift: Added, as a share of full intensity: 255 for uint8, 1 for floats.
        contrast: Factor of the contrast; 0: grey, 1: unchanged.
        contrast_center: Intensity that stays; by default 0.5 for floats, half the range for integers.
        name: Name of the node, shown in errors and by which outputs and readers are found.
        device: Where the operator runs.
        preserve: Run the operator also if its output is not used.
    """
    ...

def cast(
    x: Input,
    /,
    *,
    dtype: DTypeLike,
    name: str | None = None,
    device: Literal["cpu", "gpu", "mixed"] | None = None,
    preserve: bool = False,
    bytes_per_sample_hint: int | Sequence[int] | npt.NDArray[np.generic] = 0,
) -> DataNode:
    """Change the element type. Input: any shape and type. Output: the same shape in ``dtype``.

    Floats round half to even, values outside the range saturate, NaN becomes 0, and every number except 0 becomes True.
    NumPy has no bfloat16: such arrays have its bits as uint16.

    Args:
        dtype: Element type of the output.
        name: Name of the node, shown in errors and by which outputs and readers are found.
        device: Where the operator runs.
        preserve: Run the operator also if its output is not used.
    """
    ...

def cast_like(
    x: Input,
    like: Input,
    /,
    *,
    name: str | None = None,
    device: Literal["cpu", "gpu", "mixed"] | None = None,
    preserve: bool = False,
    bytes_per_sample_hint: int | Sequence[int] | npt.NDArray[np.generic] = 0,
) -> DataNode:
    """Change the element type to that of another tensor. Inputs: data, and a tensor of any shape whose type is taken.
    Output: the data's shape and layout.

    Values are converted as `cast` does: floats round half to even, values outside the range saturate, NaN becomes 0.
    DALI's CPU form rounds halves away from zero.

    Args:
        name: Name of the node, shown in errors and by which outputs and readers are found.
        device: Where the operator runs.
        preserve: Run the operator also if its output is not used.
    """
    ...

def cat(
    *inputs: Input,
    axis: int = 0,
    axis_name: str | None = None,
    name: str | None = None,
    device: Literal["cpu", "gpu", "mixed"] | None = None,
    preserve: bool = False,
    bytes_per_sample_hint: int | Sequence[int] | npt.NDArray[np.generic] = 0,
) -> DataNode:
    """Join tensors along an existing axis. Output: the inputs' type, or the type that holds all of them.

    Up to eight tensors with sixteen elements along the axis in total (channels, small vectors) join with the operators
    around them, if their extents along the axis are known when the pipeline is built. Others are copied, on the CPU.

    Args:
        axis: The axis to join along.
        axis_name: The axis by name; wins over `axis`.
        name: Name of the node, shown in errors and by which outputs and readers are found.
        device: Where the operator runs.
        preserve: Run the operator also if its output is not used.
    """
    ...

def channel_shuffle(
    x: Input,
    /,
    *,
    channels: int = 3,
    seed: int | None = None,
    name: str | None = None,
    device: Literal["cpu", "gpu", "mixed"] | None = None,
    preserve: bool = False,
    bytes_per_sample_hint: int | Sequence[int] | npt.NDArray[np.generic] = 0,
) -> DataNode:
    """Put the channels of an image into a random order. Input: images of any type with an axis C. Output: the same.

    Every order is equally probable. All frames of a video have the same order.

    Args:
        channels: Number of channels, up to 16, if it is known only at run time.
        seed: Seed of this operator's draws; by default it follows from the pipeline's.
        name: Name of the node, shown in errors and by which outputs and readers are found.
        device: Where the operator runs.
        preserve: Run the operator also if its output is not used.
    """
    ...

def clahe(
    x: Input,
    /,
    *,
    tiles_x: int,
    tiles_y: int,
    clip_limit: float,
    luma_only: bool = True,
    bins: int = 256,
    name: str | None = None,
    device: Literal["cpu", "gpu", "mixed"] | None = None,
    preserve: bool = False,
    bytes_per_sample_hint: int | Sequence[int] | npt.NDArray[np.generic] = 0,
) -> DataNode:
    """Equalize the contrast of every part of an image, within a limit. Input: uint8, HW, HWC, CHW or these with a
    leading F. Output: the same.

    The image is divided into tiles, each of which has a histogram. Counts above the limit are distributed over all
    values, and a pixel is mapped by the tables of the four tiles around it. The bytes are those of OpenCV's
    ``createCLAHE``. Of an RGB image the lightness is equalized, in OpenCV's L*a*b* of 8 bits, also on a GPU, where
    DALI's bytes differ.

    Args:
        tiles_x: Number of tiles across, 1 to 256.
        tiles_y: Number of tiles down, 1 to 256.
        clip_limit: Largest count of a value, in multiples of the mean count of a tile's values, and at least 1.
            0: no limit.
        luma_only: Equalize the lightness of RGB images. Other images must have one channel. False: every
            channel by itself.
        bins: Number of values of a histogram. It has no effect: there are 256 values.
        name: Name of the node, shown in errors and by which outputs and readers are found.
        device: Where the operator runs.
        preserve: Run the operator also if its output is not used.
    """
    ...

def coarse_dropout(
    x: Input,
    /,
    *,
    holes: int | Sequence[int] | npt.NDArray[np.generic] = (1, 8),
    height: float | Sequence[float] | npt.NDArray[np.generic] = (0.1, 0.2),
    width: float | Sequence[float] | npt.NDArray[np.generic] = (0.1, 0.2),
    fill_value: float | Sequence[float | DataNode] | npt.NDArray[np.generic] | DataNode = 0.0,
    seed: int | None = None,
    name: str | None = None,
    device: Literal["cpu", "gpu", "mixed"] | None = None,
    preserve: bool = False,
    bytes_per_sample_hint: int | Sequence[int] | npt.NDArray[np.generic] = 0,
) -> DataNode:
    """Fill random rectangles of an image. Input: images of any type, with axes H and W. Output: the same.

    The number of holes, their sizes and their places are drawn for each sample. A hole has at least one pixel and lies
    inside of the image. All channels and frames have the same holes. Cutout is ``holes=1``. Source: DeVries and Taylor,
    "Improved regularization of convolutional neural networks with Cutout" (2017).

    Args:
        holes: Smallest and largest number of holes, or the number; at most 32.
        height: Range of a hole's height as a share of the image's, or the share.
        width: Range of a hole's width as a share of the image's, or the share.
        fill_value: One value, or one for each channel.
        seed: Seed of this operator's draws; by default it follows from the pipeline's.
        name: Name of the node, shown in errors and by which outputs and readers are found.
        device: Where the operator runs.
        preserve: Run the operator also if its output is not used.
    """
    ...

def color_space_conversion(
    x: Input,
    /,
    *,
    image_type: ImageType,
    output_type: ImageType,
    name: str | None = None,
    device: Literal["cpu", "gpu", "mixed"] | None = None,
    preserve: bool = False,
    bytes_per_sample_hint: int | Sequence[int] | npt.NDArray[np.generic] = 0,
) -> DataNode:
    """Convert between RGB, BGR, GRAY and YCbCr. Input: uint8, HWC, CHW, FHWC or FCHW. Output: the same layout, uint8.

    Grey is Pillow's ``convert("L")`` bit for bit (DALI's differs by at most 1). YCbCr is ITU-R BT.601 with its limited
    range, 16 to 235, as in DALI; it is not the full-range YCbCr that JPEG files hold and that
    ``decoders.image(output_type=types.YCbCr)`` gives.

    Args:
        image_type: Colour model of the input.
        output_type: Colour model of the output.
        name: Name of the node, shown in errors and by which outputs and readers are found.
        device: Where the operator runs.
        preserve: Run the operator also if its output is not used.
    """
    ...

def color_twist(
    x: Input,
    /,
    *,
    dtype: DTypeLike | None = None,
    image_type: ImageType = ImageType.RGB,
    brightness: float | DataNode = 1.0,
    contrast: float | DataNode = 1.0,
    saturation: float | DataNode = 1.0,
    hue: float | DataNode = 0.0,
    name: str | None = None,
    device: Literal["cpu", "gpu", "mixed"] | None = None,
    preserve: bool = False,
    bytes_per_sample_hint: int | Sequence[int] | npt.NDArray[np.generic] = 0,
) -> DataNode:
    """Change brightness, contrast, saturation and hue. Input: 3 channels, HWC, CHW, FHWC or FCHW. Output: the same.

    ``brightness * (contrast * M x + (1 - contrast) * C)`` with M the linear change of hue and saturation in YIQ, and C
    128 for integers, 0.5 for floats: DALI's order and matrices. torchvision's ColorJitter differs: its hue is HSV's and
    its contrast is about the image's own mean. Sums are float32's, float64's for elements of 32 bits and more.

    Args:
        dtype: Element type of the output; by default the input's.
        image_type: Order of the channels: RGB or BGR.
        brightness: Factor of the brightness; 1: unchanged.
        contrast: Factor of the contrast; 0: grey, 1: unchanged.
        saturation: Factor of the saturation; 0: without colour, 1: unchanged.
        hue: Change of the hue in degrees.
        name: Name of the node, shown in errors and by which outputs and readers are found.
        device: Where the operator runs.
        preserve: Run the operator also if its output is not used.
    """
    ...

def constant(
    *,
    fdata: float | Sequence[float] | npt.NDArray[np.generic] | None = None,
    idata: int | Sequence[int] | npt.NDArray[np.generic] | None = None,
    shape: int | Sequence[int] | npt.NDArray[np.generic] | None = None,
    dtype: DTypeLike | None = None,
    layout: str = "",
    name: str | None = None,
    device: Literal["cpu", "gpu", "mixed"] | None = None,
    preserve: bool = False,
    bytes_per_sample_hint: int | Sequence[int] | npt.NDArray[np.generic] = 0,
) -> DataNode:
    """Return the same tensor for every row: ``fdata`` (float32 by default) or ``idata`` (int32 by default).

    One number fills ``shape``. Numbers are converted to ``dtype`` as `cast` does: integers are rounded half to even and
    saturate. DALI rounds halves away from zero.

    Args:
        fdata: Elements, row by row.
        idata: Elements, row by row, as integers.
        shape: Shape of the output; by default one axis.
        dtype: Element type of the output.
        layout: Names of the output's axes.
        name: Name of the node, shown in errors and by which outputs and readers are found.
        device: Where the operator runs.
        preserve: Run the operator also if its output is not used.
    """
    ...

def contrast(
    x: Input,
    /,
    *,
    dtype: DTypeLike | None = None,
    contrast: float | DataNode = 1.0,
    contrast_center: float | DataNode | None = None,
    name: str | None = None,
    device: Literal["cpu", "gpu", "mixed"] | None = None,
    preserve: bool = False,
    bytes_per_sample_hint: int | Sequence[int] | npt.NDArray[np.generic] = 0,
) -> DataNode:
    """Change the contrast. Input: any shape and type. Output: the same shape.

    ``contrast_center + contrast * (x - contrast_center)``.

    Args:
        dtype: Element type of the output; by default the input's.
        contrast: Factor of the contrast; 0: grey, 1: unchanged.
        contrast_center: Intensity that stays; by default 0.5 for floats, half the range for integers.
        name: Name of the node, shown in errors and by which outputs and readers are found.
        device: Where the operator runs.
        preserve: Run the operator also if its output is not used.
    """
    ...

def convolve(
    x: Input,
    response: Input,
    /,
    *,
    mode: Literal["full", "same", "valid", "first"] = "full",
    name: str | None = None,
    device: Literal["cpu", "gpu", "mixed"] | None = None,
    preserve: bool = False,
    bytes_per_sample_hint: int | Sequence[int] | npt.NDArray[np.generic] = 0,
) -> DataNode:
    """Convolve a signal with an impulse response, such as that of a room. Inputs: the signal ``(n,)`` and the impulse
    response ``(m,)``, float32, each of one channel. Output: ``(n + m - 1,)``, or with another ``mode`` a part of it.

    Blocks of the signal are convolved by products of spectra, which costs little also for responses of seconds. The
    largest error is about 1e-6 of the largest value. The shorter one of both has at most 262144 samples. The
    response is used as it is: scale it before if the level matters. Modes are those of
    ``scipy.signal.convolve``, and "first".

    Args:
        mode: Part of the result: all; the n samples in the middle; those that need no sample beyond the ends;
            or the first n samples ("first"), in which the direct sound of a room stays where it is.
        name: Name of the node, shown in errors and by which outputs and readers are found.
        device: Where the operator runs.
        preserve: Run the operator also if its output is not used.
    """
    ...

def coord_flip(
    x: Input,
    /,
    *,
    flip_x: int | DataNode = 1,
    flip_y: int | DataNode = 0,
    flip_z: int | DataNode = 0,
    center_x: float | DataNode = 0.5,
    center_y: float | DataNode = 0.5,
    center_z: float | DataNode = 0.5,
    layout: str = "",
    name: str | None = None,
    device: Literal["cpu", "gpu", "mixed"] | None = None,
    preserve: bool = False,
    bytes_per_sample_hint: int | Sequence[int] | npt.NDArray[np.generic] = 0,
) -> DataNode:
    """Mirror points about a center: ``2 * center - x``. Input: floats with one to three coordinates along the last
    axis, for example (N, 2). Output: the same shape and type.

    Coordinates that are not mirrored keep their bits. The default centers fit coordinates from 0 to 1; for pixels give
    half of the image's width and height. Unlike DALI, a single point without the axis of points is accepted, and all
    floating types are.

    Args:
        flip_x: Mirror x where not 0.
        flip_y: Mirror y where not 0.
        flip_z: Mirror z where not 0.
        center_x: Center of x.
        center_y: Center of y.
        center_z: Center of z.
        layout: Order of the coordinates: letters of "xyz", as many as there are; by default x, y, z.
        name: Name of the node, shown in errors and by which outputs and readers are found.
        device: Where the operator runs.
        preserve: Run the operator also if its output is not used.
    """
    ...

def coord_transform(
    x: Input,
    /,
    *,
    M: float | Sequence[float | DataNode] | npt.NDArray[np.generic] | DataNode | None = None,
    T: float | Sequence[float | DataNode] | npt.NDArray[np.generic] | DataNode | None = None,
    MT: float | Sequence[float | DataNode] | npt.NDArray[np.generic] | DataNode | None = None,
    dtype: DTypeLike = DType.FLOAT,
    name: str | None = None,
    device: Literal["cpu", "gpu", "mixed"] | None = None,
    preserve: bool = False,
    bytes_per_sample_hint: int | Sequence[int] | npt.NDArray[np.generic] = 0,
) -> DataNode:
    """Apply a linear transformation to points: ``M * x + T``. Input: points with their components along the last axis,
    at most six, for example (N, 2). Output: one component for each row of ``M``.

    ``M`` is a matrix, row by row. A single number is a factor of all components; DALI multiplies by a whole diagonal
    matrix, so that infinite components make others NaN. Without ``M``, points are only moved. The number of columns is
    that of the input's components, in the first batch if they are unknown before it. Where no batch has run (an eager
    call), a ``T`` of several numbers determines the number of rows, and else the matrix is square, or one row with a
    single ``T``. Other matrices need an input of known extents: ``fn.reshape(points, shape=[-1, 3])``.

    Products are added from left to right, then ``T``, in float32, or in float64 if the input has 32-bit integers or
    wider numbers. Integers are rounded half to even and saturate; DALI's CPU form rounds halves away from zero.

    Args:
        M: Matrix, row by row, or one factor for all components.
        T: Translation: a number for each row of `M`, or one for all.
        MT: Matrix with the translation as last column, row by row; or a factor.
        dtype: Element type of the output.
        name: Name of the node, shown in errors and by which outputs and readers are found.
        device: Where the operator runs.
        preserve: Run the operator also if its output is not used.
    """
    ...

def copy(
    x: Input,
    /,
    *,
    name: str | None = None,
    device: Literal["cpu", "gpu", "mixed"] | None = None,
    preserve: bool = False,
    bytes_per_sample_hint: int | Sequence[int] | npt.NDArray[np.generic] = 0,
) -> DataNode:
    """Return the same data. Tensors are immutable, so data are copied only when they leave the pipeline.

    Args:
        name: Name of the node, shown in errors and by which outputs and readers are found.
        device: Where the operator runs.
        preserve: Run the operator also if its output is not used.
    """
    ...

def copy_paste(
    x: Input,
    other: Input,
    /,
    *inputs: Input,
    probability: float | DataNode = 0.5,
    min_visibility: float | DataNode = 0.0,
    input_names: str | Sequence[str] = (),
    seed: int | None = None,
    name: str | None = None,
    device: Literal["cpu", "gpu", "mixed"] | None = None,
    preserve: bool = False,
    bytes_per_sample_hint: int | Sequence[int] | npt.NDArray[np.generic] = 0,
    masks: Sequence[Input] | None = None,
    labels: Sequence[Input] | None = None,
) -> Any:
    """Paste objects of another image into an image by their masks (Ghiasi et al., "Simple Copy-Paste is a Strong Data
    Augmentation Method for Instance Segmentation", 2021). Inputs: two images of one shape and type, HWC, CHW or HW; by
    name ``masks`` and optionally ``labels``, a pair each. Outputs: the image; boxes ``x0, y0, x1, y1`` in pixels,
    float32 (N, 4); masks (N, H, W); labels, if they are given.

    Each object of the second image is pasted with ``probability``, where it is. Pasted objects cover the image's own
    ones, whose masks lose these pixels; an own object is dropped if less than ``min_visibility`` of it, or nothing, is
    left. Boxes are the smallest ones around the masks that are left. Masks are read on the CPU.
    Own objects come first. `geometry` takes images of different sizes to one canvas before. `readers.partner` reads the
    second sample, so that the batch size changes nothing.

    Args:
        masks: Masks of both images' objects, (N, H, W), bool or 8-bit; not 0 where an object is. A pair.
        labels: Anything with an element for each object along the first axis. A pair.
        probability: Probability that an object of the second image is pasted.
        min_visibility: Least share of an own object that stays visible, from 0 to 1.
        input_names: Names of the inputs after the images, for calls by position.
        seed: Seed of this operator's draws; by default it follows from the pipeline's.
        name: Name of the node, shown in errors and by which outputs and readers are found.
        device: Where the operator runs.
        preserve: Run the operator also if its output is not used.
    """
    ...

def crop(
    x: Input,
    /,
    *,
    dtype: DTypeLike | None = None,
    output_dtype: DTypeLike | None = None,
    image_type: ImageType | None = None,
    out_of_bounds_policy: Literal["error", "pad", "trim_to_shape"] = "error",
    fill_values: float | Sequence[float] | npt.NDArray[np.generic] = 0.0,
    crop: float | Sequence[float | DataNode] | npt.NDArray[np.generic] | DataNode | None = None,
    crop_h: float | DataNode = 0.0,
    crop_w: float | DataNode = 0.0,
    crop_d: float | DataNode = 0.0,
    crop_pos_x: float | DataNode = 0.5,
    crop_pos_y: float | DataNode = 0.5,
    crop_pos_z: float | DataNode = 0.5,
    rounding: Literal["round", "truncate"] = "round",
    name: str | None = None,
    device: Literal["cpu", "gpu", "mixed"] | None = None,
    preserve: bool = False,
    bytes_per_sample_hint: int | Sequence[int] | npt.NDArray[np.generic] = 0,
) -> DataNode:
    """Cut a window. Input: an image, video or volume with layout HWC, CHW, FHWC, ..., any type. Output: the window.
    Four axes without names are DHWC, as in DALI, and FHWC if an argument has numbers for each frame.

    The start is ``crop_pos * (input - window)``, rounded half away from zero. Fractional window sizes are truncated,
    and sizes below 1 mean the whole extent, as in DALI. With ``out_of_bounds_policy="pad"``, a larger window's surplus
    is distributed by the same rule.

    Args:
        dtype: Element type of the output; by default the input's.
        output_dtype: Former name of `dtype`.
        out_of_bounds_policy: error: such a window is an error; pad: what lies outside is `fill_values`;
            trim_to_shape: it is cut off.
        fill_values: For "pad": one value, or one per channel.
        crop: Window in pixels as (height, width), or (depth, height, width).
        crop_h: Height of the window in pixels; 0: the whole height.
        crop_w: Width of the window in pixels; 0: the whole width.
        crop_d: Depth of the window; 0: the whole depth.
        crop_pos_x: Horizontal place: 0 is the left edge, 1 the right one.
        crop_pos_y: Vertical place: 0 is the top, 1 the bottom.
        crop_pos_z: Place in depth: 0 is the front, 1 the back.
        rounding: Rounding of the window's start: to the nearest pixel (half away from zero), or towards zero.
        name: Name of the node, shown in errors and by which outputs and readers are found.
        device: Where the operator runs.
        preserve: Run the operator also if its output is not used.
    """
    ...

def crop_mirror_normalize(
    x: Input,
    /,
    *,
    out_of_bounds_policy: Literal["error", "pad", "trim_to_shape"] = "error",
    fill_values: float | Sequence[float] | npt.NDArray[np.generic] = 0.0,
    crop: float | Sequence[float | DataNode] | npt.NDArray[np.generic] | DataNode | None = None,
    crop_h: float | DataNode = 0.0,
    crop_w: float | DataNode = 0.0,
    crop_d: float | DataNode = 0.0,
    crop_pos_x: float | DataNode = 0.5,
    crop_pos_y: float | DataNode = 0.5,
    crop_pos_z: float | DataNode = 0.5,
    rounding: Literal["round", "truncate"] = "round",
    mean: float | Sequence[float | DataNode] | npt.NDArray[np.generic] | DataNode = 0.0,
    std: float | Sequence[float | DataNode] | npt.NDArray[np.generic] | DataNode = 1.0,
    mirror: int | DataNode = 0,
    scale: float = 1.0,
    shift: float = 0.0,
    dtype: DTypeLike | None = None,
    output_layout: str = "CHW",
    pad_output: bool = False,
    output_dtype: DTypeLike | None = None,
    image_type: ImageType | None = None,
    name: str | None = None,
    device: Literal["cpu", "gpu", "mixed"] | None = None,
    preserve: bool = False,
    bytes_per_sample_hint: int | Sequence[int] | npt.NDArray[np.generic] = 0,
) -> DataNode:
    """Crop, mirror, normalise and transpose: the last step before a network. Input: HWC, CHW or FHWC, FCHW.

    ``out = scale * (x - mean) / std + shift``, in float32 as ``(x - mean) * (scale * (1 / std)) + shift``, cast to
    ``dtype``. Output: ``output_layout``, by default CHW, float32. ``pad_output`` adds channels of zeros up to a power
    of two. ``fill_values`` are values of the output: they are not normalised.

    Args:
        out_of_bounds_policy: error: such a window is an error; pad: what lies outside is `fill_values`;
            trim_to_shape: it is cut off.
        fill_values: For "pad": one value, or one per channel.
        crop: Window in pixels as (height, width), or (depth, height, width).
        crop_h: Height of the window in pixels; 0: the whole height.
        crop_w: Width of the window in pixels; 0: the whole width.
        crop_d: Depth of the window; 0: the whole depth.
        crop_pos_x: Horizontal place: 0 is the left edge, 1 the right one.
        crop_pos_y: Vertical place: 0 is the top, 1 the bottom.
        crop_pos_z: Place in depth: 0 is the front, 1 the back.
        rounding: Rounding of the window's start: to the nearest pixel (half away from zero), or towards zero.
        mean: Mean, one or one per channel.
        std: Standard deviation, one or one per channel.
        mirror: Mirror left and right where not 0.
        scale: Factor after the normalisation.
        shift: Added last.
        dtype: Element type of the output; by default float32.
        output_layout: Layout of the output (a leading F is kept); "": the input's.
        pad_output: Add channels of zeros up to a power of two: to make four of three.
        output_dtype: Former name of `dtype`.
        name: Name of the node, shown in errors and by which outputs and readers are found.
        device: Where the operator runs.
        preserve: Run the operator also if its output is not used.
    """
    ...

def cutmix(
    x: Input,
    other: Input,
    /,
    *labels: Input,
    weight: float | DataNode,
    num_classes: int = 0,
    seed: int | None = None,
    name: str | None = None,
    device: Literal["cpu", "gpu", "mixed"] | None = None,
    preserve: bool = False,
    bytes_per_sample_hint: int | Sequence[int] | npt.NDArray[np.generic] = 0,
) -> DataNode:
    """Replace a random rectangle of an image by that of another one, and mix their labels by area (Yun et al.,
    "CutMix", 2019). Inputs: two images of one shape and type, with axes H and W; optionally their labels: whole
    numbers, or floats (classes,). Outputs: the image; the soft label, float32, or the type of soft labels.

    The rectangle has the image's proportions and ``1 - weight`` of its area, its centre is uniform over all pixels, and
    it is cut at the edges. Labels have the shares of the pixels. Source: torchvision's ``CutMix``. `readers.partner`
    reads the second sample, so that the batch size changes nothing.

    Args:
        weight: Share of the first sample, from 0 to 1: `random.beta` draws it.
        num_classes: Number of classes, if labels are whole numbers.
        seed: Seed of this operator's draws; by default it follows from the pipeline's.
        name: Name of the node, shown in errors and by which outputs and readers are found.
        device: Where the operator runs.
        preserve: Run the operator also if its output is not used.
    """
    ...

def debayer(
    x: Input,
    /,
    *,
    blue_position: int | Sequence[int | DataNode] | npt.NDArray[np.generic] | DataNode,
    algorithm: Literal["bilinear_ocv", "edgeaware_ocv", "gray_ocv", "vng_ocv", "default_npp"] = "bilinear_ocv",
    name: str | None = None,
    device: Literal["cpu", "gpu", "mixed"] | None = None,
    preserve: bool = False,
    bytes_per_sample_hint: int | Sequence[int] | npt.NDArray[np.generic] = 0,
) -> DataNode:
    """Compute the colours of an image whose pixels have one colour each. Input: uint8 or uint16, HW, HWC of one
    channel, or these with a leading F; at least 3 pixels on a side. Output: RGB, HWC or FHWC, in the same type.

    Exact: the values of OpenCV's ``demosaicing``, on the CPU and on GPUs. Pixels at the edges repeat their neighbours.
    `vng_ocv` has the values of OpenCV 5 (OpenCV 4.11 computes others), mirrors the mosaic at its edge pixels,
    and computes `bilinear_ocv` if a side has fewer than 8 pixels.
    DALI's operator computes other values on GPUs, those of NPP, and takes even extents only.
    `blue_position` may be per frame.

    Args:
        blue_position: Position of the blue pixel, (row, column), in the 2x2 tile that begins in the second row
            and column: (0, 0) is OpenCV's BG, (0, 1) GB, (1, 0) GR, (1, 1) RG.
        algorithm: bilinear_ocv: means of the neighbours; edgeaware_ocv: green from the neighbours that differ
            less; vng_ocv: means in the directions whose gradients are small, uint8 only; gray_ocv: a gray image
            of one channel. DALI's default_npp is refused.
        name: Name of the node, shown in errors and by which outputs and readers are found.
        device: Where the operator runs.
        preserve: Run the operator also if its output is not used.
    """
    ...

@overload
def dl_tensor_python_function(
    *inputs: Input,
    function: Any,
    num_outputs: Literal[1] = 1,
    batch_processing: bool = True,
    output_layouts: str | Sequence[str] | None = None,
    output_dtypes: DTypeLike | Sequence[DTypeLike] | None = None,
    output_ndims: int | Sequence[int] | npt.NDArray[np.generic] | None = None,
    isolate: bool = False,
    time_limit_s: float = 60.0,
    synchronize_stream: bool = True,
    seed: int | None = None,
    name: str | None = None,
    device: Literal["cpu", "gpu", "mixed"] | None = None,
    preserve: bool = False,
    bytes_per_sample_hint: int | Sequence[int] | npt.NDArray[np.generic] = 0,
) -> DataNode:
    """Call a Python function with the inputs as DLPack capsules. The function returns DLPack capsules.

    By default the function is called once per batch: with a list of capsules for each input, one for each row. It
    returns a list for each output, and a tuple of lists for several outputs. With ``batch_processing=False`` it is
    called for each row, with one capsule for each input.

    A capsule (``dltensor``) can be read once, for example by ``torch.utils.dlpack.from_dlpack``. It holds a copy of the
    row in host memory, contiguous, which the function may change and keep. Results may also be all that
    ``python_function`` takes: arrays, tensors with ``__dlpack__``, numbers or bytes. Order, draws (``rng``), errors and
    ``isolate=True`` are as of ``python_function``. Source: DALI's operator of this name.

    Args:
        function: The function.
        num_outputs: Number of outputs; 0 for a function that is called for its effect.
        batch_processing: Call it once for all rows of a batch.
        output_layouts: Names of the outputs' axes, one string or one per output.
        output_dtypes: Element types of all outputs; with `output_ndims`.
        output_ndims: Numbers of axes of all outputs; with `output_dtypes`.
        isolate: Run the function in a process of its own.
        time_limit_s: Seconds after which a call of an isolated function fails.
        synchronize_stream: Of a GPU; without effect on the CPU.
        seed: Seed of this operator's draws; by default it follows from the pipeline's.
        name: Name of the node, shown in errors and by which outputs and readers are found.
        device: Where the operator runs.
        preserve: Run the operator also if its output is not used.
    """
    ...

@overload
def dl_tensor_python_function(
    *inputs: Input,
    function: Any,
    num_outputs: int,
    batch_processing: bool = True,
    output_layouts: str | Sequence[str] | None = None,
    output_dtypes: DTypeLike | Sequence[DTypeLike] | None = None,
    output_ndims: int | Sequence[int] | npt.NDArray[np.generic] | None = None,
    isolate: bool = False,
    time_limit_s: float = 60.0,
    synchronize_stream: bool = True,
    seed: int | None = None,
    name: str | None = None,
    device: Literal["cpu", "gpu", "mixed"] | None = None,
    preserve: bool = False,
    bytes_per_sample_hint: int | Sequence[int] | npt.NDArray[np.generic] = 0,
) -> tuple[DataNode, ...]:
    """Call a Python function with the inputs as DLPack capsules. The function returns DLPack capsules.

    By default the function is called once per batch: with a list of capsules for each input, one for each row. It
    returns a list for each output, and a tuple of lists for several outputs. With ``batch_processing=False`` it is
    called for each row, with one capsule for each input.

    A capsule (``dltensor``) can be read once, for example by ``torch.utils.dlpack.from_dlpack``. It holds a copy of the
    row in host memory, contiguous, which the function may change and keep. Results may also be all that
    ``python_function`` takes: arrays, tensors with ``__dlpack__``, numbers or bytes. Order, draws (``rng``), errors and
    ``isolate=True`` are as of ``python_function``. Source: DALI's operator of this name.

    Args:
        function: The function.
        num_outputs: Number of outputs; 0 for a function that is called for its effect.
        batch_processing: Call it once for all rows of a batch.
        output_layouts: Names of the outputs' axes, one string or one per output.
        output_dtypes: Element types of all outputs; with `output_ndims`.
        output_ndims: Numbers of axes of all outputs; with `output_dtypes`.
        isolate: Run the function in a process of its own.
        time_limit_s: Seconds after which a call of an isolated function fails.
        synchronize_stream: Of a GPU; without effect on the CPU.
        seed: Seed of this operator's draws; by default it follows from the pipeline's.
        name: Name of the node, shown in errors and by which outputs and readers are found.
        device: Where the operator runs.
        preserve: Run the operator also if its output is not used.
    """
    ...

def dump_image(
    x: Input,
    /,
    *,
    suffix: str = "",
    input_layout: Literal["HWC"] = "HWC",
    name: str | None = None,
    device: Literal["cpu", "gpu", "mixed"] | None = None,
    preserve: bool = False,
    bytes_per_sample_hint: int | Sequence[int] | npt.NDArray[np.generic] = 0,
) -> DataNode:
    """Write images to files in the current folder, for a look at them. Input: uint8, HWC with 1 or 3 channels. Output:
    the input.

    The file of a batch's row 5 is ``5-suffix-0.ppm``, in the text form of PPM or PGM. The next batch overwrites it.

    Args:
        suffix: Part of the files' names, without slashes.
        name: Name of the node, shown in errors and by which outputs and readers are found.
        device: Where the operator runs.
        preserve: Run the operator also if its output is not used.
    """
    ...

def elastic(
    x: Input,
    /,
    *,
    interp_type: InterpType = InterpType.INTERP_LINEAR,
    fill_value: float = 0.0,
    alpha: float | DataNode = 50.0,
    sigma: float | DataNode = 5.0,
    seed: int | None = None,
    name: str | None = None,
    device: Literal["cpu", "gpu", "mixed"] | None = None,
    preserve: bool = False,
    bytes_per_sample_hint: int | Sequence[int] | npt.NDArray[np.generic] = 0,
) -> DataNode:
    """Deform images by a smooth random field. Input: images of up to 32 bits an element, HW, HWC, CHW or these with a
    leading F. Output: the same.

    Each pixel has two numbers, drawn evenly from -1 to 1 and blurred by ``sigma`` (`gaussian_blur`). Times ``alpha``
    they are the source's distance from the pixel. All channels and frames have the same field. A draw depends on the
    seed, the epoch, the sample and the pixel's place. Source: Simard, Steinkraus and Platt, "Best practices for
    convolutional neural networks" (2003).

    Args:
        interp_type: INTERP_NN, INTERP_LINEAR or INTERP_CUBIC.
        fill_value: Value outside of the image.
        alpha: Strength: the factor of the blurred numbers, in pixels.
        sigma: Standard deviation of the blur in pixels, above 0.
        seed: Seed of this operator's draws; by default it follows from the pipeline's.
        name: Name of the node, shown in errors and by which outputs and readers are found.
        device: Where the operator runs.
        preserve: Run the operator also if its output is not used.
    """
    ...

def element_extract(
    x: Input,
    /,
    *,
    element_map: int | Sequence[int] | npt.NDArray[np.generic],
    name: str | None = None,
    device: Literal["cpu", "gpu", "mixed"] | None = None,
    preserve: bool = False,
    bytes_per_sample_hint: int | Sequence[int] | npt.NDArray[np.generic] = 0,
) -> DataNode:
    """Take single frames of a video, or single elements along the first axis. Input: any type; the first axis is F or
    has no name. Output: one tensor for each number in ``element_map``, without the first axis. Moves no data.

    Unlike DALI, elements of a tensor with one axis are accepted: the outputs are scalars.

    Args:
        element_map: Numbers of the elements, from 0; each gives an output.
        name: Name of the node, shown in errors and by which outputs and readers are found.
        device: Where the operator runs.
        preserve: Run the operator also if its output is not used.
    """
    ...

def equalize(
    x: Input,
    /,
    *,
    name: str | None = None,
    device: Literal["cpu", "gpu", "mixed"] | None = None,
    preserve: bool = False,
    bytes_per_sample_hint: int | Sequence[int] | npt.NDArray[np.generic] = 0,
) -> DataNode:
    """Spread the values of every channel evenly over 0 to 255. Input: uint8, HW, HWC, CHW or these with a leading F.

    Output: the same. A channel's lowest value becomes 0, its highest 255. A channel with a single value stays. Exact.

    Source: OpenCV's ``equalizeHist``, like DALI's operator. Pillow's ``ImageOps.equalize`` rounds differently.

    Args:
        name: Name of the node, shown in errors and by which outputs and readers are found.
        device: Where the operator runs.
        preserve: Run the operator also if its output is not used.
    """
    ...

def erase(
    x: Input,
    /,
    *,
    anchor: float | Sequence[float | DataNode] | npt.NDArray[np.generic] | DataNode = (),
    shape: float | Sequence[float | DataNode] | npt.NDArray[np.generic] | DataNode = (),
    axes: int | Sequence[int] | npt.NDArray[np.generic] | None = None,
    axis_names: str | None = None,
    fill_value: float | Sequence[float | DataNode] | npt.NDArray[np.generic] | DataNode = 0.0,
    centered_anchor: bool = False,
    normalized: bool = False,
    normalized_anchor: bool = False,
    normalized_shape: bool = False,
    name: str | None = None,
    device: Literal["cpu", "gpu", "mixed"] | None = None,
    preserve: bool = False,
    bytes_per_sample_hint: int | Sequence[int] | npt.NDArray[np.generic] = 0,
) -> DataNode:
    """Fill regions of a tensor. Input: any type; axes are named, or it is an image HW or HWC, or `axes` is given.
    Output: the same.

    ``anchor`` and ``shape`` have one number for each axis and region, region by region. A region begins at
    ``int(anchor)`` and ends before ``int(anchor + shape)``, computed in float32; its part outside of the tensor is
    ignored. Other axes are filled whole. Without ``anchor`` regions begin at 0; without both nothing is filled. Rows
    may have different numbers of regions, and any number of them; an empty region fills nothing.

    DALI converts fill values as C does, so that 300 becomes 44 in a byte; here they saturate.

    Args:
        anchor: Starts of the regions.
        shape: Extents of the regions.
        axes: Axes of `anchor` and `shape`, as numbers.
        axis_names: The same as names; by default all named axes but C, in the layout's order.
        fill_value: One value, or one for each channel.
        centered_anchor: `anchor` is the centre of a region.
        normalized: `anchor` and `shape` are shares of the tensor's extents.
        normalized_anchor: `anchor` is a share of the extents.
        normalized_shape: `shape` is a share of the extents.
        name: Name of the node, shown in errors and by which outputs and readers are found.
        device: Where the operator runs.
        preserve: Run the operator also if its output is not used.
    """
    ...

def expand_dims(
    x: Input,
    /,
    *,
    axes: int | Sequence[int] | npt.NDArray[np.generic],
    new_axis_names: str = "",
    name: str | None = None,
    device: Literal["cpu", "gpu", "mixed"] | None = None,
    preserve: bool = False,
    bytes_per_sample_hint: int | Sequence[int] | npt.NDArray[np.generic] = 0,
) -> DataNode:
    """Insert axes of extent 1. Input: any shape and type. Output: the same data with the new axes. Moves no data.

    Args:
        axes: Positions of the new axes in the output; negative ones count from its end.
        new_axis_names: Names of the new axes, one per element of `axes`.
        name: Name of the node, shown in errors and by which outputs and readers are found.
        device: Where the operator runs.
        preserve: Run the operator also if its output is not used.
    """
    ...

@overload
def external_source(
    source: Any = None,
    *,
    num_outputs: None = None,
    cycle: Any = None,
    layout: Any = None,
    dtype: Any = None,
    ndim: Any = None,
    batch: bool | None = None,
    batch_info: bool = False,
    pass_to_default: bool = False,
    repeat_last: bool = False,
    blocking: bool = False,
    no_copy: bool = False,
    parallel: bool = False,
    prefetch_queue_depth: int | None = None,
    cuda_stream: Any = None,
    use_copy_kernel: bool | None = None,
    name: str | None = None,
    device: Literal["cpu", "gpu", "mixed"] | None = None,
    preserve: bool = False,
    bytes_per_sample_hint: int | Sequence[int] | npt.NDArray[np.generic] = 0,
) -> DataNode:
    """Take data from Python: an iterable, a generator function, or a callback; or from ``pipe.feed_input``.

    A source returns one batch at a time: a list of arrays, DLPack tensors, bytes or numbers (one per row), or one array
    whose first axis runs along the rows; with ``num_outputs``, a tuple of batches. With ``batch=False`` it returns one
    row at a time. A callback may take one argument: the number of the batch in its epoch (a ``types.BatchInfo`` with
    ``batch_info=True``), or with ``batch=False`` a ``types.SampleInfo``. Parameters with defaults are left
    alone, but with ``pass_to_default=True`` an only parameter receives it despite its default. A callback ends an epoch
    by raising StopIteration. A batch may have fewer rows than the pipeline's ``batch_size``, but at least one.

    With ``device="gpu"``, arrays may be in the memory of the pipeline's GPU, as a list or as one array: from torch,
    CuPy, JAX and all other libraries that support DLPack or CUDA's array interface. The run waits for the work that the
    array's library had issued to its current stream when the source returned (with CUDA's interface: to the stream that
    it names). It reads the arrays in place, with any strides. By default their own framework copies them first, on its
    current stream, so that later work on that stream may overwrite them. With ``no_copy=True`` there is no copy: do not
    overwrite or free the arrays until ``run`` has returned their batch. The run's work is complete then, so no stream
    has to wait. Batches are prefetched (``prefetch_queue_depth``), so such a source needs separate arrays for each
    batch in flight, or arrays that never change. The run holds references until then. Arrays in host memory are copied
    to the GPU; for them ``no_copy`` means the same.

    Types that are not declared are taken from the first batch and must not change after it. A sequence, and a callback
    with an argument, can be resumed from a state. Other sources raise an error that says that they cannot.

    With ``parallel=True`` the source runs in the pipeline's worker processes (``py_num_workers``,
    ``py_start_method="fork"`` or ``"spawn"``), ahead of the run, and its arrays return in shared memory. The batches
    and their order are the same for any number of processes. A function must take its one argument; the rows of a batch
    (``batch=False``), or whole batches, are distributed over the processes. One process iterates over an iterable or a
    generator function. An exception of the source is raised here, with the process's traceback as its cause. A process
    that dies fails its current batch and is replaced. With ``"spawn"``, objects that cannot be pickled are refused when
    the pipeline is built, unless ``py_callback_pickler`` supports them.

    Args:
        source: Iterable, generator function or callback; None: fed by hand, by `name`.
        num_outputs: Number of outputs; if given, a tuple of nodes is returned.
        cycle: Iterables: "quiet" begins again at the end, "raise" ends an epoch and begins again after `reset`,
            as by default; "no" ends for good.
        layout: Names of the axes of a row, one string or one per output.
        dtype: Element type, one or one per output; data of other types are refused.
        ndim: Number of axes of a row, one or one per output.
        batch: Whether the source gives batches (the default) or single rows.
        batch_info: Pass a `types.BatchInfo` to a batch callback instead of a number.
        pass_to_default: Pass the number or the information also to a callback whose only parameter has a
            default, as DALI does.
        repeat_last: Fed by hand: use the last batch again when no other was fed.
        blocking: Fed by hand: wait for another thread to feed data.
        no_copy: Read arrays in place; they must not change until their batch is delivered.
        parallel: Run the source in the pipeline's `py_num_workers` processes.
        prefetch_queue_depth: With `parallel`: number of batches that the workers prefetch; 2 by default.
        name: Name of the node, shown in errors and by which outputs and readers are found.
        device: Where the operator runs.
        preserve: Run the operator also if its output is not used.
    """
    ...

@overload
def external_source(
    source: Any = None,
    *,
    num_outputs: int,
    cycle: Any = None,
    layout: Any = None,
    dtype: Any = None,
    ndim: Any = None,
    batch: bool | None = None,
    batch_info: bool = False,
    pass_to_default: bool = False,
    repeat_last: bool = False,
    blocking: bool = False,
    no_copy: bool = False,
    parallel: bool = False,
    prefetch_queue_depth: int | None = None,
    cuda_stream: Any = None,
    use_copy_kernel: bool | None = None,
    name: str | None = None,
    device: Literal["cpu", "gpu", "mixed"] | None = None,
    preserve: bool = False,
    bytes_per_sample_hint: int | Sequence[int] | npt.NDArray[np.generic] = 0,
) -> tuple[DataNode, ...]:
    """Take data from Python: an iterable, a generator function, or a callback; or from ``pipe.feed_input``.

    A source returns one batch at a time: a list of arrays, DLPack tensors, bytes or numbers (one per row), or one array
    whose first axis runs along the rows; with ``num_outputs``, a tuple of batches. With ``batch=False`` it returns one
    row at a time. A callback may take one argument: the number of the batch in its epoch (a ``types.BatchInfo`` with
    ``batch_info=True``), or with ``batch=False`` a ``types.SampleInfo``. Parameters with defaults are left
    alone, but with ``pass_to_default=True`` an only parameter receives it despite its default. A callback ends an epoch
    by raising StopIteration. A batch may have fewer rows than the pipeline's ``batch_size``, but at least one.

    With ``device="gpu"``, arrays may be in the memory of the pipeline's GPU, as a list or as one array: from torch,
    CuPy, JAX and all other libraries that support DLPack or CUDA's array interface. The run waits for the work that the
    array's library had issued to its current stream when the source returned (with CUDA's interface: to the stream that
    it names). It reads the arrays in place, with any strides. By default their own framework copies them first, on its
    current stream, so that later work on that stream may overwrite them. With ``no_copy=True`` there is no copy: do not
    overwrite or free the arrays until ``run`` has returned their batch. The run's work is complete then, so no stream
    has to wait. Batches are prefetched (``prefetch_queue_depth``), so such a source needs separate arrays for each
    batch in flight, or arrays that never change. The run holds references until then. Arrays in host memory are copied
    to the GPU; for them ``no_copy`` means the same.

    Types that are not declared are taken from the first batch and must not change after it. A sequence, and a callback
    with an argument, can be resumed from a state. Other sources raise an error that says that they cannot.

    With ``parallel=True`` the source runs in the pipeline's worker processes (``py_num_workers``,
    ``py_start_method="fork"`` or ``"spawn"``), ahead of the run, and its arrays return in shared memory. The batches
    and their order are the same for any number of processes. A function must take its one argument; the rows of a batch
    (``batch=False``), or whole batches, are distributed over the processes. One process iterates over an iterable or a
    generator function. An exception of the source is raised here, with the process's traceback as its cause. A process
    that dies fails its current batch and is replaced. With ``"spawn"``, objects that cannot be pickled are refused when
    the pipeline is built, unless ``py_callback_pickler`` supports them.

    Args:
        source: Iterable, generator function or callback; None: fed by hand, by `name`.
        num_outputs: Number of outputs; if given, a tuple of nodes is returned.
        cycle: Iterables: "quiet" begins again at the end, "raise" ends an epoch and begins again after `reset`,
            as by default; "no" ends for good.
        layout: Names of the axes of a row, one string or one per output.
        dtype: Element type, one or one per output; data of other types are refused.
        ndim: Number of axes of a row, one or one per output.
        batch: Whether the source gives batches (the default) or single rows.
        batch_info: Pass a `types.BatchInfo` to a batch callback instead of a number.
        pass_to_default: Pass the number or the information also to a callback whose only parameter has a
            default, as DALI does.
        repeat_last: Fed by hand: use the last batch again when no other was fed.
        blocking: Fed by hand: wait for another thread to feed data.
        no_copy: Read arrays in place; they must not change until their batch is delivered.
        parallel: Run the source in the pipeline's `py_num_workers` processes.
        prefetch_queue_depth: With `parallel`: number of batches that the workers prefetch; 2 by default.
        name: Name of the node, shown in errors and by which outputs and readers are found.
        device: Where the operator runs.
        preserve: Run the operator also if its output is not used.
    """
    ...

def filter(
    x: Input,
    weights: Input,
    fill: Input = ...,
    /,
    *,
    anchor: int | Sequence[int | DataNode] | npt.NDArray[np.generic] | DataNode = -1,
    border: Literal["reflect_101", "reflect_1001", "wrap", "clamp", "constant"] = "reflect_101",
    mode: Literal["same", "valid"] = "same",
    dtype: DTypeLike | None = None,
    name: str | None = None,
    device: Literal["cpu", "gpu", "mixed"] | None = None,
    preserve: bool = False,
    bytes_per_sample_hint: int | Sequence[int] | npt.NDArray[np.generic] = 0,
) -> DataNode:
    """Correlate images with a filter. Inputs: an image, a filter ``(rows, columns)`` of float32 (also one per frame),
    and a border's value.

    Images: HW, HWC, CHW or these with a leading F; 8 and 16 bits, float32. The value is for a constant border.

    Output: the same layout, in the image's type or float32. Channels and frames are independent. Sums are in float32,
    in the order of the filter's elements, with the same bits everywhere. DALI sums in another order, so results agree
    within float32 rounding.

    Args:
        anchor: Centre of the filter, (row, column); -1: its middle. Without effect if `mode` is valid.
        border: Pixels beyond the edges of a row abcd. reflect_101: dcb|abcd|cba; reflect_1001: cba|abcd|dcb;
            clamp: aaa|abcd|ddd; wrap: bcd|abcd|abc; constant: the third input.
        mode: same: the output is as large as the image; valid: only positions with the filter inside it.
        dtype: Element type of the output: float32, or the input's.
        name: Name of the node, shown in errors and by which outputs and readers are found.
        device: Where the operator runs.
        preserve: Run the operator also if its output is not used.
    """
    ...

def flip(
    x: Input,
    /,
    *,
    horizontal: int | DataNode = 1,
    vertical: int | DataNode = 0,
    depthwise: int | DataNode = 0,
    name: str | None = None,
    device: Literal["cpu", "gpu", "mixed"] | None = None,
    preserve: bool = False,
    bytes_per_sample_hint: int | Sequence[int] | npt.NDArray[np.generic] = 0,
) -> DataNode:
    """Mirror along the axes W, H and D. Input: an image, video or volume, any type. Output: the same shape.

    Moves no data: the next operator reads (or stores) in the other direction.

    Args:
        horizontal: Mirror left and right where not 0.
        vertical: Mirror top and bottom where not 0.
        depthwise: Mirror front and back where not 0.
        name: Name of the node, shown in errors and by which outputs and readers are found.
        device: Where the operator runs.
        preserve: Run the operator also if its output is not used.
    """
    ...

def full(
    value: Input,
    /,
    *,
    shape: int | Sequence[int | DataNode] | npt.NDArray[np.generic] | DataNode | None = None,
    layout: str | None = None,
    name: str | None = None,
    device: Literal["cpu", "gpu", "mixed"] | None = None,
    preserve: bool = False,
    bytes_per_sample_hint: int | Sequence[int] | npt.NDArray[np.generic] = 0,
) -> DataNode:
    """Fill a tensor. Input: the value, or a tensor that is broadcast. Output: ``shape``, the input's type.

    Args:
        shape: Shape of the output; by default the input's.
        layout: Names of the output's axes.
        name: Name of the node, shown in errors and by which outputs and readers are found.
        device: Where the operator runs.
        preserve: Run the operator also if its output is not used.
    """
    ...

def full_like(
    like: Input,
    value: Input,
    /,
    *,
    name: str | None = None,
    device: Literal["cpu", "gpu", "mixed"] | None = None,
    preserve: bool = False,
    bytes_per_sample_hint: int | Sequence[int] | npt.NDArray[np.generic] = 0,
) -> DataNode:
    """Fill a tensor of the first input's shape, type and layout with the second input, which is broadcast.

    Args:
        name: Name of the node, shown in errors and by which outputs and readers are found.
        device: Where the operator runs.
        preserve: Run the operator also if its output is not used.
    """
    ...

def gather(
    x: Input,
    indices: Input,
    /,
    *,
    axis: int = 0,
    name: str | None = None,
    device: Literal["cpu", "gpu", "mixed"] | None = None,
    preserve: bool = False,
    bytes_per_sample_hint: int | Sequence[int] | npt.NDArray[np.generic] = 0,
) -> DataNode:
    """Select elements along an axis by their numbers, as ``numpy.take``: labels of kept boxes, entries of a table.

    Inputs: data of at least one axis, any type; whole numbers of any shape. Negative numbers count from the end.
    Output: the data's type; the axes of the numbers replace ``axis``. A number that is out of range is an error of the
    row. The CPU checks the numbers, also if the data are on a GPU. Exact.

    Numbers of kept boxes (``nms``, ``batched_nms``, ``nms_rotated``, ``soft_nms``) may be on a GPU. The data then have
    at least an element for each box. The output is as long as the numbers, which is known when the batch is done.

    Args:
        axis: Axis of the elements. Negative numbers count from the end.
        name: Name of the node, shown in errors and by which outputs and readers are found.
        device: Where the operator runs.
        preserve: Run the operator also if its output is not used.
    """
    ...

def gaussian_blur(
    x: Input,
    /,
    *,
    sigma: float | Sequence[float | DataNode] | npt.NDArray[np.generic] | DataNode = 0.0,
    window_size: int | Sequence[int | DataNode] | npt.NDArray[np.generic] | DataNode = 0,
    dtype: DTypeLike | None = None,
    name: str | None = None,
    device: Literal["cpu", "gpu", "mixed"] | None = None,
    preserve: bool = False,
    bytes_per_sample_hint: int | Sequence[int] | npt.NDArray[np.generic] = 0,
) -> DataNode:
    """Blur images and volumes. Input: HW, HWC, CHW or these with a leading F, or an axis D before H, or one axis;
    numbers. Output: the same layout.

    Rows, then columns, then the columns of a volume along D, are filtered with a sampled Gaussian. Edges are reflected
    (dcb|abcd|cba). Sums are in float32. With ``sigma`` alone the window is ``2 ceil(3 sigma) + 1`` wide; with
    ``window_size`` alone sigma is ``0.3 (radius - 1) + 0.8``. Integers of 32 and 64 bits and float64 are rounded to
    float32 first, as in DALI.

    Args:
        sigma: Standard deviation of the Gaussian in pixels: one, or one per axis, (vertical, horizontal); 0:
            from `window_size`. Per frame for videos, too.
        window_size: Odd size of the window in pixels: one, or one per axis, (vertical, horizontal); 0: from
            `sigma`. Per frame for videos, too.
        dtype: Element type of the output: float32, or the input's.
        name: Name of the node, shown in errors and by which outputs and readers are found.
        device: Where the operator runs.
        preserve: Run the operator also if its output is not used.
    """
    ...

def geometry(
    image: Input,
    /,
    *inputs: Input,
    fill_value: float | None = None,
    interp_type: InterpType = InterpType.INTERP_LINEAR,
    size: float | Sequence[float | DataNode] | npt.NDArray[np.generic] | DataNode | None = None,
    dtype: DTypeLike | None = None,
    output_dtype: DTypeLike | None = None,
    bbox_layout: str = "xyXY",
    normalized: bool = False,
    mask_layout: str | None = None,
    mask_fill_value: float = 0.0,
    min_area: float | DataNode = 0.0,
    min_visibility: float | DataNode = 0.0,
    keypoint_flip_order: int | Sequence[int] | npt.NDArray[np.generic] = (),
    output_indices: bool = False,
    input_names: str | Sequence[str] = (),
    name: str | None = None,
    device: Literal["cpu", "gpu", "mixed"] | None = None,
    preserve: bool = False,
    bytes_per_sample_hint: int | Sequence[int] | npt.NDArray[np.generic] = 0,
    boxes: Input | None = None,
    masks: Input | None = None,
    polygons: Input | None = None,
    vertices: Input | None = None,
    keypoints: Input | None = None,
    rotated_boxes: Input | None = None,
    labels: Input | None = None,
    ops: Sequence[Input] | None = None,
) -> Any:
    """Move an image and everything that is marked in it by affine matrices. Inputs: the image, HWC, CHW or HW; by name
    the annotations and ``ops``. Outputs: the image, then the given annotations in the order of this page's table; with
    ``output_indices`` the numbers of the objects that are left, int32.

    ``ops`` are matrices of ``transforms``, the first one first. Their product takes a point (x, y) of the image to one
    of the canvas; corners of pixels are at whole numbers. The image is resampled once (`warp_affine`, without
    antialiasing), masks by nearest neighbours.

    An object is a row of ``boxes``, ``rotated_boxes``, ``labels``, ``keypoints`` with three axes, and masks with the
    layout NHW. Objects are dropped together: those that ``boxes`` (or, without them, ``rotated_boxes``) leave less than
    ``min_area`` or ``min_visibility`` of within the canvas, and those without any area there. A box becomes the
    smallest one around its corners, and is cut at the canvas. A rotated box becomes the smallest one around the
    parallelogram that the matrix makes of it, and is not cut. Polygons are cut. Points outside of the canvas get
    visibility 0. Coordinates are computed in double and rounded once.

    Args:
        boxes: Boxes, float32 (N, 4).
        masks: A mask of labels for the whole image, HW or with one channel; or with the layout NHW a mask for
            each object. Up to 32-bit integers, bool or float.
        polygons: Polygons, int32 (P, 3): object, first vertex and end, as from `readers.coco`. Needs
            `vertices`.
        vertices: Vertices of the polygons, float32 (V, 2).
        keypoints: Points, float32 (N, K, 2), or (N, K, 3) with their visibility as in COCO; (K, 2) or (K, 3):
            of no object.
        rotated_boxes: Boxes, float32 (N, 5): centre, width, height, degrees from x towards y, in pixels.
        labels: Anything with an element for each object along the first axis.
        ops: Matrices (2, 3), a list.
        fill_value: Value outside of the image; by default that of the nearest edge pixel.
        interp_type: INTERP_NN, INTERP_LINEAR or, for images, INTERP_CUBIC.
        size: Size of the canvas in pixels, (height, width); of a volume (depth, height, width).
        dtype: Element type of the output; by default the input's.
        output_dtype: Former name of `dtype`.
        bbox_layout: Numbers of a box: xyXY or xyWH.
        normalized: Boxes, points and vertices are relative to the image, else in pixels.
        mask_layout: Axes of `masks`, such as NHW; by default their own, or HW or HWC.
        mask_fill_value: Label outside of the image.
        min_area: Least area of an object within the canvas, in pixels of the canvas.
        min_visibility: Least share of an object's area within the canvas, from 0 to 1.
        keypoint_flip_order: Numbers of the points of a mirrored object in the order of the unmirrored one: left
            and right change.
        output_indices: Output for the numbers of the objects that are left.
        input_names: Names of the inputs after the image, for calls by position.
        name: Name of the node, shown in errors and by which outputs and readers are found.
        device: Where the operator runs.
        preserve: Run the operator also if its output is not used.
    """
    ...

def get_property(
    x: Input,
    /,
    *,
    key: str,
    name: str | None = None,
    device: Literal["cpu", "gpu", "mixed"] | None = None,
    preserve: bool = False,
    bytes_per_sample_hint: int | Sequence[int] | npt.NDArray[np.generic] = 0,
) -> DataNode:
    """Return the names of a tensor's axes, or the origin of its sample. Input: any. Output: uint8 (N,).

    The names are ASCII. The origin ("source_info") is what the tensor's reader returns with ``origin=True``: the path
    of the file as UTF-8, in a container followed by `` at byte N``. The tensor must come from exactly one of the
    readers that have this argument, row by row.

    Args:
        key: Name of the property: "layout" or "source_info".
        name: Name of the node, shown in errors and by which outputs and readers are found.
        device: Where the operator runs.
        preserve: Run the operator also if its output is not used.
    """
    ...

@overload
def gpu_function(
    *inputs: Input,
    function: Any,
    library: str = "torch",
    fills: bool = False,
    num_outputs: Literal[1] = 1,
    output_dtypes: DTypeLike | Sequence[DTypeLike] | None = None,
    output_shapes: Any = None,
    output_layouts: str | Sequence[str] | None = None,
    name: str | None = None,
    device: Literal["cpu", "gpu", "mixed"] | None = None,
    preserve: bool = False,
    bytes_per_sample_hint: int | Sequence[int] | npt.NDArray[np.generic] = 0,
) -> DataNode:
    """Call a function of CuPy, PyTorch or Triton with the rows of a batch on a GPU, between operators there.

    The function gets a list of arrays for each input, one array for each row, and returns a list of arrays for each
    output, a tuple of lists for several. With ``fills=True`` it gets the lists of the outputs first, and fills them:
    that saves a copy, and is the form for kernels of Triton and CuPy. Arrays are the engine's memory, by DLPack, and
    only the function's until it returns.

    With ``library="dlpack"`` arrays are DLPack capsules, which any library reads, and so may be results. A capsule has
    no stream: the batch's work so far is done before the function runs, and its results are read after what it has
    issued to the legacy default stream. So the host waits twice for each batch.

    Otherwise the batch's stream is the library's current one, so work that the function issues is in order with the
    operators before and after it, and needs no synchronization. The function runs in a thread of the pipeline and
    holds Python's lock; batches come one at a time. An exception fails the batch. Shapes of outputs are computed before
    the function runs.

    Args:
        function: The function.
        library: Library of the arrays: "torch", "cupy", or "dlpack" for capsules.
        fills: The function fills the outputs, which are its first arguments, and returns None.
        num_outputs: Number of outputs.
        output_dtypes: Element types of the outputs; by default those of the inputs.
        output_shapes: Function of the inputs' shapes that returns the shape of the output, a list of shapes for
            several outputs. It is called once, with symbols for extents. By default outputs have the inputs'
            shapes.
        output_layouts: Names of the outputs' axes, one string for each output.
        name: Name of the node, shown in errors and by which outputs and readers are found.
        device: Where the operator runs.
        preserve: Run the operator also if its output is not used.
    """
    ...

@overload
def gpu_function(
    *inputs: Input,
    function: Any,
    library: str = "torch",
    fills: bool = False,
    num_outputs: int,
    output_dtypes: DTypeLike | Sequence[DTypeLike] | None = None,
    output_shapes: Any = None,
    output_layouts: str | Sequence[str] | None = None,
    name: str | None = None,
    device: Literal["cpu", "gpu", "mixed"] | None = None,
    preserve: bool = False,
    bytes_per_sample_hint: int | Sequence[int] | npt.NDArray[np.generic] = 0,
) -> tuple[DataNode, ...]:
    """Call a function of CuPy, PyTorch or Triton with the rows of a batch on a GPU, between operators there.

    The function gets a list of arrays for each input, one array for each row, and returns a list of arrays for each
    output, a tuple of lists for several. With ``fills=True`` it gets the lists of the outputs first, and fills them:
    that saves a copy, and is the form for kernels of Triton and CuPy. Arrays are the engine's memory, by DLPack, and
    only the function's until it returns.

    With ``library="dlpack"`` arrays are DLPack capsules, which any library reads, and so may be results. A capsule has
    no stream: the batch's work so far is done before the function runs, and its results are read after what it has
    issued to the legacy default stream. So the host waits twice for each batch.

    Otherwise the batch's stream is the library's current one, so work that the function issues is in order with the
    operators before and after it, and needs no synchronization. The function runs in a thread of the pipeline and
    holds Python's lock; batches come one at a time. An exception fails the batch. Shapes of outputs are computed before
    the function runs.

    Args:
        function: The function.
        library: Library of the arrays: "torch", "cupy", or "dlpack" for capsules.
        fills: The function fills the outputs, which are its first arguments, and returns None.
        num_outputs: Number of outputs.
        output_dtypes: Element types of the outputs; by default those of the inputs.
        output_shapes: Function of the inputs' shapes that returns the shape of the output, a list of shapes for
            several outputs. It is called once, with symbols for extents. By default outputs have the inputs'
            shapes.
        output_layouts: Names of the outputs' axes, one string for each output.
        name: Name of the node, shown in errors and by which outputs and readers are found.
        device: Where the operator runs.
        preserve: Run the operator also if its output is not used.
    """
    ...

def grid_mask(
    x: Input,
    /,
    *,
    tile: int | DataNode = 100,
    ratio: float | DataNode = 0.5,
    angle: float | DataNode = 0.0,
    shift_x: float | DataNode = 0.0,
    shift_y: float | DataNode = 0.0,
    name: str | None = None,
    device: Literal["cpu", "gpu", "mixed"] | None = None,
    preserve: bool = False,
    bytes_per_sample_hint: int | Sequence[int] | npt.NDArray[np.generic] = 0,
) -> DataNode:
    """Set squares of a grid to 0. Input: images of any type, with axes H and W. Output: the same.

    In a tile of the grid, the square of ``ratio * tile`` pixels at its upper left corner becomes 0. Positions are
    computed in float32. Channels and frames have the same grid. Source: Chen and others, "GridMask data augmentation"
    (2020).

    Pixels outside of the squares keep their bits, and those inside are 0, also if they were NaN. DALI multiplies by 0
    and 1, which keeps NaN. It also treats axes 0 and 1 as rows and columns in every layout.

    Args:
        tile: Side of a tile in pixels, at least 1.
        ratio: Side of a square as a share of the tile, from 0 to 1.
        angle: Angle in radians by which the grid is turned.
        shift_x: Shift of the turned grid along x, in pixels.
        shift_y: Shift of the turned grid along y, in pixels.
        name: Name of the node, shown in errors and by which outputs and readers are found.
        device: Where the operator runs.
        preserve: Run the operator also if its output is not used.
    """
    ...

def griffin_lim(
    x: Input,
    /,
    *,
    nfft: int | None = None,
    window_length: int = 512,
    window_step: int = 256,
    window_fn: float | Sequence[float] | npt.NDArray[np.generic] | None = None,
    power: int = 2,
    n_iter: int = 32,
    momentum: float = 0.99,
    name: str | None = None,
    device: Literal["cpu", "gpu", "mixed"] | None = None,
    preserve: bool = False,
    bytes_per_sample_hint: int | Sequence[int] | npt.NDArray[np.generic] = 0,
) -> DataNode:
    """Estimate a signal from magnitudes of spectra, which lack phases. Input: float32 ``(nfft // 2 + 1, frames)``, axes
    f and t in any order, as `spectrogram` gives. Output: ``((frames - 1) * window_step,)``, for an even ``nfft``.

    Each iteration computes the signal of the spectra (`istft`), takes the phases of that signal's spectra (`stft`), and
    accelerates their change by ``momentum``. The first phases are 0. Source: Perraudin, Balazs and Sondergaard, "A fast
    Griffin-Lim algorithm" (2013); the values of ``torchaudio.functional.griffinlim(rand_init=False)``.

    Args:
        nfft: Points of the transform; by default `window_length`. Larger: zeros around the frame.
        window_length: Samples of a frame.
        window_step: Samples from one frame to the next.
        window_fn: Factors of a frame's samples; by default a periodic Hann window.
        power: Exponent of the magnitudes in the input (`spectrogram`).
        n_iter: Iterations, at most 1000.
        momentum: Acceleration from 0 (the method of Griffin and Lim) to below 1.
        name: Name of the node, shown in errors and by which outputs and readers are found.
        device: Where the operator runs.
        preserve: Run the operator also if its output is not used.
    """
    ...

def hsv(
    x: Input,
    /,
    *,
    hue: float | DataNode = 0.0,
    saturation: float | DataNode = 1.0,
    value: float | DataNode = 1.0,
    dtype: DTypeLike = DType.UINT8,
    name: str | None = None,
    device: Literal["cpu", "gpu", "mixed"] | None = None,
    preserve: bool = False,
    bytes_per_sample_hint: int | Sequence[int] | npt.NDArray[np.generic] = 0,
) -> DataNode:
    """Change hue, saturation and value (brightness) of RGB images. Input: 3 channels, HWC, CHW, FHWC or FCHW.

    The change is linear in YIQ, as in DALI, without a conversion to HSV. Output: the same layout, uint8 unless
    ``dtype`` is given.

    Args:
        hue: Change of the hue in degrees.
        saturation: Factor of the saturation; 0: without colour, 1: unchanged.
        value: Factor of the value (brightness); 1: unchanged.
        dtype: Element type of the output.
        name: Name of the node, shown in errors and by which outputs and readers are found.
        device: Where the operator runs.
        preserve: Run the operator also if its output is not used.
    """
    ...

def hue(
    x: Input,
    /,
    *,
    dtype: DTypeLike | None = None,
    image_type: ImageType = ImageType.RGB,
    hue: float | DataNode = 0.0,
    name: str | None = None,
    device: Literal["cpu", "gpu", "mixed"] | None = None,
    preserve: bool = False,
    bytes_per_sample_hint: int | Sequence[int] | npt.NDArray[np.generic] = 0,
) -> DataNode:
    """Rotate the hue, linearly in YIQ. Input: 3 channels, HWC, CHW, FHWC or FCHW, any type. Output: the same.

    Args:
        dtype: Element type of the output; by default the input's.
        image_type: Order of the channels: RGB or BGR.
        hue: Change of the hue in degrees.
        name: Name of the node, shown in errors and by which outputs and readers are found.
        device: Where the operator runs.
        preserve: Run the operator also if its output is not used.
    """
    ...

def istft(
    x: Input,
    /,
    *,
    nfft: int | None = None,
    window_length: int = 512,
    window_step: int = 256,
    window_fn: float | Sequence[float] | npt.NDArray[np.generic] | None = None,
    center_windows: bool = True,
    length: int | DataNode | None = None,
    name: str | None = None,
    device: Literal["cpu", "gpu", "mixed"] | None = None,
    preserve: bool = False,
    bytes_per_sample_hint: int | Sequence[int] | npt.NDArray[np.generic] = 0,
) -> DataNode:
    """Compute the signal with the given spectra: the inverse of `stft`. Input: float32 ``(nfft // 2 + 1, frames, 2)``.
    Output: ``(length,)``.

    The inverse transforms of the frames are multiplied by the window and added; the sum is divided by the sum of the
    windows' squares. If the spectra are those of a signal, this is the signal. Otherwise it is the signal whose spectra
    have the smallest squared distance from them. Samples that no window covers are 0. Values are those of
    ``torch.istft`` and ``librosa.istft``.

    Args:
        nfft: Points of the transform; by default `window_length`. Larger: zeros around the frame.
        window_length: Samples of a frame.
        window_step: Samples from one frame to the next.
        window_fn: Factors of a frame's samples; by default a periodic Hann window.
        center_windows: The frames have their centres at multiples of the step (`stft`).
        length: Samples of the output; by default those that the frames cover.
        name: Name of the node, shown in errors and by which outputs and readers are found.
        device: Where the operator runs.
        preserve: Run the operator also if its output is not used.
    """
    ...

def jitter(
    x: Input,
    /,
    *,
    interp_type: InterpType = InterpType.INTERP_NN,
    fill_value: float = 0.0,
    mask: int | DataNode = 1,
    nDegree: int = 2,
    seed: int | None = None,
    name: str | None = None,
    device: Literal["cpu", "gpu", "mixed"] | None = None,
    preserve: bool = False,
    bytes_per_sample_hint: int | Sequence[int] | npt.NDArray[np.generic] = 0,
) -> DataNode:
    """Move every pixel by a random number of pixels. Input: images of up to 32 bits an element, HW, HWC, CHW or these
    with a leading F. Output: the same.

    Both numbers are drawn evenly from the ``nDegree`` integers from ``-(nDegree // 2)`` on. Sources beyond the edges
    are those at the edges, so that ``fill_value`` has no effect, and with whole numbers of pixels ``interp_type`` has
    none. All channels and frames have the same numbers. A draw depends on the seed, the epoch, the sample and the
    pixel's place.

    Args:
        interp_type: INTERP_NN, INTERP_LINEAR or INTERP_CUBIC.
        fill_value: Value outside of the image.
        mask: 0: the image stays as it is.
        nDegree: Number of integers from which the moves are drawn, from 1 to 2**20.
        seed: Seed of this operator's draws; by default it follows from the pipeline's.
        name: Name of the node, shown in errors and by which outputs and readers are found.
        device: Where the operator runs.
        preserve: Run the operator also if its output is not used.
    """
    ...

def jpeg_compression_distortion(
    x: Input,
    /,
    *,
    quality: int | DataNode = 50,
    name: str | None = None,
    device: Literal["cpu", "gpu", "mixed"] | None = None,
    preserve: bool = False,
    bytes_per_sample_hint: int | Sequence[int] | npt.NDArray[np.generic] = 0,
) -> DataNode:
    """Compress images as JPEG files and decompress them. Input: uint8 RGB, HWC, CHW or these with a leading F. Output:
    the same.

    Exact: the bytes that Pillow gives when it saves a file with 4:2:0 subsampling and opens it. Only the lossless part
    of the file format is left out, on the CPU and on GPUs.

    Args:
        quality: Quality of the compression, 1 to 100. Numbers beyond are clamped.
        name: Name of the node, shown in errors and by which outputs and readers are found.
        device: Where the operator runs.
        preserve: Run the operator also if its output is not used.
    """
    ...

def laplacian(
    x: Input,
    /,
    *,
    window_size: int | Sequence[int | DataNode] | npt.NDArray[np.generic] | DataNode = 3,
    smoothing_size: int | Sequence[int | DataNode] | npt.NDArray[np.generic] | DataNode | None = None,
    normalized_kernel: bool = False,
    scale: float | Sequence[float | DataNode] | npt.NDArray[np.generic] | DataNode = 1.0,
    dtype: DTypeLike | None = None,
    name: str | None = None,
    device: Literal["cpu", "gpu", "mixed"] | None = None,
    preserve: bool = False,
    bytes_per_sample_hint: int | Sequence[int] | npt.NDArray[np.generic] = 0,
) -> DataNode:
    """Add the second derivatives of images and volumes along all axes but F and C. Input: HW, HWC, CHW or these with a
    leading F, or an axis D before H, or one axis; numbers. Output: the same layout.

    Each derivative is a separable filter: Sobel's second derivative along its axis, and binomial smoothing along the
    others. Edges are reflected (dcb|abcd|cba). Sums are in float32; for integers of 8 bits and windows of up to 9
    pixels they are exact, and equal OpenCV's ``Laplacian``. ``window_size=3, smoothing_size=1`` is OpenCV's
    ``ksize=1``. Integers of 32 and 64 bits and float64 are rounded to float32 first, as in DALI. `window_size`,
    `smoothing_size` and `scale` may be per frame for images.

    Args:
        window_size: Size of the derivative's window, odd, 3 to 31: one, or (vertical, horizontal), of volumes
            (depth, vertical, horizontal).
        smoothing_size: Size of the smoothing window along an axis, odd, 1 to 31: one, or one per axis as
            `window_size`. By default that of the derivative across it; 1: no smoothing.
        normalized_kernel: Scale each derivative by ``2^(-s + n + 2)``, where ``s`` is the sum of the sizes of
            its ``n`` windows, one per axis. Not with `scale`.
        scale: Factor of the derivatives: one, or one per axis.
        dtype: Element type of the output: float32, or the input's.
        name: Name of the node, shown in errors and by which outputs and readers are found.
        device: Where the operator runs.
        preserve: Run the operator also if its output is not used.
    """
    ...

def lens_distortion(
    x: Input,
    /,
    *,
    interp_type: InterpType = InterpType.INTERP_LINEAR,
    fill_value: float = 0.0,
    radial: float | Sequence[float | DataNode] | npt.NDArray[np.generic] | DataNode = 0.0,
    tangential: float | Sequence[float | DataNode] | npt.NDArray[np.generic] | DataNode = (0.0, 0.0),
    focal: float | DataNode = 1.0,
    center: float | Sequence[float | DataNode] | npt.NDArray[np.generic] | DataNode = (0.5, 0.5),
    name: str | None = None,
    device: Literal["cpu", "gpu", "mixed"] | None = None,
    preserve: bool = False,
    bytes_per_sample_hint: int | Sequence[int] | npt.NDArray[np.generic] = 0,
) -> DataNode:
    """Distort images as a lens does. Input: images of up to 32 bits an element, HW, HWC, CHW or these with a leading F.
    Output: the same.

    Brown's model: with x and y the distance from the center divided by ``focal`` times the width and the height, and r
    their length, the source is at ``x (1 + k1 r^2 + k2 r^4 + k3 r^6) + 2 p1 x y + p2 (r^2 + 2 x^2)``, and likewise for
    y. Positive numbers in ``radial`` give a barrel. Coordinates are computed in float32. They are those of OpenCV's
    ``initUndistortRectifyMap`` within its rounding.

    Args:
        interp_type: INTERP_NN, INTERP_LINEAR or INTERP_CUBIC.
        fill_value: Value outside of the image.
        radial: k1, k2 and k3; up to three numbers.
        tangential: p1 and p2.
        focal: Focal length as a share of the image's width and height.
        center: Optical center (x, y) as a share of the extents.
        name: Name of the node, shown in errors and by which outputs and readers are found.
        device: Where the operator runs.
        preserve: Run the operator also if its output is not used.
    """
    ...

def lookup_table(
    x: Input,
    /,
    *,
    keys: int | Sequence[int] | npt.NDArray[np.generic] = (),
    values: float | Sequence[float] | npt.NDArray[np.generic] = (),
    default_value: float = 0.0,
    dtype: DTypeLike = DType.FLOAT,
    output_dtype: DTypeLike | None = None,
    name: str | None = None,
    device: Literal["cpu", "gpu", "mixed"] | None = None,
    preserve: bool = False,
    bytes_per_sample_hint: int | Sequence[int] | npt.NDArray[np.generic] = 0,
) -> DataNode:
    """Replace integers by values from a table. Input: integers, any shape. Output: the same shape in ``dtype``.

    A number without a key, also a negative one, becomes ``default_value``. Of equal keys the last one counts. Values
    are converted to ``dtype`` as `cast` does: integers are rounded half to even and saturate.

    Args:
        keys: Numbers that are replaced, from 0 to 65535.
        values: Their replacements, one for each key.
        default_value: Replacement of all other numbers.
        dtype: Element type of the output.
        output_dtype: Former name of `dtype`.
        name: Name of the node, shown in errors and by which outputs and readers are found.
        device: Where the operator runs.
        preserve: Run the operator also if its output is not used.
    """
    ...

def loudness(
    x: Input,
    /,
    *,
    sample_rate: float | DataNode = 16000.0,
    name: str | None = None,
    device: Literal["cpu", "gpu", "mixed"] | None = None,
    preserve: bool = False,
    bytes_per_sample_hint: int | Sequence[int] | npt.NDArray[np.generic] = 0,
) -> DataNode:
    """Measure the integrated loudness of a signal in LUFS. Input: float32 ``(n,)`` or ``(n, channels)``, full scale 1,
    1 to 5 channels (left, right, centre, and two surround channels, which weigh 1.41). Output: float32 without axes.

    The signal passes the two filters of ITU-R BS.1770-4, whose analog form defines them at any rate. The mean power of
    blocks of 400 ms, one every 100 ms, is taken of blocks above -70 LUFS, and then of blocks less than 10 LU below
    their mean. A signal of less than 400 ms is one block. A silent one has -inf. Source: ITU-R BS.1770-4, EBU R 128;
    the values of ``pyloudnorm.Meter(rate, filter_class="DeMan")``.

    Args:
        sample_rate: Sampling rate of the signal in Hz, 4000 to 1e7.
        name: Name of the node, shown in errors and by which outputs and readers are found.
        device: Where the operator runs.
        preserve: Run the operator also if its output is not used.
    """
    ...

def loudness_normalize(
    x: Input,
    /,
    *,
    sample_rate: float | DataNode = 16000.0,
    target: float | DataNode = -23.0,
    name: str | None = None,
    device: Literal["cpu", "gpu", "mixed"] | None = None,
    preserve: bool = False,
    bytes_per_sample_hint: int | Sequence[int] | npt.NDArray[np.generic] = 0,
) -> DataNode:
    """Scale a signal to a loudness. Input: float32 ``(n,)`` or ``(n, channels)``, full scale 1, 1 to 5 channels.
    Output: the same shape.

    The factor is ``10**((target - L) / 20)``, where L is the signal's `loudness` (ITU-R BS.1770-4). EBU R 128 asks for
    -23 LUFS; streaming services use -14 to -16. A silent signal stays as it is. Samples beyond full scale are not
    limited. Source: ``pyloudnorm.normalize.loudness``.

    Args:
        sample_rate: Sampling rate of the signal in Hz, 4000 to 1e7.
        target: Loudness of the output in LUFS, from -200 to 100.
        name: Name of the node, shown in errors and by which outputs and readers are found.
        device: Where the operator runs.
        preserve: Run the operator also if its output is not used.
    """
    ...

def mel_filter_bank(
    x: Input,
    /,
    *,
    nfilter: int = 128,
    sample_rate: float = 44100.0,
    freq_low: float = 0.0,
    freq_high: float = 0.0,
    normalize: bool = True,
    mel_formula: Literal["slaney", "htk"] = "slaney",
    name: str | None = None,
    device: Literal["cpu", "gpu", "mixed"] | None = None,
    preserve: bool = False,
    bytes_per_sample_hint: int | Sequence[int] | npt.NDArray[np.generic] = 0,
) -> DataNode:
    """Sum the bins of a spectrum over triangular filters, spaced evenly on the mel scale. Input: float32 with an axis f
    of ``nfft // 2 + 1`` bins (without names, the last axis but one). Output: the same with ``nfilter`` bins.

    The edges of the filters are evenly spaced in mel, their sides are straight in Hz. Sums are in float32, in ascending
    order of bins; both layouts give the same bits. ``mel_formula="slaney"`` with ``normalize`` gives librosa's filters,
    "htk" without it torchaudio's.

    Args:
        nfilter: Number of filters.
        sample_rate: Sampling rate of the signal in Hz. It is not taken from the file.
        freq_low: Lower edge of the first filter in Hz.
        freq_high: Upper edge of the last filter in Hz; 0: half of `sample_rate`, the largest value.
        normalize: Divide each filter by half its width in Hz, so that all have one area.
        mel_formula: Mel scale: "slaney" (linear to 1 kHz), or "htk" (logarithmic).
        name: Name of the node, shown in errors and by which outputs and readers are found.
        device: Where the operator runs.
        preserve: Run the operator also if its output is not used.
    """
    ...

def mfcc(
    x: Input,
    /,
    *,
    n_mfcc: int = 20,
    dct_type: int = 2,
    normalize: bool = False,
    axis: int = 0,
    lifter: float = 0.0,
    name: str | None = None,
    device: Literal["cpu", "gpu", "mixed"] | None = None,
    preserve: bool = False,
    bytes_per_sample_hint: int | Sequence[int] | npt.NDArray[np.generic] = 0,
) -> DataNode:
    """Compute mel-frequency cepstral coefficients: a discrete cosine transform along the axis of a mel spectrogram in
    decibels. Input: float32, any shape. Output: the same with ``n_mfcc`` elements along ``axis``.

    Without ``normalize`` the values are half of SciPy's, as DALI's are; with it they are SciPy's with ``norm="ortho"``.
    Coefficient i (from 0) is multiplied by ``1 + lifter / 2 sin(pi (i + 1) / lifter)``. Sums are in float32.

    Args:
        n_mfcc: Number of coefficients, at most as many as the axis has elements.
        dct_type: Type of the discrete cosine transform, 1 to 4.
        normalize: Use an orthonormal transform; not with type 1.
        axis: The axis of mel bands.
        lifter: Coefficient of the lifter, which raises higher coefficients; 0: none.
        name: Name of the node, shown in errors and by which outputs and readers are found.
        device: Where the operator runs.
        preserve: Run the operator also if its output is not used.
    """
    ...

def mix_noise(
    x: Input,
    noise: Input,
    /,
    *,
    snr: float | DataNode,
    seed: int | None = None,
    name: str | None = None,
    device: Literal["cpu", "gpu", "mixed"] | None = None,
    preserve: bool = False,
    bytes_per_sample_hint: int | Sequence[int] | npt.NDArray[np.generic] = 0,
) -> DataNode:
    """Add noise to a signal at a given signal-to-noise ratio. Inputs: the signal, and the noise, each of one channel,
    float32 ``(n,)`` or ``(n, 1)``, at one sampling rate. Output: the signal with noise, of the signal's shape.

    Of longer noise a random part is taken. Shorter noise is repeated from a random sample on. The gain of the noise is
    ``sqrt(P / N) 10**(-snr / 20)``, where P and N are the mean squares of the signal and of the noise that is added, so
    that the ratio of both is exactly `snr`. If the signal or the noise is silent (all zeros), nothing is added.

    A second reader supplies the noise (MUSAN, recorded rooms). Its number of files differs from that of the signals, so
    name the reader of the signals as the pipeline's ``epoch_reader``. The draw of the part belongs to the signal's
    sample: batch size and threads do not change it.

    Args:
        snr: Ratio of the powers of signal and noise in dB, from -200 to 200.
        seed: Seed of this operator's draws; by default it follows from the pipeline's.
        name: Name of the node, shown in errors and by which outputs and readers are found.
        device: Where the operator runs.
        preserve: Run the operator also if its output is not used.
    """
    ...

def mixup(
    x: Input,
    other: Input,
    /,
    *inputs: Input,
    weight: float | DataNode,
    num_classes: int = 0,
    input_names: str | Sequence[str] = (),
    name: str | None = None,
    device: Literal["cpu", "gpu", "mixed"] | None = None,
    preserve: bool = False,
    bytes_per_sample_hint: int | Sequence[int] | npt.NDArray[np.generic] = 0,
    boxes: Sequence[Input] | None = None,
    masks: Sequence[Input] | None = None,
    labels: Sequence[Input] | None = None,
) -> Any:
    """Mix two images and their labels: ``weight * x + (1 - weight) * y`` (Zhang et al., "mixup", 2018). Inputs: two
    images of one shape and type, any layout; optionally their labels: whole numbers, or floats (classes,). Outputs: the
    image, of the same type; the soft label, float32, or the type of soft labels.

    For detection (Zhang et al., "Bag of Freebies for Training Object Detection Neural Networks", 2019), ``boxes``,
    ``masks`` and ``labels`` are given by name, in place of those labels. Outputs: the image, and of each the objects of
    both images, those of the first one first. Nothing is dropped, for the mixture shows all objects. `geometry` takes
    images of different sizes to one canvas before.

    `readers.partner` reads the second sample, so that the batch size changes nothing. Products and their sum are
    rounded to float32 (float64 for float64), whole numbers half to even.

    Args:
        boxes: Boxes of both images, (N, 4) of one type. A pair.
        masks: Masks of both images' objects, (N, H, W) of one type. A pair.
        labels: Anything with an element for each object along the first axis. A pair.
        weight: Share of the first sample, from 0 to 1: `random.beta` draws it.
        num_classes: Number of classes, if labels are whole numbers.
        input_names: Names of the inputs after the images, for calls by position.
        name: Name of the node, shown in errors and by which outputs and readers are found.
        device: Where the operator runs.
        preserve: Run the operator also if its output is not used.
    """
    ...

def mosaic(
    *inputs: Input,
    size: int | Sequence[int | DataNode] | npt.NDArray[np.generic] | DataNode,
    center: float | Sequence[float | DataNode] | npt.NDArray[np.generic] | DataNode = (0.5, 0.5),
    bbox_layout: str = "xyXY",
    normalized: bool = False,
    mask_layout: Literal["HW", "NHW"] = "HW",
    min_area: float | DataNode = 0.0,
    min_visibility: float | DataNode = 0.0,
    input_names: str | Sequence[str] = (),
    name: str | None = None,
    device: Literal["cpu", "gpu", "mixed"] | None = None,
    preserve: bool = False,
    bytes_per_sample_hint: int | Sequence[int] | npt.NDArray[np.generic] = 0,
    boxes: Sequence[Input] | None = None,
    masks: Sequence[Input] | None = None,
    labels: Sequence[Input] | None = None,
) -> Any:
    """Join four images into one that shows a part of each (Bochkovskiy et al., "YOLOv4", 2020). Inputs: four images HWC
    with equal channels; by name ``boxes``, ``masks`` and ``labels``, a list of four each. Outputs: the image, HWC of
    ``size``; boxes, masks and labels of all that is left, in the order of the images.

    Each image is resized, with its proportions, to the smallest size that covers the canvas (`resize` with
    ``mode="not_smaller"``). Its inner corner is put at ``center``, so the canvas shows the lower right part of the
    first image at the top left, and no pixel is empty. Boxes are cut at the part that their image has. Objects are
    dropped together as in `geometry`. `readers.partner` with three different ``number`` reads the other samples, so
    that the batch size changes nothing.

    Args:
        boxes: Boxes of each image, float32 (N, 4). Four.
        masks: A mask of labels of each image, HW; or with `mask_layout` NHW a mask for each box. Four.
        labels: Anything with an element for each box along the first axis. Four.
        size: Size of the canvas in pixels, (height, width).
        center: Point where the four images meet, (y, x), as shares of the canvas from 0 to 1: `random.uniform`
            draws it.
        bbox_layout: Numbers of a box: xyXY or xyWH.
        normalized: Boxes are relative to the image, else in pixels.
        mask_layout: Axes of `masks`.
        min_area: Least area of an object within the canvas, in pixels of the canvas.
        min_visibility: Least share of an object's area within the canvas, from 0 to 1.
        input_names: Names of the inputs after the images, for calls by position.
        name: Name of the node, shown in errors and by which outputs and readers are found.
        device: Where the operator runs.
        preserve: Run the operator also if its output is not used.
    """
    ...

def motion_blur(
    x: Input,
    /,
    *,
    size: int | DataNode = 9,
    angle: float | DataNode = 0.0,
    direction: float | DataNode = 0.0,
    border: Literal["reflect_101", "reflect_1001", "wrap", "clamp"] = "reflect_101",
    dtype: DTypeLike | None = None,
    name: str | None = None,
    device: Literal["cpu", "gpu", "mixed"] | None = None,
    preserve: bool = False,
    bytes_per_sample_hint: int | Sequence[int] | npt.NDArray[np.generic] = 0,
) -> DataNode:
    """Blur images as if the camera had moved along a line. Input: HW, HWC, CHW or these with a leading F; 8 and 16
    bits, float32. Output: the same layout.

    Each pixel becomes the mean over a line through it, ``size`` pixels long. A pixel of the window has the weight of
    the part of a line, one pixel wide, that it covers, falling linearly with the distance from the line; with
    `direction` weights rise along it. The weights sum to 1. Sums are those of `filter`.

    Args:
        size: Length of the line and side of the window in pixels: odd, 1 to 255.
        angle: Angle of the line in degrees, counterclockwise; 0: horizontal.
        direction: Slope of the weights along the line, -1 to 1. 0: all equal; 1: from about 0 to twice the
            mean.
        border: Pixels beyond the edges, as for `filter`.
        dtype: Element type of the output: float32, or the input's.
        name: Name of the node, shown in errors and by which outputs and readers are found.
        device: Where the operator runs.
        preserve: Run the operator also if its output is not used.
    """
    ...

def multi_paste(
    *images: Input,
    in_ids: int | Sequence[int | DataNode] | npt.NDArray[np.generic] | DataNode | None = None,
    in_anchors: int | Sequence[int | DataNode] | npt.NDArray[np.generic] | DataNode | None = None,
    in_anchors_rel: float | Sequence[float | DataNode] | npt.NDArray[np.generic] | DataNode | None = None,
    shapes: int | Sequence[int | DataNode] | npt.NDArray[np.generic] | DataNode | None = None,
    shapes_rel: float | Sequence[float | DataNode] | npt.NDArray[np.generic] | DataNode | None = None,
    out_anchors: int | Sequence[int | DataNode] | npt.NDArray[np.generic] | DataNode | None = None,
    out_anchors_rel: float | Sequence[float | DataNode] | npt.NDArray[np.generic] | DataNode | None = None,
    output_size: int | Sequence[int | DataNode] | npt.NDArray[np.generic] | DataNode | None = None,
    dtype: DTypeLike | None = None,
    name: str | None = None,
    device: Literal["cpu", "gpu", "mixed"] | None = None,
    preserve: bool = False,
    bytes_per_sample_hint: int | Sequence[int] | npt.NDArray[np.generic] = 0,
) -> DataNode:
    """Paste regions of images onto a canvas of zeros, one after another: later ones cover earlier ones. Inputs: an
    image for each region, all of one type, HWC or FHWC; or with ``in_ids`` one image, whose regions come from other
    rows of the batch. Output: the canvas, of ``dtype`` or the images' type, rounded and saturated.

    Regions must lie within their image and the canvas. Numbers are pairs (height, width), one pair for each region.
    Relative places are rounded down, relative extents up. With ``in_ids`` results depend on the batch; `mosaic` takes
    other samples of the epoch instead.

    Args:
        in_ids: For each region, the number of a row of the batch (in a branch of an `if`, of its rows), from 0.
        in_anchors: Starts of the regions in their images; by default 0.
        in_anchors_rel: The same, relative to the image.
        shapes: Extents of the regions; by default up to the image's end.
        shapes_rel: The same, relative to the image.
        out_anchors: Starts of the regions in the canvas; by default 0.
        out_anchors_rel: The same, relative to the canvas.
        output_size: Size of the canvas; by default that of all images.
        dtype: Element type of the output; by default the input's.
        name: Name of the node, shown in errors and by which outputs and readers are found.
        device: Where the operator runs.
        preserve: Run the operator also if its output is not used.
    """
    ...

def nms(
    boxes: Input,
    scores: Input,
    /,
    *,
    iou_threshold: float | DataNode = 0.5,
    labels: int | Sequence[int | DataNode] | npt.NDArray[np.generic] | DataNode | None = None,
    max_outputs: int = 0,
    name: str | None = None,
    device: Literal["cpu", "gpu", "mixed"] | None = None,
    preserve: bool = False,
    bytes_per_sample_hint: int | Sequence[int] | npt.NDArray[np.generic] = 0,
) -> DataNode:
    """Keep the boxes that no box with a higher score overlaps too much (non-maximum suppression).

    Inputs: boxes ``x0, y0, x1, y1`` of shape (N, 4), and scores (N,), both float32 or both float64. Output: the numbers
    of the kept boxes by descending score, int64. Rows have different lengths. ``fn.gather`` takes the boxes and their
    labels.

    The numbers are those of torchvision's CPU kernel. Boxes are visited by descending score, NaN first, equal scores in
    their order. Overlaps are computed in the boxes' type and compared with the threshold in float64. With ``labels``,
    boxes of other labels are not compared at all: torchvision's ``batched_nms`` shifts them apart by coordinates if
    there are few, which rounds differently.

    On a GPU the length of a row is known when the batch is done. There, ``fn.gather`` and operators on single elements
    may follow, and with gathered boxes ``fn.roi_align``, ``fn.roi_pool`` and ``fn.box_iou``. Others are refused.

    Args:
        iou_threshold: Overlap (intersection over union) above which the box with the lower score is suppressed.
        labels: Label of each box, whole numbers of shape (N,), as a node or an array. Boxes of different labels
            do not suppress each other.
        max_outputs: Greatest number of boxes to keep, the best ones; 0: no limit.
        name: Name of the node, shown in errors and by which outputs and readers are found.
        device: Where the operator runs.
        preserve: Run the operator also if its output is not used.
    """
    ...

def nms_rotated(
    boxes: Input,
    scores: Input,
    /,
    *,
    iou_threshold: float | DataNode = 0.5,
    labels: int | Sequence[int | DataNode] | npt.NDArray[np.generic] | DataNode | None = None,
    max_outputs: int = 0,
    name: str | None = None,
    device: Literal["cpu", "gpu", "mixed"] | None = None,
    preserve: bool = False,
    bytes_per_sample_hint: int | Sequence[int] | npt.NDArray[np.generic] = 0,
) -> DataNode:
    """Keep the rotated boxes that no box with a higher score overlaps too much.

    Inputs: boxes ``centre x, centre y, width, height, angle`` of shape (N, 5), and scores (N,), both float32 or both
    float64. The angle is in degrees; all boxes turn the same way, so that the direction does not matter. Output: the
    numbers of the kept boxes by descending score, int64. Overlaps are the areas of the common polygons, computed in
    float64.

    On a GPU the length of a row is known when the batch is done. There, ``fn.gather`` and operators on single elements
    may follow, and with gathered boxes ``fn.roi_align``, ``fn.roi_pool`` and ``fn.box_iou``. Others are refused.

    Args:
        iou_threshold: Overlap (intersection over union) above which the box with the lower score is suppressed.
        labels: Label of each box, whole numbers of shape (N,), as a node or an array. Boxes of different labels
            do not suppress each other.
        max_outputs: Greatest number of boxes to keep, the best ones; 0: no limit.
        name: Name of the node, shown in errors and by which outputs and readers are found.
        device: Where the operator runs.
        preserve: Run the operator also if its output is not used.
    """
    ...

def nonsilent_region(
    x: Input,
    /,
    *,
    cutoff_db: float = -60.0,
    window_length: int = 2048,
    reference_power: float = 0.0,
    reset_interval: int = 8192,
    name: str | None = None,
    device: Literal["cpu", "gpu", "mixed"] | None = None,
    preserve: bool = False,
    bytes_per_sample_hint: int | Sequence[int] | npt.NDArray[np.generic] = 0,
) -> tuple[DataNode, DataNode]:
    """Find the region of a signal that is not silent. Input: one channel, ``(n,)`` or ``(n, 1)``, any number type.
    Outputs: the first sample, and the number of samples, int32 without axes.

    A sample is loud if the mean square of the last ``window_length`` samples reaches ``cutoff_db`` below the reference.
    The region ends at the last loud sample and begins ``window_length - 1`` samples before the first one, as DALI's. A
    signal of zeros is loud everywhere, one of NaNs or without samples nowhere (0, 0). ``slice`` cuts the region.

    Args:
        cutoff_db: Threshold in dB relative to the reference.
        window_length: Samples of the moving mean, at most those of the signal.
        reference_power: Power of 0 dB; 0: the largest moving mean of the signal.
        name: Name of the node, shown in errors and by which outputs and readers are found.
        device: Where the operator runs.
        preserve: Run the operator also if its output is not used.
    """
    ...

def normalize(
    x: Input,
    /,
    *,
    batch: bool = False,
    mean: float | Sequence[float | DataNode] | npt.NDArray[np.generic] | DataNode | None = None,
    stddev: float | Sequence[float | DataNode] | npt.NDArray[np.generic] | DataNode | None = None,
    axes: int | Sequence[int] | npt.NDArray[np.generic] | None = None,
    axis_names: str | None = None,
    shift: float = 0.0,
    scale: float = 1.0,
    ddof: int = 0,
    epsilon: float = 0.0,
    dtype: DTypeLike = DType.FLOAT,
    name: str | None = None,
    device: Literal["cpu", "gpu", "mixed"] | None = None,
    preserve: bool = False,
    bytes_per_sample_hint: int | Sequence[int] | npt.NDArray[np.generic] = 0,
) -> DataNode:
    """Normalize data to a mean and a standard deviation: ``(x - mean) / stddev * scale + shift``. Input: numbers, any
    shape. Output: the same shape in ``dtype``.

    The mean and the deviation are those of the data along ``axes``, unless they are given: a number, or a tensor with
    the input's axes and extents of 1 along ``axes``. ``epsilon`` is added to the variance. Data without deviation
    become ``shift``; a given deviation of 0 divides by 0. With ``batch`` they are those of all rows of a batch
    together: rows then depend on which others share their batch. Sums are in double, in one order on every machine, and
    the result is computed in float32.

    Args:
        batch: One mean and deviation for all rows of a batch.
        mean: Mean: a number, or a node with a tensor.
        stddev: Standard deviation: a number, or a node with a tensor.
        axes: Axes of the statistics, negative ones from the last; by default all.
        axis_names: The same by names.
        shift: Added to the result: the new mean.
        scale: Factor of the result: the new standard deviation.
        ddof: Delta degrees of freedom: squares are divided by the number of elements minus `ddof`.
        epsilon: Added to the variance, at least 0.
        dtype: Element type of the output.
        name: Name of the node, shown in errors and by which outputs and readers are found.
        device: Where the operator runs.
        preserve: Run the operator also if its output is not used.
    """
    ...

def one_hot(
    x: Input,
    /,
    *,
    num_classes: int = 0,
    axis: int | None = None,
    on_value: float = 1.0,
    off_value: float = 0.0,
    dtype: DTypeLike = DType.FLOAT,
    axis_name: str | None = None,
    name: str | None = None,
    device: Literal["cpu", "gpu", "mixed"] | None = None,
    preserve: bool = False,
    bytes_per_sample_hint: int | Sequence[int] | npt.NDArray[np.generic] = 0,
) -> DataNode:
    """Encode class numbers as vectors: a new axis of ``num_classes`` elements, with ``on_value`` at the number of the
    class and ``off_value`` elsewhere. Input: numbers, any shape.

    Fractions are cut off. A number outside the classes, or NaN, gives ``off_value`` only. The two values are converted
    to ``dtype`` as `cast` does: they saturate, where DALI wraps. Without ``axis``, a tensor of one element counts as a
    scalar, as in DALI; unknown extents are those of the first batch. Without ``num_classes`` DALI makes empty vectors;
    here it is required.

    Args:
        num_classes: Number of classes, at least 1.
        axis: The new axis; by default the last one.
        on_value: Value at the number of the class.
        off_value: Value at other numbers.
        dtype: Element type of the output.
        axis_name: Name of the new axis; without it the output's axes have no names.
        name: Name of the node, shown in errors and by which outputs and readers are found.
        device: Where the operator runs.
        preserve: Run the operator also if its output is not used.
    """
    ...

def ones(
    *,
    shape: int | Sequence[int | DataNode] | npt.NDArray[np.generic] | DataNode | None = None,
    dtype: DTypeLike = DType.INT32,
    layout: str | None = None,
    name: str | None = None,
    device: Literal["cpu", "gpu", "mixed"] | None = None,
    preserve: bool = False,
    bytes_per_sample_hint: int | Sequence[int] | npt.NDArray[np.generic] = 0,
) -> DataNode:
    """Create a tensor of ones. Output: ``shape``; a scalar if it is not given.

    Args:
        shape: Shape of the output; a scalar if not given.
        dtype: Element type of the output.
        layout: Names of the output's axes.
        name: Name of the node, shown in errors and by which outputs and readers are found.
        device: Where the operator runs.
        preserve: Run the operator also if its output is not used.
    """
    ...

def ones_like(
    like: Input,
    /,
    *,
    dtype: DTypeLike | None = None,
    name: str | None = None,
    device: Literal["cpu", "gpu", "mixed"] | None = None,
    preserve: bool = False,
    bytes_per_sample_hint: int | Sequence[int] | npt.NDArray[np.generic] = 0,
) -> DataNode:
    """Create a tensor of ones with the input's shape and layout. Output: the input's type unless ``dtype`` is given.

    Args:
        dtype: Element type of the output; by default the input's.
        name: Name of the node, shown in errors and by which outputs and readers are found.
        device: Where the operator runs.
        preserve: Run the operator also if its output is not used.
    """
    ...

def optical_distortion(
    x: Input,
    /,
    *,
    interp_type: InterpType = InterpType.INTERP_LINEAR,
    fill_value: float = 0.0,
    limit: float | Sequence[float | DataNode] | npt.NDArray[np.generic] | DataNode = (-0.05, 0.05),
    seed: int | None = None,
    name: str | None = None,
    device: Literal["cpu", "gpu", "mixed"] | None = None,
    preserve: bool = False,
    bytes_per_sample_hint: int | Sequence[int] | npt.NDArray[np.generic] = 0,
) -> DataNode:
    """Distort images by a random lens: `lens_distortion` with a number from ``limit`` as the first two numbers of
    ``radial``. Input: images of up to 32 bits an element, HW, HWC, CHW or these with a leading F. Output: the same.

    Args:
        interp_type: INTERP_NN, INTERP_LINEAR or INTERP_CUBIC.
        fill_value: Value outside of the image.
        limit: Range of the number.
        seed: Seed of this operator's draws; by default it follows from the pipeline's.
        name: Name of the node, shown in errors and by which outputs and readers are found.
        device: Where the operator runs.
        preserve: Run the operator also if its output is not used.
    """
    ...

def pad(
    x: Input,
    /,
    *,
    fill_value: float | DataNode = 0.0,
    axes: int | Sequence[int | DataNode] | npt.NDArray[np.generic] | DataNode | None = None,
    axis_names: str | None = None,
    align: int | Sequence[int | DataNode] | npt.NDArray[np.generic] | DataNode | None = None,
    shape: int | Sequence[int | DataNode] | npt.NDArray[np.generic] | DataNode | None = None,
    name: str | None = None,
    device: Literal["cpu", "gpu", "mixed"] | None = None,
    preserve: bool = False,
    bytes_per_sample_hint: int | Sequence[int] | npt.NDArray[np.generic] = 0,
) -> DataNode:
    """Pad tensors at the ends of their axes. Input: any type and shape. Output: the same type and layout.

    An extent is at least that of ``shape``, then rounded up to a multiple of ``align``. Without ``shape``, and where it
    is -1, it is the largest one of the batch: rows then depend on which others share their batch, so they change with
    the batch size. Give a constant ``shape`` if they must not. The fill value saturates, where DALI's wraps; an extent
    of 0 asks for nothing, where DALI takes it for -1.

    Args:
        fill_value: Value of the new elements.
        axes: Axes that are padded, negative ones from the last; by default all.
        axis_names: The same by names.
        align: Extents are rounded up to multiples: one, or one per axis.
        shape: Smallest extents, one per axis; -1: the largest one of the batch. By default -1 for all axes.
        name: Name of the node, shown in errors and by which outputs and readers are found.
        device: Where the operator runs.
        preserve: Run the operator also if its output is not used.
    """
    ...

def paste(
    x: Input,
    /,
    *,
    ratio: float | DataNode,
    fill_value: int | Sequence[int] | npt.NDArray[np.generic],
    n_channels: int = 3,
    paste_x: float | DataNode = 0.5,
    paste_y: float | DataNode = 0.5,
    min_canvas_size: float | DataNode = 0.0,
    name: str | None = None,
    device: Literal["cpu", "gpu", "mixed"] | None = None,
    preserve: bool = False,
    bytes_per_sample_hint: int | Sequence[int] | npt.NDArray[np.generic] = 0,
) -> DataNode:
    """Put an image on a larger canvas. Input: HW, HWC, CHW or these with a leading F, up to 32 bits an element. Output:
    the same layout.

    The canvas has ``int(ratio * extent)`` pixels, at least ``int(min_canvas_size)``, and the image begins at
    ``int(paste * (canvas - extent))``, in float32. The bytes are DALI's.

    Args:
        ratio: Extents of the canvas as multiples of the image's, at least 1.
        fill_value: Colour of the canvas: one value, or one for each channel.
        paste_x: Horizontal place of the image, from 0 (left) to 1 (right).
        paste_y: Vertical place of the image, from 0 (top) to 1 (bottom).
        min_canvas_size: Smallest extent of the canvas in pixels.
        name: Name of the node, shown in errors and by which outputs and readers are found.
        device: Where the operator runs.
        preserve: Run the operator also if its output is not used.
    """
    ...

def peek_image_shape(
    data: Input,
    /,
    *,
    adjust_orientation: bool = True,
    image_type: ImageType = ImageType.RGB,
    scale_denom: int = 1,
    dtype: DTypeLike = DType.INT64,
    max_pixels: int = 0,
    name: str | None = None,
    device: Literal["cpu", "gpu", "mixed"] | None = None,
    preserve: bool = False,
    bytes_per_sample_hint: int | Sequence[int] | npt.NDArray[np.generic] = 0,
) -> DataNode:
    """Read an image's shape from its header. Input: a file's bytes. Output: ``(3,)``: height, width, channels.

    Args:
        adjust_orientation: Return the shape after the EXIF orientation is applied.
        image_type: Colour model that decides the number of channels.
        scale_denom: Return the shape that decoders produce with `scale_denom`.
        dtype: Element type of the output.
        max_pixels: Files that declare more pixels are errors, as for decoders. 0: no limit.
        name: Name of the node, shown in errors and by which outputs and readers are found.
        device: Where the operator runs.
        preserve: Run the operator also if its output is not used.
    """
    ...

def per_frame(
    x: Input,
    /,
    *,
    replace: bool = False,
    name: str | None = None,
    device: Literal["cpu", "gpu", "mixed"] | None = None,
    preserve: bool = False,
    bytes_per_sample_hint: int | Sequence[int] | npt.NDArray[np.generic] = 0,
) -> DataNode:
    """Mark a tensor as one value per frame. Its first axis then runs along the frames of the operator that it is passed
    to.

    ``fn.rotate(video, angle=fn.per_frame(angles))`` rotates every frame by its own angle. Moves no data.

    Args:
        replace: Take also a tensor whose first axis has another name than F.
        name: Name of the node, shown in errors and by which outputs and readers are found.
        device: Where the operator runs.
        preserve: Run the operator also if its output is not used.
    """
    ...

def permute_batch(
    x: Input,
    /,
    *,
    indices: int | Sequence[int | DataNode] | npt.NDArray[np.generic] | DataNode,
    name: str | None = None,
    device: Literal["cpu", "gpu", "mixed"] | None = None,
    preserve: bool = False,
    bytes_per_sample_hint: int | Sequence[int] | npt.NDArray[np.generic] = 0,
) -> DataNode:
    """Take each row's data from another row of the same batch; moves no data.

    ``indices`` is a number per row (a node, for example of ``random.choice`` or ``batch_permutation``), or a list with
    one number for every row of the batch. An index outside the batch is an error of the row. In a branch of an ``if``,
    the branch's rows are the batch: rows are counted among them. Results depend on which rows share a batch, so they
    change with the batch size.

    Args:
        indices: Number of the row to take, counted in the batch from 0.
        name: Name of the node, shown in errors and by which outputs and readers are found.
        device: Where the operator runs.
        preserve: Run the operator also if its output is not used.
    """
    ...

def pitch_shift(
    x: Input,
    /,
    *,
    n_steps: float | DataNode,
    nfft: int | None = None,
    window_length: int = 2048,
    window_step: int = 512,
    window_fn: float | Sequence[float] | npt.NDArray[np.generic] | None = None,
    quality: float = 50.0,
    name: str | None = None,
    device: Literal["cpu", "gpu", "mixed"] | None = None,
    preserve: bool = False,
    bytes_per_sample_hint: int | Sequence[int] | npt.NDArray[np.generic] = 0,
) -> DataNode:
    """Change the pitch of a signal and keep its tempo. Input: one channel, float32 ``(n,)`` or ``(n, 1)``. Output:
    ``(n,)``.

    `time_stretch` changes the length, and `audio_resample` restores it. Source: ``librosa.effects.pitch_shift``, whose
    resampler differs.

    Args:
        nfft: Points of the transform; by default `window_length`. Larger: zeros around the frame.
        window_length: Samples of a frame.
        window_step: Samples from one frame to the next.
        window_fn: Factors of a frame's samples; by default a periodic Hann window.
        n_steps: Semitones, -48 to 48: 12 is an octave up.
        quality: Quality of resampling, 0 to 100 (`audio_resample`).
        name: Name of the node, shown in errors and by which outputs and readers are found.
        device: Where the operator runs.
        preserve: Run the operator also if its output is not used.
    """
    ...

def posterize(
    x: Input,
    /,
    *,
    bits: int | DataNode,
    name: str | None = None,
    device: Literal["cpu", "gpu", "mixed"] | None = None,
    preserve: bool = False,
    bytes_per_sample_hint: int | Sequence[int] | npt.NDArray[np.generic] = 0,
) -> DataNode:
    """Keep the highest bits of every element. Input: unsigned bytes of any shape. Output: the same shape.

    Equal to torchvision's ``posterize`` and Pillow's ``ImageOps.posterize``, bit for bit.

    Args:
        bits: Number of bits to keep, from 0 to 8.
        name: Name of the node, shown in errors and by which outputs and readers are found.
        device: Where the operator runs.
        preserve: Run the operator also if its output is not used.
    """
    ...

def power_spectrum(
    x: Input,
    /,
    *,
    axis: int = -1,
    nfft: int | None = None,
    power: int = 2,
    name: str | None = None,
    device: Literal["cpu", "gpu", "mixed"] | None = None,
    preserve: bool = False,
    bytes_per_sample_hint: int | Sequence[int] | npt.NDArray[np.generic] = 0,
) -> DataNode:
    """Compute the power of the spectrum along an axis. Input: float32, any shape. Output: float32, with
    ``nfft // 2 + 1`` bins along the axis.

    Any ``nfft`` works; products of 2, 3 and 5 are fast. The largest error is about 4e-7 of the largest value of a
    spectrum.

    Args:
        axis: The axis of time.
        nfft: Points of the transform; by default the extent of the axis. Larger: zeros follow the data.
        power: Exponent of the magnitude: 2 for the power, 1 for the magnitude.
        name: Name of the node, shown in errors and by which outputs and readers are found.
        device: Where the operator runs.
        preserve: Run the operator also if its output is not used.
    """
    ...

def preemphasis_filter(
    x: Input,
    /,
    *,
    preemph_coeff: float | DataNode = 0.97,
    border: Literal["clamp", "zero", "reflect"] = "clamp",
    dtype: DTypeLike = DType.FLOAT,
    name: str | None = None,
    device: Literal["cpu", "gpu", "mixed"] | None = None,
    preserve: bool = False,
    bytes_per_sample_hint: int | Sequence[int] | npt.NDArray[np.generic] = 0,
) -> DataNode:
    """Raise the high frequencies of a signal: ``y[t] = x[t] - c x[t - 1]``. Input: one channel, ``(n,)`` or ``(n, 1)``,
    any number type. Output: the same shape. Computed in float32, exactly in this order.

    Signals of several channels are refused: DALI filters them as one sequence, across channels.

    Args:
        preemph_coeff: The coefficient c.
        border: Sample before the first: the first (clamp), 0 (zero) or the second (reflect).
        dtype: Element type of the output. Integers are rounded and saturate.
        name: Name of the node, shown in errors and by which outputs and readers are found.
        device: Where the operator runs.
        preserve: Run the operator also if its output is not used.
    """
    ...

@overload
def python_function(
    *inputs: Input,
    function: Any,
    num_outputs: Literal[1] = 1,
    batch_processing: bool = False,
    output_layouts: str | Sequence[str] | None = None,
    output_dtypes: DTypeLike | Sequence[DTypeLike] | None = None,
    output_ndims: int | Sequence[int] | npt.NDArray[np.generic] | None = None,
    isolate: bool = False,
    time_limit_s: float = 60.0,
    seed: int | None = None,
    name: str | None = None,
    device: Literal["cpu", "gpu", "mixed"] | None = None,
    preserve: bool = False,
    bytes_per_sample_hint: int | Sequence[int] | npt.NDArray[np.generic] = 0,
) -> DataNode:
    """Call a Python function with the inputs of each row as NumPy arrays. The function returns the outputs.

    Results may be arrays, DLPack tensors or capsules, numbers or bytes; with several outputs, a tuple of them. Types
    that are not declared are taken from the first batch, in which at least one row must succeed; they must not change.
    With ``batch_processing=True`` the function is called once per batch, with a list of arrays for each input, and
    returns a list (or an array with a leading axis) for each output.

    A function with a parameter called ``rng`` receives the row's ``numpy.random.Generator`` (a list of them for a
    batch). Its numbers are the same for any number of threads, batch size and order. Rows come in order, one at a time.
    An exception fails its row; the pipeline can go on.

    With ``isolate=True`` the function runs in a process of its own, to which rows go through shared memory. A crash of
    the process (a library's segmentation fault, an abort, ``os._exit``), or a call that does not return within
    ``time_limit_s``, fails its row alone; a new process computes the next rows. Eager calls have a process each. How
    processes start, and how functions get there, are the pipeline's ``py_start_method`` and ``py_callback_pickler``.

    Args:
        function: The function.
        num_outputs: Number of outputs; 0 for a function that is called for its effect.
        batch_processing: Call it once for all rows of a batch.
        output_layouts: Names of the outputs' axes, one string or one per output.
        output_dtypes: Element types of all outputs; with `output_ndims`.
        output_ndims: Numbers of axes of all outputs; with `output_dtypes`.
        isolate: Run the function in a process of its own.
        time_limit_s: Seconds after which a call of an isolated function fails.
        seed: Seed of this operator's draws; by default it follows from the pipeline's.
        name: Name of the node, shown in errors and by which outputs and readers are found.
        device: Where the operator runs.
        preserve: Run the operator also if its output is not used.
    """
    ...

@overload
def python_function(
    *inputs: Input,
    function: Any,
    num_outputs: int,
    batch_processing: bool = False,
    output_layouts: str | Sequence[str] | None = None,
    output_dtypes: DTypeLike | Sequence[DTypeLike] | None = None,
    output_ndims: int | Sequence[int] | npt.NDArray[np.generic] | None = None,
    isolate: bool = False,
    time_limit_s: float = 60.0,
    seed: int | None = None,
    name: str | None = None,
    device: Literal["cpu", "gpu", "mixed"] | None = None,
    preserve: bool = False,
    bytes_per_sample_hint: int | Sequence[int] | npt.NDArray[np.generic] = 0,
) -> tuple[DataNode, ...]:
    """Call a Python function with the inputs of each row as NumPy arrays. The function returns the outputs.

    Results may be arrays, DLPack tensors or capsules, numbers or bytes; with several outputs, a tuple of them. Types
    that are not declared are taken from the first batch, in which at least one row must succeed; they must not change.
    With ``batch_processing=True`` the function is called once per batch, with a list of arrays for each input, and
    returns a list (or an array with a leading axis) for each output.

    A function with a parameter called ``rng`` receives the row's ``numpy.random.Generator`` (a list of them for a
    batch). Its numbers are the same for any number of threads, batch size and order. Rows come in order, one at a time.
    An exception fails its row; the pipeline can go on.

    With ``isolate=True`` the function runs in a process of its own, to which rows go through shared memory. A crash of
    the process (a library's segmentation fault, an abort, ``os._exit``), or a call that does not return within
    ``time_limit_s``, fails its row alone; a new process computes the next rows. Eager calls have a process each. How
    processes start, and how functions get there, are the pipeline's ``py_start_method`` and ``py_callback_pickler``.

    Args:
        function: The function.
        num_outputs: Number of outputs; 0 for a function that is called for its effect.
        batch_processing: Call it once for all rows of a batch.
        output_layouts: Names of the outputs' axes, one string or one per output.
        output_dtypes: Element types of all outputs; with `output_ndims`.
        output_ndims: Numbers of axes of all outputs; with `output_dtypes`.
        isolate: Run the function in a process of its own.
        time_limit_s: Seconds after which a call of an isolated function fails.
        seed: Seed of this operator's draws; by default it follows from the pipeline's.
        name: Name of the node, shown in errors and by which outputs and readers are found.
        device: Where the operator runs.
        preserve: Run the operator also if its output is not used.
    """
    ...

@overload
def random_bbox_crop(
    boxes: Input,
    /,
    *labels: Input,
    all_boxes_above_threshold: bool = True,
    allow_no_crop: bool = True,
    aspect_ratio: float | Sequence[float] | npt.NDArray[np.generic] = (1.0, 1.0),
    bbox_layout: str = "",
    bbox_prune_threshold: float | None = None,
    crop_shape: int | Sequence[int | DataNode] | npt.NDArray[np.generic] | DataNode | None = None,
    input_shape: int | Sequence[int | DataNode] | npt.NDArray[np.generic] | DataNode | None = None,
    ltrb: bool = True,
    num_attempts: int = 1,
    output_bbox_indices: Literal[False] = False,
    quiet: bool = False,
    scaling: float | Sequence[float] | npt.NDArray[np.generic] = (1.0, 1.0),
    shape_layout: str = "",
    threshold_type: Literal["iou", "overlap"] = "iou",
    thresholds: float | Sequence[float] | npt.NDArray[np.generic] = 0.0,
    total_num_attempts: int = -1,
    seed: int | None = None,
    name: str | None = None,
    device: Literal["cpu", "gpu", "mixed"] | None = None,
    preserve: bool = False,
    bytes_per_sample_hint: int | Sequence[int] | npt.NDArray[np.generic] = 0,
) -> tuple[DataNode, DataNode, DataNode]:
    """Draw a window of the image that keeps enough of its boxes, as in the training of SSD. Inputs: boxes relative to
    the image, float32 (N, 4), or (N, 6) for volumes; optionally N labels, any type. Outputs: anchor and shape of the
    window for `slice`, float32, in the order x, y(, z); the boxes that are left, relative to the window; their labels,
    if there are any; with ``output_bbox_indices`` their numbers, int32.

    A draw takes one of ``thresholds`` (or, with ``allow_no_crop``, no crop) and proposes up to ``num_attempts``
    windows; then it takes another threshold. A window is taken if it has the aspect ratio, every box reaches the
    threshold, and a box is left. A box is left if its centre lies in the window, or with ``bbox_prune_threshold`` if
    this share of its area does. Without boxes the first window is taken. So no crop is drawn more often than one in
    ``len(thresholds) + 1``: it also ends searches that fail.

    Without ``total_num_attempts``, a row whose 10,000 windows all fail is an error; DALI searches for ever. With it,
    the window with the best metric is used. If ``aspect_ratio`` is one value, one random axis determines the others,
    within the image; DALI proposes windows up to 1.8 times as large as the image. Boxes outside [0, 1] are refused. The
    numbers that are drawn are Stoker's own.

    The operator runs on the CPU, as in DALI: images are decoded in the window, and shapes are computed from it.

    Args:
        all_boxes_above_threshold: Every box must reach the threshold, else one of them.
        allow_no_crop: The whole image is one of the outcomes; not with `crop_shape`.
        aspect_ratio: Range of width over height, relative to the image, or in pixels with `input_shape`. For
            volumes also three ranges: x/y, x/z, y/z.
        bbox_layout: Numbers of a box: xyXY or xyWH, by default by `ltrb`; for volumes xyzXYZ or xyzWHD.
        bbox_prune_threshold: Least share of a box's area within the window.
        crop_shape: Fixed size of the window in pixels.
        input_shape: Size of the image in pixels.
        ltrb: Boxes are left, top, right, bottom instead of x, y, width, height.
        num_attempts: Windows that are proposed for a threshold.
        output_bbox_indices: Also return the numbers of the boxes that are left.
        scaling: Range of the window's extents relative to the image's.
        shape_layout: Order of `crop_shape` and `input_shape`: WH (default), HW, WHD, ...
        threshold_type: Metric: iou, or overlap (share of the box).
        thresholds: Least metrics of window and boxes; one is drawn.
        total_num_attempts: Windows after which the best one is used.
        seed: Seed of this operator's draws; by default it follows from the pipeline's.
        name: Name of the node, shown in errors and by which outputs and readers are found.
        device: Where the operator runs.
        preserve: Run the operator also if its output is not used.
    """
    ...

@overload
def random_bbox_crop(
    boxes: Input,
    /,
    *labels: Input,
    all_boxes_above_threshold: bool = True,
    allow_no_crop: bool = True,
    aspect_ratio: float | Sequence[float] | npt.NDArray[np.generic] = (1.0, 1.0),
    bbox_layout: str = "",
    bbox_prune_threshold: float | None = None,
    crop_shape: int | Sequence[int | DataNode] | npt.NDArray[np.generic] | DataNode | None = None,
    input_shape: int | Sequence[int | DataNode] | npt.NDArray[np.generic] | DataNode | None = None,
    ltrb: bool = True,
    num_attempts: int = 1,
    output_bbox_indices: Literal[True],
    quiet: bool = False,
    scaling: float | Sequence[float] | npt.NDArray[np.generic] = (1.0, 1.0),
    shape_layout: str = "",
    threshold_type: Literal["iou", "overlap"] = "iou",
    thresholds: float | Sequence[float] | npt.NDArray[np.generic] = 0.0,
    total_num_attempts: int = -1,
    seed: int | None = None,
    name: str | None = None,
    device: Literal["cpu", "gpu", "mixed"] | None = None,
    preserve: bool = False,
    bytes_per_sample_hint: int | Sequence[int] | npt.NDArray[np.generic] = 0,
) -> tuple[DataNode, DataNode, DataNode, DataNode]:
    """Draw a window of the image that keeps enough of its boxes, as in the training of SSD. Inputs: boxes relative to
    the image, float32 (N, 4), or (N, 6) for volumes; optionally N labels, any type. Outputs: anchor and shape of the
    window for `slice`, float32, in the order x, y(, z); the boxes that are left, relative to the window; their labels,
    if there are any; with ``output_bbox_indices`` their numbers, int32.

    A draw takes one of ``thresholds`` (or, with ``allow_no_crop``, no crop) and proposes up to ``num_attempts``
    windows; then it takes another threshold. A window is taken if it has the aspect ratio, every box reaches the
    threshold, and a box is left. A box is left if its centre lies in the window, or with ``bbox_prune_threshold`` if
    this share of its area does. Without boxes the first window is taken. So no crop is drawn more often than one in
    ``len(thresholds) + 1``: it also ends searches that fail.

    Without ``total_num_attempts``, a row whose 10,000 windows all fail is an error; DALI searches for ever. With it,
    the window with the best metric is used. If ``aspect_ratio`` is one value, one random axis determines the others,
    within the image; DALI proposes windows up to 1.8 times as large as the image. Boxes outside [0, 1] are refused. The
    numbers that are drawn are Stoker's own.

    The operator runs on the CPU, as in DALI: images are decoded in the window, and shapes are computed from it.

    Args:
        all_boxes_above_threshold: Every box must reach the threshold, else one of them.
        allow_no_crop: The whole image is one of the outcomes; not with `crop_shape`.
        aspect_ratio: Range of width over height, relative to the image, or in pixels with `input_shape`. For
            volumes also three ranges: x/y, x/z, y/z.
        bbox_layout: Numbers of a box: xyXY or xyWH, by default by `ltrb`; for volumes xyzXYZ or xyzWHD.
        bbox_prune_threshold: Least share of a box's area within the window.
        crop_shape: Fixed size of the window in pixels.
        input_shape: Size of the image in pixels.
        ltrb: Boxes are left, top, right, bottom instead of x, y, width, height.
        num_attempts: Windows that are proposed for a threshold.
        output_bbox_indices: Also return the numbers of the boxes that are left.
        scaling: Range of the window's extents relative to the image's.
        shape_layout: Order of `crop_shape` and `input_shape`: WH (default), HW, WHD, ...
        threshold_type: Metric: iou, or overlap (share of the box).
        thresholds: Least metrics of window and boxes; one is drawn.
        total_num_attempts: Windows after which the best one is used.
        seed: Seed of this operator's draws; by default it follows from the pipeline's.
        name: Name of the node, shown in errors and by which outputs and readers are found.
        device: Where the operator runs.
        preserve: Run the operator also if its output is not used.
    """
    ...

def random_crop_generator(
    shape: Input,
    /,
    *,
    num_attempts: int = 10,
    random_area: float | Sequence[float] | npt.NDArray[np.generic] = (0.08, 1.0),
    random_aspect_ratio: float | Sequence[float] | npt.NDArray[np.generic] = (0.75, 1.3333333333333333),
    seed: int | None = None,
    name: str | None = None,
    device: Literal["cpu", "gpu", "mixed"] | None = None,
    preserve: bool = False,
    bytes_per_sample_hint: int | Sequence[int] | npt.NDArray[np.generic] = 0,
) -> tuple[DataNode, DataNode]:
    """Draw a window of random area and aspect ratio.

    Input: a shape, (height, width) or (height, width, channels). Outputs: the window's anchor (y, x) and shape (h, w),
    int64. The area's share is uniform, the ratio log-uniform. If ``num_attempts`` windows do not fit, the largest
    centred window of a permitted ratio is used.

    Source: torchvision's ``RandomResizedCrop.get_params``.

    Args:
        num_attempts: Attempts before the largest centred window of a permitted ratio is taken.
        random_area: Range of the window's share of the area, above 0 and up to 1.
        random_aspect_ratio: Range of width over height, above 0.
        seed: Seed of this operator's draws; by default it follows from the pipeline's.
        name: Name of the node, shown in errors and by which outputs and readers are found.
        device: Where the operator runs.
        preserve: Run the operator also if its output is not used.
    """
    ...

def random_resized_crop(
    x: Input,
    /,
    *,
    size: int | Sequence[int] | npt.NDArray[np.generic],
    interp_type: InterpType | DataNode = InterpType.INTERP_LINEAR,
    min_filter: InterpType | DataNode | None = None,
    mag_filter: InterpType | DataNode | None = None,
    antialias: bool = True,
    minibatch_size: int = 32,
    temp_buffer_hint: int = 0,
    random_area: float | Sequence[float] | npt.NDArray[np.generic] = (0.08, 1.0),
    random_aspect_ratio: float | Sequence[float] | npt.NDArray[np.generic] = (0.75, 1.3333333333333333),
    num_attempts: int = 10,
    dtype: DTypeLike | None = None,
    seed: int | None = None,
    name: str | None = None,
    device: Literal["cpu", "gpu", "mixed"] | None = None,
    preserve: bool = False,
    bytes_per_sample_hint: int | Sequence[int] | npt.NDArray[np.generic] = 0,
) -> DataNode:
    """Cut a random window and resize it. Input: HWC, CHW, HW or these with a leading F. Output: the same layout.

    The window is drawn as in torchvision's RandomResizedCrop (see ``random_crop_generator``). All frames of a video
    share it. The crop comes first, then the resize, as in torchvision: the filter does not read around the window
    (DALI's does). uint8 equals Pillow's ``crop`` and ``resize`` bit for bit.

    Args:
        interp_type: Filter for shrinking and enlarging, one of `types.INTERP_*`.
        min_filter: Filter for shrinking.
        mag_filter: Filter for enlarging.
        antialias: Widen the filter when shrinking, as Pillow does.
        size: Output (height, width) in pixels, or one number for both.
        random_area: Range of the window's share of the area, above 0 and up to 1.
        random_aspect_ratio: Range of width over height, above 0.
        num_attempts: Attempts before the largest centred window of a permitted ratio is taken.
        dtype: Element type of the output; by default the input's.
        seed: Seed of this operator's draws; by default it follows from the pipeline's.
        name: Name of the node, shown in errors and by which outputs and readers are found.
        device: Where the operator runs.
        preserve: Run the operator also if its output is not used.
    """
    ...

def random_speed(
    x: Input,
    /,
    *,
    factors: float | Sequence[float] | npt.NDArray[np.generic] = (0.9, 1.0, 1.1),
    quality: float = 50.0,
    seed: int | None = None,
    name: str | None = None,
    device: Literal["cpu", "gpu", "mixed"] | None = None,
    preserve: bool = False,
    bytes_per_sample_hint: int | Sequence[int] | npt.NDArray[np.generic] = 0,
) -> DataNode:
    """Play a signal faster or slower by a random factor, which changes tempo and pitch. Input: one channel, float32
    ``(n,)`` or ``(n, 1)``. Output: ``(ceil(n / factor),)`` at the same sampling rate.

    One of ``factors`` is drawn for each sample. The signal is resampled with exact positions and an anti-aliasing
    filter (`audio_resample`); the factor 1 returns the signal as it is. Source: Ko et al., "Audio Augmentation for
    Speech Recognition" (2015), and ``torchaudio.transforms.SpeedPerturbation``.

    Args:
        factors: Speeds to draw from, 0.1 to 10, with equal probability.
        quality: Quality of resampling, 0 to 100 (`audio_resample`).
        seed: Seed of this operator's draws; by default it follows from the pipeline's.
        name: Name of the node, shown in errors and by which outputs and readers are found.
        device: Where the operator runs.
        preserve: Run the operator also if its output is not used.
    """
    ...

def reinterpret(
    x: Input,
    /,
    *shape_input: Input,
    shape: int | Sequence[int | DataNode] | npt.NDArray[np.generic] | DataNode | None = None,
    rel_shape: float | Sequence[float | DataNode] | npt.NDArray[np.generic] | DataNode | None = None,
    src_dims: int | Sequence[int] | npt.NDArray[np.generic] | None = None,
    layout: str | None = None,
    dtype: DTypeLike | None = None,
    name: str | None = None,
    device: Literal["cpu", "gpu", "mixed"] | None = None,
    preserve: bool = False,
    bytes_per_sample_hint: int | Sequence[int] | npt.NDArray[np.generic] = 0,
) -> DataNode:
    """Take the bytes of a tensor as elements of another type, and change the shape. Inputs: data, and optionally the
    shape. Output: the same bytes.

    The last axis is divided into elements of ``dtype``; the other arguments are those of `reshape` after that. A single
    element keeps its size; other types are an error, which ends DALI's process.

    Args:
        shape: Extents; one may be -1.
        rel_shape: Extents as shares of the input's; one may be negative.
        src_dims: Axes of the input whose extents are taken; -1: a new axis of extent 1.
        layout: Names of the output's axes.
        dtype: Element type of the output.
        name: Name of the node, shown in errors and by which outputs and readers are found.
        device: Where the operator runs.
        preserve: Run the operator also if its output is not used.
    """
    ...

def reshape(
    x: Input,
    /,
    *shape_input: Input,
    shape: int | Sequence[int | DataNode] | npt.NDArray[np.generic] | DataNode | None = None,
    rel_shape: float | Sequence[float | DataNode] | npt.NDArray[np.generic] | DataNode | None = None,
    src_dims: int | Sequence[int] | npt.NDArray[np.generic] | None = None,
    layout: str | None = None,
    name: str | None = None,
    device: Literal["cpu", "gpu", "mixed"] | None = None,
    preserve: bool = False,
    bytes_per_sample_hint: int | Sequence[int] | npt.NDArray[np.generic] = 0,
) -> DataNode:
    """Change the shape. Inputs: data, and optionally the shape. Output: the same elements in the same order.

    One extent may be -1; it is computed from the others. Extents of ``rel_shape`` are shares of the input's extents (of
    those that ``src_dims`` names), rounded half away from zero. Without ``layout``, the axes keep their names if their
    number does not change.

    Args:
        shape: Extents; one may be -1.
        rel_shape: Extents as shares of the input's; one may be negative.
        src_dims: Axes of the input whose extents are taken; -1: a new axis of extent 1.
        layout: Names of the output's axes.
        name: Name of the node, shown in errors and by which outputs and readers are found.
        device: Where the operator runs.
        preserve: Run the operator also if its output is not used.
    """
    ...

@overload
def resize(
    x: Input,
    /,
    *,
    interp_type: InterpType | DataNode = InterpType.INTERP_LINEAR,
    min_filter: InterpType | DataNode | None = None,
    mag_filter: InterpType | DataNode | None = None,
    antialias: bool = True,
    minibatch_size: int = 32,
    temp_buffer_hint: int = 0,
    size: float | Sequence[float | DataNode] | npt.NDArray[np.generic] | DataNode | None = None,
    resize_x: float | DataNode | None = None,
    resize_y: float | DataNode | None = None,
    resize_shorter: float | DataNode | None = None,
    resize_longer: float | DataNode | None = None,
    resize_z: float | DataNode | None = None,
    max_size: float | Sequence[float] | npt.NDArray[np.generic] | None = None,
    mode: Literal["default", "stretch", "not_larger", "not_smaller"] = "default",
    subpixel_scale: bool = False,
    roi_start: float | Sequence[float | DataNode] | npt.NDArray[np.generic] | DataNode | None = None,
    roi_end: float | Sequence[float | DataNode] | npt.NDArray[np.generic] | DataNode | None = None,
    roi_relative: bool = False,
    dtype: DTypeLike | None = None,
    image_type: ImageType | None = None,
    save_attrs: Literal[False] = False,
    allow_empty: bool = False,
    name: str | None = None,
    device: Literal["cpu", "gpu", "mixed"] | None = None,
    preserve: bool = False,
    bytes_per_sample_hint: int | Sequence[int] | npt.NDArray[np.generic] = 0,
) -> DataNode:
    """Resize images and volumes. Input: HWC, CHW, HW or these with a leading F, or an axis D before H; any type.
    Output: the same layout and type.

    Exact: uint8 equals Pillow's ``Image.resize`` bit for bit, for every filter, with ``roi_*`` as its ``box=`` (the
    filter may read around the region); channels are independent. Values that become another type (``dtype``) are
    computed in float32 and rounded once. INTERP_LINEAR is Pillow's BILINEAR, INTERP_CUBIC its
    BICUBIC, INTERP_LANCZOS3 its LANCZOS.

    Args:
        interp_type: Filter for shrinking and enlarging, one of `types.INTERP_*`.
        min_filter: Filter for shrinking.
        mag_filter: Filter for enlarging.
        antialias: Widen the filter when shrinking, as Pillow does.
        size: Output (height, width) in pixels, of a volume (depth, height, width), or one number for all; 0:
            not given.
        resize_x: Output width in pixels; 0: not given.
        resize_y: Output height in pixels; 0: not given.
        resize_shorter: Output length of the shorter side in pixels; keeps the aspect ratio.
        resize_longer: Output length of the longer side in pixels; keeps the aspect ratio.
        resize_z: Output depth of a volume in pixels; 0: not given.
        max_size: Limit of the output size in pixels, one or one per axis.
        mode: default: a size that is not given keeps the aspect ratio; stretch: it keeps its extent;
            not_larger, not_smaller: keep the aspect ratio within or around the size.
        subpixel_scale: True adapts the region, about its centre, so that the scale is that of the unrounded
            size.
        roi_start: Region's (y, x) or (z, y, x) start in the input, in pixels.
        roi_end: Region's (y, x) or (z, y, x) end, in pixels; before the start: mirrored.
        roi_relative: Whether the region is in shares of the input's extents (0 to 1) instead of pixels.
        dtype: Element type of the output; by default the input's.
        save_attrs: Also output the input's shape, int32.
        allow_empty: Whether images without pixels are accepted: an axis without pixels stays so, and the
            output's shape depends on the data. No effect on volumes, and where the number of channels is known
            before the run (images of decoders, layout HW): an image without pixels is an error of its row
            there.
        name: Name of the node, shown in errors and by which outputs and readers are found.
        device: Where the operator runs.
        preserve: Run the operator also if its output is not used.
    """
    ...

@overload
def resize(
    x: Input,
    /,
    *,
    interp_type: InterpType | DataNode = InterpType.INTERP_LINEAR,
    min_filter: InterpType | DataNode | None = None,
    mag_filter: InterpType | DataNode | None = None,
    antialias: bool = True,
    minibatch_size: int = 32,
    temp_buffer_hint: int = 0,
    size: float | Sequence[float | DataNode] | npt.NDArray[np.generic] | DataNode | None = None,
    resize_x: float | DataNode | None = None,
    resize_y: float | DataNode | None = None,
    resize_shorter: float | DataNode | None = None,
    resize_longer: float | DataNode | None = None,
    resize_z: float | DataNode | None = None,
    max_size: float | Sequence[float] | npt.NDArray[np.generic] | None = None,
    mode: Literal["default", "stretch", "not_larger", "not_smaller"] = "default",
    subpixel_scale: bool = False,
    roi_start: float | Sequence[float | DataNode] | npt.NDArray[np.generic] | DataNode | None = None,
    roi_end: float | Sequence[float | DataNode] | npt.NDArray[np.generic] | DataNode | None = None,
    roi_relative: bool = False,
    dtype: DTypeLike | None = None,
    image_type: ImageType | None = None,
    save_attrs: Literal[True],
    allow_empty: bool = False,
    name: str | None = None,
    device: Literal["cpu", "gpu", "mixed"] | None = None,
    preserve: bool = False,
    bytes_per_sample_hint: int | Sequence[int] | npt.NDArray[np.generic] = 0,
) -> tuple[DataNode, DataNode]:
    """Resize images and volumes. Input: HWC, CHW, HW or these with a leading F, or an axis D before H; any type.
    Output: the same layout and type.

    Exact: uint8 equals Pillow's ``Image.resize`` bit for bit, for every filter, with ``roi_*`` as its ``box=`` (the
    filter may read around the region); channels are independent. Values that become another type (``dtype``) are
    computed in float32 and rounded once. INTERP_LINEAR is Pillow's BILINEAR, INTERP_CUBIC its
    BICUBIC, INTERP_LANCZOS3 its LANCZOS.

    Args:
        interp_type: Filter for shrinking and enlarging, one of `types.INTERP_*`.
        min_filter: Filter for shrinking.
        mag_filter: Filter for enlarging.
        antialias: Widen the filter when shrinking, as Pillow does.
        size: Output (height, width) in pixels, of a volume (depth, height, width), or one number for all; 0:
            not given.
        resize_x: Output width in pixels; 0: not given.
        resize_y: Output height in pixels; 0: not given.
        resize_shorter: Output length of the shorter side in pixels; keeps the aspect ratio.
        resize_longer: Output length of the longer side in pixels; keeps the aspect ratio.
        resize_z: Output depth of a volume in pixels; 0: not given.
        max_size: Limit of the output size in pixels, one or one per axis.
        mode: default: a size that is not given keeps the aspect ratio; stretch: it keeps its extent;
            not_larger, not_smaller: keep the aspect ratio within or around the size.
        subpixel_scale: True adapts the region, about its centre, so that the scale is that of the unrounded
            size.
        roi_start: Region's (y, x) or (z, y, x) start in the input, in pixels.
        roi_end: Region's (y, x) or (z, y, x) end, in pixels; before the start: mirrored.
        roi_relative: Whether the region is in shares of the input's extents (0 to 1) instead of pixels.
        dtype: Element type of the output; by default the input's.
        save_attrs: Also output the input's shape, int32.
        allow_empty: Whether images without pixels are accepted: an axis without pixels stays so, and the
            output's shape depends on the data. No effect on volumes, and where the number of channels is known
            before the run (images of decoders, layout HW): an image without pixels is an error of its row
            there.
        name: Name of the node, shown in errors and by which outputs and readers are found.
        device: Where the operator runs.
        preserve: Run the operator also if its output is not used.
    """
    ...

def resize_crop_mirror(
    x: Input,
    /,
    *,
    crop: float | Sequence[float | DataNode] | npt.NDArray[np.generic] | DataNode | None = None,
    crop_h: float | DataNode = 0.0,
    crop_w: float | DataNode = 0.0,
    crop_d: float | DataNode = 0.0,
    crop_pos_x: float | DataNode = 0.5,
    crop_pos_y: float | DataNode = 0.5,
    crop_pos_z: float | DataNode = 0.5,
    rounding: Literal["round", "truncate"] = "round",
    interp_type: InterpType | DataNode = InterpType.INTERP_LINEAR,
    min_filter: InterpType | DataNode | None = None,
    mag_filter: InterpType | DataNode | None = None,
    antialias: bool = True,
    minibatch_size: int = 32,
    temp_buffer_hint: int = 0,
    size: float | Sequence[float | DataNode] | npt.NDArray[np.generic] | DataNode | None = None,
    resize_x: float | DataNode | None = None,
    resize_y: float | DataNode | None = None,
    resize_shorter: float | DataNode | None = None,
    resize_longer: float | DataNode | None = None,
    resize_z: float | DataNode | None = None,
    max_size: float | Sequence[float] | npt.NDArray[np.generic] | None = None,
    mode: Literal["default", "stretch", "not_larger", "not_smaller"] = "default",
    subpixel_scale: bool = False,
    roi_start: float | Sequence[float | DataNode] | npt.NDArray[np.generic] | DataNode | None = None,
    roi_end: float | Sequence[float | DataNode] | npt.NDArray[np.generic] | DataNode | None = None,
    roi_relative: bool = False,
    mirror: int | DataNode = 0,
    dtype: DTypeLike | None = None,
    name: str | None = None,
    device: Literal["cpu", "gpu", "mixed"] | None = None,
    preserve: bool = False,
    bytes_per_sample_hint: int | Sequence[int] | npt.NDArray[np.generic] = 0,
) -> DataNode:
    """Resize, cut a window, mirror. Input: HWC, CHW, HW or these with a leading F. Output: the same layout and type.

    The result has the same bits as ``flip(crop(resize(x)))``.

    Args:
        crop: Window in pixels as (height, width), or (depth, height, width).
        crop_h: Height of the window in pixels; 0: the whole height.
        crop_w: Width of the window in pixels; 0: the whole width.
        crop_d: Depth of the window; 0: the whole depth.
        crop_pos_x: Horizontal place: 0 is the left edge, 1 the right one.
        crop_pos_y: Vertical place: 0 is the top, 1 the bottom.
        crop_pos_z: Place in depth: 0 is the front, 1 the back.
        rounding: Rounding of the window's start: to the nearest pixel (half away from zero), or towards zero.
        interp_type: Filter for shrinking and enlarging, one of `types.INTERP_*`.
        min_filter: Filter for shrinking.
        mag_filter: Filter for enlarging.
        antialias: Widen the filter when shrinking, as Pillow does.
        size: Output (height, width) in pixels, of a volume (depth, height, width), or one number for all; 0:
            not given.
        resize_x: Output width in pixels; 0: not given.
        resize_y: Output height in pixels; 0: not given.
        resize_shorter: Output length of the shorter side in pixels; keeps the aspect ratio.
        resize_longer: Output length of the longer side in pixels; keeps the aspect ratio.
        resize_z: Output depth of a volume in pixels; 0: not given.
        max_size: Limit of the output size in pixels, one or one per axis.
        mode: default: a size that is not given keeps the aspect ratio; stretch: it keeps its extent;
            not_larger, not_smaller: keep the aspect ratio within or around the size.
        subpixel_scale: True adapts the region, about its centre, so that the scale is that of the unrounded
            size.
        roi_start: Region's (y, x) or (z, y, x) start in the input, in pixels.
        roi_end: Region's (y, x) or (z, y, x) end, in pixels; before the start: mirrored.
        roi_relative: Whether the region is in shares of the input's extents (0 to 1) instead of pixels.
        mirror: Directions to mirror: the sum of 1 (left and right) and 2 (top and bottom).
        dtype: Element type of the output; by default the input's.
        name: Name of the node, shown in errors and by which outputs and readers are found.
        device: Where the operator runs.
        preserve: Run the operator also if its output is not used.
    """
    ...

@overload
def roi_align(
    x: Input,
    boxes: Input,
    /,
    *,
    output_size: int | Sequence[int] | npt.NDArray[np.generic],
    spatial_scale: float | DataNode = 1.0,
    sampling_ratio: int = 0,
    aligned: bool = False,
    mode: Literal["avg", "max"] = "avg",
    argmax: Literal[False] = False,
    name: str | None = None,
    device: Literal["cpu", "gpu", "mixed"] | None = None,
    preserve: bool = False,
    bytes_per_sample_hint: int | Sequence[int] | npt.NDArray[np.generic] = 0,
) -> DataNode:
    """Pool regions of an image or feature map into bins, with linear interpolation (RoIAlign).

    Inputs: an image (H, W, C), or (C, H, W) with that layout, and boxes ``x0, y0, x1, y1`` of shape (N, 4) of the
    image's type, float32 or float64. Output: (N, height, width, C), or (N, C, height, width). With ``argmax``, a second
    output has the number of the sample in its bin that is the maximum, int32.

    Each bin is the average (or maximum) of a grid of samples. Samples more than a pixel outside the image are zero. The
    results of "avg" have the bits of torchvision's CPU kernel for images of finite numbers.

    A GPU cannot report a region of a row without waiting for it: there, results are NaN where the CPU raises an error,
    for coordinates that are not finite, or more than 2**24 samples in a region. Its boxes may be kept ones (``nms`` and
    others) that ``fn.gather`` has taken. The output has a region for each, and their number is known when the batch is
    done.

    Args:
        output_size: Bins (height, width) of each region; one number for both.
        spatial_scale: Factor from the boxes' coordinates to pixels of the input: 1/16 for a map that is 16
            times smaller.
        sampling_ratio: Samples of a bin along each axis; 0 or less: the size of the bin in pixels, rounded up.
        aligned: Shift the samples by half a pixel, so that pixel centres are at .5.
        mode: Average or maximum of the samples of a bin.
        argmax: Return also the number of the sample that is the maximum. Only for "max".
        name: Name of the node, shown in errors and by which outputs and readers are found.
        device: Where the operator runs.
        preserve: Run the operator also if its output is not used.
    """
    ...

@overload
def roi_align(
    x: Input,
    boxes: Input,
    /,
    *,
    output_size: int | Sequence[int] | npt.NDArray[np.generic],
    spatial_scale: float | DataNode = 1.0,
    sampling_ratio: int = 0,
    aligned: bool = False,
    mode: Literal["avg", "max"] = "avg",
    argmax: Literal[True],
    name: str | None = None,
    device: Literal["cpu", "gpu", "mixed"] | None = None,
    preserve: bool = False,
    bytes_per_sample_hint: int | Sequence[int] | npt.NDArray[np.generic] = 0,
) -> tuple[DataNode, DataNode]:
    """Pool regions of an image or feature map into bins, with linear interpolation (RoIAlign).

    Inputs: an image (H, W, C), or (C, H, W) with that layout, and boxes ``x0, y0, x1, y1`` of shape (N, 4) of the
    image's type, float32 or float64. Output: (N, height, width, C), or (N, C, height, width). With ``argmax``, a second
    output has the number of the sample in its bin that is the maximum, int32.

    Each bin is the average (or maximum) of a grid of samples. Samples more than a pixel outside the image are zero. The
    results of "avg" have the bits of torchvision's CPU kernel for images of finite numbers.

    A GPU cannot report a region of a row without waiting for it: there, results are NaN where the CPU raises an error,
    for coordinates that are not finite, or more than 2**24 samples in a region. Its boxes may be kept ones (``nms`` and
    others) that ``fn.gather`` has taken. The output has a region for each, and their number is known when the batch is
    done.

    Args:
        output_size: Bins (height, width) of each region; one number for both.
        spatial_scale: Factor from the boxes' coordinates to pixels of the input: 1/16 for a map that is 16
            times smaller.
        sampling_ratio: Samples of a bin along each axis; 0 or less: the size of the bin in pixels, rounded up.
        aligned: Shift the samples by half a pixel, so that pixel centres are at .5.
        mode: Average or maximum of the samples of a bin.
        argmax: Return also the number of the sample that is the maximum. Only for "max".
        name: Name of the node, shown in errors and by which outputs and readers are found.
        device: Where the operator runs.
        preserve: Run the operator also if its output is not used.
    """
    ...

def roi_pool(
    x: Input,
    boxes: Input,
    /,
    *,
    output_size: int | Sequence[int] | npt.NDArray[np.generic],
    spatial_scale: float | DataNode = 1.0,
    name: str | None = None,
    device: Literal["cpu", "gpu", "mixed"] | None = None,
    preserve: bool = False,
    bytes_per_sample_hint: int | Sequence[int] | npt.NDArray[np.generic] = 0,
) -> DataNode:
    """Take the maximum of the pixels in each bin of regions of an image or feature map (RoI pooling).

    Inputs: an image (H, W, C), or (C, H, W) with that layout, and boxes ``x0, y0, x1, y1`` of shape (N, 4) of the
    image's type, float32 or float64. Output: (N, height, width, C), or (N, C, height, width).

    Corners are rounded to pixels, halves away from zero, and both corners belong to the region. Bins outside the image
    are 0. The results are those of torchvision's CPU kernel.

    A GPU cannot report a region of a row without waiting for it: there, results are NaN where the CPU raises an error,
    for coordinates that are not finite or beyond 2**30. Its boxes may be kept ones (``nms`` and others) that
    ``fn.gather`` has taken; the output has a region for each, whose number is known when the batch is done.

    Args:
        output_size: Bins (height, width) of each region; one number for both.
        spatial_scale: Factor from the boxes' coordinates to pixels of the input: 1/16 for a map that is 16
            times smaller.
        name: Name of the node, shown in errors and by which outputs and readers are found.
        device: Where the operator runs.
        preserve: Run the operator also if its output is not used.
    """
    ...

def roi_random_crop(
    *data: Input,
    crop_shape: int | Sequence[int | DataNode] | npt.NDArray[np.generic] | DataNode,
    roi_start: int | Sequence[int | DataNode] | npt.NDArray[np.generic] | DataNode,
    roi_end: int | Sequence[int | DataNode] | npt.NDArray[np.generic] | DataNode | None = None,
    roi_shape: int | Sequence[int | DataNode] | npt.NDArray[np.generic] | DataNode | None = None,
    in_shape: int | Sequence[int | DataNode] | npt.NDArray[np.generic] | DataNode | None = None,
    seed: int | None = None,
    name: str | None = None,
    device: Literal["cpu", "gpu", "mixed"] | None = None,
    preserve: bool = False,
    bytes_per_sample_hint: int | Sequence[int] | npt.NDArray[np.generic] = 0,
) -> DataNode:
    """Draw the start of a window of a fixed size that contains as much as possible of a region of interest: all of it,
    or only parts of it. Input: optionally the data that will be cropped. Output: the start along each axis, int64.

    Along each axis the start is uniform between ``roi_start`` and the region's end minus the window's extent, both
    included. If the extents of the data are known (the input, or ``in_shape``), only windows within the data are drawn;
    the region must lie within them, and the window must not be larger.

    Args:
        crop_shape: Extents of the window.
        roi_start: Start of the region.
        roi_end: End of the region.
        roi_shape: Extents of the region, instead of `roi_end`.
        in_shape: Extents of the data, instead of the input.
        seed: Seed of this operator's draws; by default it follows from the pipeline's.
        name: Name of the node, shown in errors and by which outputs and readers are found.
        device: Where the operator runs.
        preserve: Run the operator also if its output is not used.
    """
    ...

def rotate(
    x: Input,
    /,
    *,
    angle: float | DataNode,
    fill_value: float | None = None,
    interp_type: InterpType = InterpType.INTERP_LINEAR,
    size: float | Sequence[float | DataNode] | npt.NDArray[np.generic] | DataNode | None = None,
    dtype: DTypeLike | None = None,
    output_dtype: DTypeLike | None = None,
    axis: float | Sequence[float | DataNode] | npt.NDArray[np.generic] | DataNode | None = None,
    keep_size: bool = False,
    name: str | None = None,
    device: Literal["cpu", "gpu", "mixed"] | None = None,
    preserve: bool = False,
    bytes_per_sample_hint: int | Sequence[int] | npt.NDArray[np.generic] = 0,
) -> DataNode:
    """Rotate images, and volumes about an axis. Input: HWC, CHW, HW or these with a leading F, or an axis D before H.
    Output: the same layout.

    The canvas is DALI's: large enough for the whole image, with the image's parity, or determined by ``keep_size`` and
    ``size``. Multiples of 90 degrees are exact. uint8 on Pillow's canvas with a fill value equals Pillow's
    ``Image.rotate`` (NEAREST, BILINEAR) bit for bit. INTERP_CUBIC is that of `warp_affine`.

    Args:
        fill_value: Value outside of the image; by default that of the nearest edge pixel.
        interp_type: INTERP_NN, INTERP_LINEAR or, for images, INTERP_CUBIC.
        size: Size of the canvas in pixels, (height, width); of a volume (depth, height, width).
        dtype: Element type of the output; by default the input's.
        output_dtype: Former name of `dtype`.
        angle: Angle in degrees, counter-clockwise. Per frame for videos, too: the canvas is the largest
            frame's.
        axis: Axis (x, y, z) about which a volume is rotated, of any length. Per frame, too.
        keep_size: Keep the image's size.
        name: Name of the node, shown in errors and by which outputs and readers are found.
        device: Where the operator runs.
        preserve: Run the operator also if its output is not used.
    """
    ...

def saturation(
    x: Input,
    /,
    *,
    dtype: DTypeLike | None = None,
    image_type: ImageType = ImageType.RGB,
    saturation: float | DataNode = 1.0,
    name: str | None = None,
    device: Literal["cpu", "gpu", "mixed"] | None = None,
    preserve: bool = False,
    bytes_per_sample_hint: int | Sequence[int] | npt.NDArray[np.generic] = 0,
) -> DataNode:
    """Change the saturation, linearly in YIQ. Input: 3 channels, HWC, CHW, FHWC or FCHW, any type. Output: the same.

    Args:
        dtype: Element type of the output; by default the input's.
        image_type: Order of the channels: RGB or BGR.
        saturation: Factor of the saturation; 0: without colour, 1: unchanged.
        name: Name of the node, shown in errors and by which outputs and readers are found.
        device: Where the operator runs.
        preserve: Run the operator also if its output is not used.
    """
    ...

def sequence_rearrange(
    x: Input,
    /,
    *,
    new_order: int | Sequence[int | DataNode] | npt.NDArray[np.generic] | DataNode,
    name: str | None = None,
    device: Literal["cpu", "gpu", "mixed"] | None = None,
    preserve: bool = False,
    bytes_per_sample_hint: int | Sequence[int] | npt.NDArray[np.generic] = 0,
) -> DataNode:
    """Put the frames of a video, or the elements along the first axis, in another order. Input: any type; the first
    axis is F or has no name. Output: as many elements as ``new_order`` has numbers; elements may repeat or be left out.

    A constant order with equal steps moves no data. Unlike DALI, a tensor with one axis is accepted.

    Args:
        new_order: Numbers of the elements, from 0, in their new order.
        name: Name of the node, shown in errors and by which outputs and readers are found.
        device: Where the operator runs.
        preserve: Run the operator also if its output is not used.
    """
    ...

def shapes(
    x: Input,
    /,
    *,
    dtype: DTypeLike = DType.INT64,
    type: DTypeLike | None = None,
    name: str | None = None,
    device: Literal["cpu", "gpu", "mixed"] | None = None,
    preserve: bool = False,
    bytes_per_sample_hint: int | Sequence[int] | npt.NDArray[np.generic] = 0,
) -> DataNode:
    """Return the shape of a tensor, one small tensor per row; ``x.shape()`` is the same. Output: ``(rank,)``.

    Args:
        dtype: Element type of the output.
        type: Deprecated name of `dtype`.
        name: Name of the node, shown in errors and by which outputs and readers are found.
        device: Where the operator runs.
        preserve: Run the operator also if its output is not used.
    """
    ...

def sharpness(
    x: Input,
    /,
    *,
    factor: float | DataNode,
    name: str | None = None,
    device: Literal["cpu", "gpu", "mixed"] | None = None,
    preserve: bool = False,
    bytes_per_sample_hint: int | Sequence[int] | npt.NDArray[np.generic] = 0,
) -> DataNode:
    """Change the sharpness of images. Input: uint8, uint16 or float32, HW, HWC, CHW or these with a leading F. Output:
    the same.

    ``x + (1 - factor) * (smooth - x)``, where ``smooth`` averages a pixel, five times, and its eight neighbours. Pixels
    of the edges stay as they are. For integers ``smooth`` is rounded, and the result's fraction is cut off. These are
    torchvision's ``adjust_sharpness``; its sums have another order, so that integers may differ by 1.

    Args:
        factor: 0: smooth, 1: unchanged, 2: sharp; at least 0.
        name: Name of the node, shown in errors and by which outputs and readers are found.
        device: Where the operator runs.
        preserve: Run the operator also if its output is not used.
    """
    ...

def slice(
    x: Input,
    /,
    *limits: Input,
    dtype: DTypeLike | None = None,
    output_dtype: DTypeLike | None = None,
    image_type: ImageType | None = None,
    out_of_bounds_policy: Literal["error", "pad", "trim_to_shape"] = "error",
    fill_values: float | Sequence[float] | npt.NDArray[np.generic] = 0.0,
    axes: int | Sequence[int | DataNode] | npt.NDArray[np.generic] | DataNode = (1, 0),
    axis_names: str | None = None,
    start: int | Sequence[int | DataNode] | npt.NDArray[np.generic] | DataNode | None = None,
    end: int | Sequence[int | DataNode] | npt.NDArray[np.generic] | DataNode | None = None,
    shape: int | Sequence[int | DataNode] | npt.NDArray[np.generic] | DataNode | None = None,
    rel_start: float | Sequence[float | DataNode] | npt.NDArray[np.generic] | DataNode | None = None,
    rel_end: float | Sequence[float | DataNode] | npt.NDArray[np.generic] | DataNode | None = None,
    rel_shape: float | Sequence[float | DataNode] | npt.NDArray[np.generic] | DataNode | None = None,
    normalized_anchor: bool = True,
    normalized_shape: bool = True,
    name: str | None = None,
    device: Literal["cpu", "gpu", "mixed"] | None = None,
    preserve: bool = False,
    bytes_per_sample_hint: int | Sequence[int] | npt.NDArray[np.generic] = 0,
) -> DataNode:
    """Cut a window along some axes. Inputs: data, and optionally anchor and shape. Output: the window, same type.

    ``start``, ``end``, ``shape`` are in elements, ``rel_*`` in shares of the extent. A positional anchor and shape are
    in elements if both are of integer types, as in DALI. Otherwise they are relative unless ``normalized_anchor`` /
    ``normalized_shape`` are False. Limits round half away from zero, as in DALI.

    Args:
        dtype: Element type of the output; by default the input's.
        output_dtype: Former name of `dtype`.
        out_of_bounds_policy: error: such a window is an error; pad: what lies outside is `fill_values`;
            trim_to_shape: it is cut off.
        fill_values: For "pad": one value, or one per channel.
        axes: The axes that the limits are for; negative ones count from the end. Empty: all.
        axis_names: The axes by name, for example "HW"; "WH" if the data have these axes and `axes` is not
            given.
        start: First element per axis.
        end: Element after the last per axis.
        shape: Number of elements per axis.
        rel_start: First element as a share of the extent.
        rel_end: End as a share of the extent.
        rel_shape: Number of elements as a share of the extent.
        normalized_anchor: Whether a positional anchor of floats is relative.
        normalized_shape: Whether a positional shape of floats is relative.
        name: Name of the node, shown in errors and by which outputs and readers are found.
        device: Where the operator runs.
        preserve: Run the operator also if its output is not used.
    """
    ...

def soft_nms(
    boxes: Input,
    scores: Input,
    /,
    *,
    method: Literal["linear", "gaussian"] = "gaussian",
    iou_threshold: float | DataNode = 0.5,
    sigma: float | DataNode = 0.5,
    min_score: float | DataNode = 0.001,
    labels: int | Sequence[int | DataNode] | npt.NDArray[np.generic] | DataNode | None = None,
    max_outputs: int = 0,
    name: str | None = None,
    device: Literal["cpu", "gpu", "mixed"] | None = None,
    preserve: bool = False,
    bytes_per_sample_hint: int | Sequence[int] | npt.NDArray[np.generic] = 0,
) -> tuple[DataNode, DataNode]:
    """Lower the scores of boxes that better boxes overlap, and drop those whose score becomes too low (Soft-NMS).

    Inputs: boxes ``x0, y0, x1, y1`` of shape (N, 4), and scores (N,), both float32 or both float64. Outputs: the
    numbers of the boxes in the order in which they are selected, int64, and their scores then, in the type of the
    boxes. Rows have different lengths.

    The box with the highest remaining score is selected, of equal ones the first. Then the score of each other box is
    multiplied by ``1 - IoU`` if the overlap IoU is above ``iou_threshold`` ("linear"), or by ``exp(-IoU**2 / sigma)``
    ("gaussian"). Boxes below ``min_score`` are dropped, also those that never had more, and those with NaN.

    On a GPU the length of a row is known when the batch is done. There, ``fn.gather`` and operators on single elements
    may follow, and with gathered boxes ``fn.roi_align``, ``fn.roi_pool`` and ``fn.box_iou``. Others are refused.

    Args:
        method: Decay of the scores: linear or gaussian.
        iou_threshold: Overlap above which "linear" lowers the score.
        sigma: Width of "gaussian"; above 0.
        min_score: Score below which a box is dropped.
        labels: Label of each box, whole numbers of shape (N,), as a node or an array. Boxes of different labels
            do not suppress each other.
        max_outputs: Greatest number of boxes to keep, the best ones; 0: no limit.
        name: Name of the node, shown in errors and by which outputs and readers are found.
        device: Where the operator runs.
        preserve: Run the operator also if its output is not used.
    """
    ...

def solarize(
    x: Input,
    /,
    *,
    threshold: float | DataNode | None = None,
    name: str | None = None,
    device: Literal["cpu", "gpu", "mixed"] | None = None,
    preserve: bool = False,
    bytes_per_sample_hint: int | Sequence[int] | npt.NDArray[np.generic] = 0,
) -> DataNode:
    """Invert all elements from a threshold on. Input: uint8, uint16 or floats of any shape. Output: the same.

    An element ``x >= threshold`` becomes ``full - x``, where ``full`` is the type's largest number, 1 for floats. Equal
    to torchvision's ``solarize``, bit for bit, and for bytes to Pillow's ``ImageOps.solarize``.

    Args:
        threshold: Smallest number that is inverted; by default half: 128 for uint8, 0.5 for floats.
        name: Name of the node, shown in errors and by which outputs and readers are found.
        device: Where the operator runs.
        preserve: Run the operator also if its output is not used.
    """
    ...

def spec_augment(
    x: Input,
    /,
    *,
    freq_masks: int = 2,
    time_masks: int = 2,
    freq_width: int = 27,
    time_width: int = 100,
    time_share: float = 1.0,
    fill_value: float | DataNode = 0.0,
    seed: int | None = None,
    name: str | None = None,
    device: Literal["cpu", "gpu", "mixed"] | None = None,
    preserve: bool = False,
    bytes_per_sample_hint: int | Sequence[int] | npt.NDArray[np.generic] = 0,
) -> DataNode:
    """Fill random bands of frequencies and random spans of time in a spectrogram. Input: any type, with axes f and t in
    any order (a matrix without axis names is ft). Output: the same.

    A mask over frequencies has a width drawn evenly from 0 to ``freq_width`` bins, and any place within the spectrogram
    with the same probability. Masks over time do the same with frames. Masks may overlap. The draws belong to the
    sample: batch size, threads and the device do not change them.

    Source: Park et al., "SpecAugment: A Simple Data Augmentation Method for Automatic Speech Recognition" (2019),
    without time warping. The paper's policies are LB ``freq_masks=1, time_masks=1``, and LD ``freq_masks=2,
    time_masks=2``, both with ``freq_width=27, time_width=100``.

    Args:
        freq_masks: Number of masks over frequencies, at most 64.
        time_masks: Number of masks over time, at most 64.
        freq_width: Largest width of a mask over frequencies in bins (F in the paper).
        time_width: Largest width of a mask over time in frames (T in the paper).
        time_share: Largest width of a mask over time as a share of the frames, from 0 to 1 (p in the paper).
        fill_value: Value within the masks; 0 is the mean of normalized features.
        seed: Seed of this operator's draws; by default it follows from the pipeline's.
        name: Name of the node, shown in errors and by which outputs and readers are found.
        device: Where the operator runs.
        preserve: Run the operator also if its output is not used.
    """
    ...

def spectrogram(
    x: Input,
    /,
    *,
    nfft: int | None = None,
    window_length: int = 512,
    window_step: int = 256,
    window_fn: float | Sequence[float] | npt.NDArray[np.generic] | None = None,
    power: int = 2,
    center_windows: bool = True,
    reflect_padding: bool = True,
    layout: Literal["ft", "tf"] = "ft",
    name: str | None = None,
    device: Literal["cpu", "gpu", "mixed"] | None = None,
    preserve: bool = False,
    bytes_per_sample_hint: int | Sequence[int] | npt.NDArray[np.generic] = 0,
) -> DataNode:
    """Compute the power of the spectrum of overlapping frames (a short-time Fourier transform). Input: a signal of one
    channel, float32 ``(n,)`` or ``(n, 1)``. Output: float32 ``(nfft // 2 + 1, frames)``, layout ft, or tf.

    With ``center_windows`` frame t has its centre at sample ``t * window_step``, and there are ``n // window_step + 1``
    frames. Otherwise frame t begins there, and only frames within the signal count; a signal that is less than one step
    too short for a window is filled up with zeros. Any ``nfft`` works; products of 2, 3 and 5 are fast. The largest
    error is about 4e-7 of a frame's largest value. Bits depend neither on the machine nor on the other frames.

    Source: DALI's operator. Its Hann window is ``0.5 (1 - cos(2 pi (n + 1/2) / N))``, half a sample from the periodic
    window of librosa and torchaudio, which can be given as ``window_fn``.

    Args:
        nfft: Points of the transform; by default `window_length`. Larger: zeros around the frame.
        window_length: Samples of a frame.
        window_step: Samples from one frame to the next.
        window_fn: Factors of the samples of a frame; by default a Hann window.
        power: Exponent of the magnitude: 2 for the power, 1 for the magnitude.
        center_windows: Extend the signal, so that frames have their centres at multiples of the step.
        reflect_padding: Extend by mirroring the signal (dcb|abcd|cba), else by zeros.
        layout: Axes of the output: "ft" or "tf".
        name: Name of the node, shown in errors and by which outputs and readers are found.
        device: Where the operator runs.
        preserve: Run the operator also if its output is not used.
    """
    ...

def sphere(
    x: Input,
    /,
    *,
    interp_type: InterpType = InterpType.INTERP_NN,
    fill_value: float = 0.0,
    mask: int | DataNode = 1,
    name: str | None = None,
    device: Literal["cpu", "gpu", "mixed"] | None = None,
    preserve: bool = False,
    bytes_per_sample_hint: int | Sequence[int] | npt.NDArray[np.generic] = 0,
) -> DataNode:
    """Show an image as on a sphere. Input: images of up to 32 bits an element, HW, HWC, CHW or these with a leading F.
    Output: the same.

    With t the vector from the image's middle to the pixel's centre, in pixels, and d half of the longer side without
    its fraction, a pixel shows the source at ``middle + t * |t| / d``, in float32. Nearest neighbours have DALI's bits.

    Args:
        interp_type: INTERP_NN, INTERP_LINEAR or INTERP_CUBIC.
        fill_value: Value outside of the image.
        mask: 0: the image stays as it is.
        name: Name of the node, shown in errors and by which outputs and readers are found.
        device: Where the operator runs.
        preserve: Run the operator also if its output is not used.
    """
    ...

def squeeze(
    x: Input,
    /,
    *,
    axes: int | Sequence[int] | npt.NDArray[np.generic] | None = None,
    axis_names: str | None = None,
    name: str | None = None,
    device: Literal["cpu", "gpu", "mixed"] | None = None,
    preserve: bool = False,
    bytes_per_sample_hint: int | Sequence[int] | npt.NDArray[np.generic] = 0,
) -> DataNode:
    """Remove axes of extent 1. Input: any shape and type. Output: the same data without these axes. Moves no data.

    Args:
        axes: Axes to remove; negative ones count from the end.
        axis_names: Axes to remove, by name.
        name: Name of the node, shown in errors and by which outputs and readers are found.
        device: Where the operator runs.
        preserve: Run the operator also if its output is not used.
    """
    ...

def stack(
    *inputs: Input,
    axis: int = 0,
    axis_name: str | None = None,
    name: str | None = None,
    device: Literal["cpu", "gpu", "mixed"] | None = None,
    preserve: bool = False,
    bytes_per_sample_hint: int | Sequence[int] | npt.NDArray[np.generic] = 0,
) -> DataNode:
    """Join tensors of one shape along a new axis. Output: the inputs' type, or the type that holds all of them.

    Any number of scalars, or up to eight tensors, are joined natively; more tensors in Python.

    Args:
        axis: The new axis.
        axis_name: Name of the new axis; without it the output's axes have no names.
        name: Name of the node, shown in errors and by which outputs and readers are found.
        device: Where the operator runs.
        preserve: Run the operator also if its output is not used.
    """
    ...

def stft(
    x: Input,
    /,
    *,
    nfft: int | None = None,
    window_length: int = 512,
    window_step: int = 256,
    window_fn: float | Sequence[float] | npt.NDArray[np.generic] | None = None,
    center_windows: bool = True,
    reflect_padding: bool = True,
    name: str | None = None,
    device: Literal["cpu", "gpu", "mixed"] | None = None,
    preserve: bool = False,
    bytes_per_sample_hint: int | Sequence[int] | npt.NDArray[np.generic] = 0,
) -> DataNode:
    """Compute the complex spectra of overlapping frames (short-time Fourier transform). Input: one channel, float32
    ``(n,)`` or ``(n, 1)``. Output: float32 ``(nfft // 2 + 1, frames, 2)``, layout ftC: real and imaginary parts.

    With ``center_windows`` frame t has its centre at sample ``t * window_step``, and there are ``n // window_step + 1``
    frames (for an even ``nfft``). Otherwise frame t begins there, and only frames within the signal count. Values are
    those of ``torch.stft`` and ``librosa.stft``, whose complex results are ``torch.view_as_complex(output)`` and
    ``output.view(numpy.complex64)[..., 0]``. The largest error is about 4e-7 of a frame's largest value.

    Args:
        nfft: Points of the transform; by default `window_length`. Larger: zeros around the frame.
        window_length: Samples of a frame.
        window_step: Samples from one frame to the next.
        window_fn: Factors of a frame's samples; by default a periodic Hann window.
        center_windows: Extend the signal, so that frames have their centres at multiples of the step.
        reflect_padding: Extend by mirroring the signal (dcb|abcd|cba), else by zeros.
        name: Name of the node, shown in errors and by which outputs and readers are found.
        device: Where the operator runs.
        preserve: Run the operator also if its output is not used.
    """
    ...

def tensor_resize(
    x: Input,
    /,
    *,
    interp_type: InterpType | DataNode = InterpType.INTERP_LINEAR,
    min_filter: InterpType | DataNode | None = None,
    mag_filter: InterpType | DataNode | None = None,
    antialias: bool = True,
    minibatch_size: int = 32,
    temp_buffer_hint: int = 0,
    sizes: float | Sequence[float | DataNode] | npt.NDArray[np.generic] | DataNode | None = None,
    scales: float | Sequence[float | DataNode] | npt.NDArray[np.generic] | DataNode | None = None,
    axes: int | Sequence[int] | npt.NDArray[np.generic] | None = None,
    axis_names: str = "",
    alignment: float | Sequence[float | DataNode] | npt.NDArray[np.generic] | DataNode = 0.5,
    size_rounding: Literal["round", "truncate", "ceil"] = "round",
    mode: Literal["default", "stretch", "not_larger", "not_smaller"] = "default",
    max_size: float | Sequence[float] | npt.NDArray[np.generic] | None = None,
    subpixel_scale: bool = True,
    roi_start: float | Sequence[float | DataNode] | npt.NDArray[np.generic] | DataNode | None = None,
    roi_end: float | Sequence[float | DataNode] | npt.NDArray[np.generic] | DataNode | None = None,
    roi_relative: bool = False,
    dtype: DTypeLike | None = None,
    name: str | None = None,
    device: Literal["cpu", "gpu", "mixed"] | None = None,
    preserve: bool = False,
    bytes_per_sample_hint: int | Sequence[int] | npt.NDArray[np.generic] = 0,
) -> DataNode:
    """Resize a tensor along one to three axes, of any layout. Input: any type. Output: the same axes and type, or
    ``dtype``.

    Two axes at most are resampled together, with the bits of `resize`; of three axes the last one is resampled after
    the others, in float32, with one rounding at the end. A size of 0 keeps the extent, or with ``mode`` "default" the
    average scale of the given ones; a negative size or scale mirrors the axis.

    Args:
        interp_type: Filter for shrinking and enlarging, one of `types.INTERP_*`.
        min_filter: Filter for shrinking.
        mag_filter: Filter for enlarging.
        antialias: Widen the filter when shrinking, as Pillow does.
        sizes: Output extents of the axes.
        scales: Output extents as multiples of the input's.
        axes: Axes to resize; negative ones count from the end. By default all.
        axis_names: Letters of the axes in the layout, instead of `axes`.
        alignment: Place of the region that keeps its position if the extent is rounded: 0 start, 1 end.
        size_rounding: Rounding of extents: round, truncate or ceil.
        mode: Meaning of several sizes, as for `resize`.
        max_size: Limit of the output extents, one or one for each axis.
        subpixel_scale: The region follows the rounding of the extent, so that the scale is exact.
        roi_start: Start of the region, along each axis.
        roi_end: End of the region; before the start: mirrored.
        roi_relative: The region is relative to the extents.
        dtype: Element type of the output; by default the input's.
        name: Name of the node, shown in errors and by which outputs and readers are found.
        device: Where the operator runs.
        preserve: Run the operator also if its output is not used.
    """
    ...

def time_stretch(
    x: Input,
    /,
    *,
    rate: float | DataNode,
    nfft: int | None = None,
    window_length: int = 2048,
    window_step: int = 512,
    window_fn: float | Sequence[float] | npt.NDArray[np.generic] | None = None,
    name: str | None = None,
    device: Literal["cpu", "gpu", "mixed"] | None = None,
    preserve: bool = False,
    bytes_per_sample_hint: int | Sequence[int] | npt.NDArray[np.generic] = 0,
) -> DataNode:
    """Change the tempo of a signal and keep its pitch (phase vocoder). Input: one channel, float32 ``(n,)`` or
    ``(n, 1)``. Output: ``(round(n / rate),)``.

    The spectra of frames (`stft`) are read at ``rate`` times their distance, with interpolated magnitudes, and with
    phases that advance as in the signal; `istft` joins them. Source: ``librosa.effects.time_stretch``, with its values:
    ``window_length=2048, window_step=512``, the defaults. For speech, frames of 512 samples at 16 kHz smear less.

    Args:
        nfft: Points of the transform; by default `window_length`. Larger: zeros around the frame.
        window_length: Samples of a frame.
        window_step: Samples from one frame to the next.
        window_fn: Factors of a frame's samples; by default a periodic Hann window.
        rate: Tempo, 0.01 to 100: 2 is twice as fast.
        name: Name of the node, shown in errors and by which outputs and readers are found.
        device: Where the operator runs.
        preserve: Run the operator also if its output is not used.
    """
    ...

def to_decibels(
    x: Input,
    /,
    *,
    multiplier: float = 10.0,
    reference: float = 0.0,
    cutoff_db: float = -200.0,
    name: str | None = None,
    device: Literal["cpu", "gpu", "mixed"] | None = None,
    preserve: bool = False,
    bytes_per_sample_hint: int | Sequence[int] | npt.NDArray[np.generic] = 0,
) -> DataNode:
    """Convert powers or magnitudes to decibels: ``multiplier log10(max(x / reference, 10^(cutoff_db / multiplier)))``.
    Input: float32, any shape. Output: the same.

    The logarithm is computed in float32, with an error below 1 ulp. A NaN stays one. With the default reference, a row
    that contains a NaN becomes NaN, and a row of zeros becomes ``cutoff_db``.

    Args:
        multiplier: Factor of the logarithm: 10 for powers, 20 for magnitudes.
        reference: Value of 0 dB; 0: the largest value of the row.
        cutoff_db: Smallest result in dB.
        name: Name of the node, shown in errors and by which outputs and readers are found.
        device: Where the operator runs.
        preserve: Run the operator also if its output is not used.
    """
    ...

def transpose(
    x: Input,
    /,
    *,
    perm: int | Sequence[int] | npt.NDArray[np.generic] | None = None,
    transpose_layout: bool = True,
    output_layout: str | None = None,
    name: str | None = None,
    device: Literal["cpu", "gpu", "mixed"] | None = None,
    preserve: bool = False,
    bytes_per_sample_hint: int | Sequence[int] | npt.NDArray[np.generic] = 0,
) -> DataNode:
    """Reorder the axes. Input: any shape and type. Output: axis i is the input's axis ``perm[i]``.

    Moves no data: the next operator reads (or stores) in the other order.

    Args:
        perm: Order of the input's axes; by default reversed.
        transpose_layout: Whether the axes' names move along; otherwise they stay in place.
        output_layout: Names of the output's axes; wins over `transpose_layout`.
        name: Name of the node, shown in errors and by which outputs and readers are found.
        device: Where the operator runs.
        preserve: Run the operator also if its output is not used.
    """
    ...

def trim_silence(
    x: Input,
    /,
    *,
    cutoff_db: float = -60.0,
    window_length: int = 2048,
    reference_power: float = 0.0,
    margin: int = 0,
    name: str | None = None,
    device: Literal["cpu", "gpu", "mixed"] | None = None,
    preserve: bool = False,
    bytes_per_sample_hint: int | Sequence[int] | npt.NDArray[np.generic] = 0,
) -> DataNode:
    """Cut the silence off both ends of a signal. Input: one channel, ``(n,)`` or ``(n, 1)``, any number type. Output:
    the region of `nonsilent_region`, extended by ``margin`` samples on both sides, ``(m,)``.

    A sample is loud if the mean square of the last ``window_length`` samples reaches ``cutoff_db`` below the loudest
    ones. A signal of NaNs becomes empty. Silence within the region stays.

    On a GPU the number of samples is known when the batch is done, so that only operators on single elements may
    follow. Trim on the CPU, with ``device="cpu"``, before others.

    Args:
        cutoff_db: Threshold in dB relative to the loudest window, or to `reference_power`.
        window_length: Samples of the moving mean, at most those of the signal.
        reference_power: Power of 0 dB; 0: the largest moving mean of the signal.
        margin: Samples to keep before and after the region.
        name: Name of the node, shown in errors and by which outputs and readers are found.
        device: Where the operator runs.
        preserve: Run the operator also if its output is not used.
    """
    ...

def warp_affine(
    x: Input,
    matrix_input: Input = ...,
    /,
    *,
    fill_value: float | None = None,
    interp_type: InterpType = InterpType.INTERP_LINEAR,
    size: float | Sequence[float | DataNode] | npt.NDArray[np.generic] | DataNode | None = None,
    dtype: DTypeLike | None = None,
    output_dtype: DTypeLike | None = None,
    matrix: float | Sequence[float | DataNode] | npt.NDArray[np.generic] | DataNode | None = None,
    inverse_map: bool = True,
    name: str | None = None,
    device: Literal["cpu", "gpu", "mixed"] | None = None,
    preserve: bool = False,
    bytes_per_sample_hint: int | Sequence[int] | npt.NDArray[np.generic] = 0,
) -> DataNode:
    """Warp images and volumes by an affine matrix. Inputs: HWC, CHW, HW or these with a leading F, or an axis D before
    H; a matrix unless ``matrix`` is given.

    The matrix's six numbers, rows first, map a point (x, y) of the output to one of the input, corners of pixels at the
    integers: ``(m0 x + m1 y + m2, m3 x + m4 y + m5)``. Volumes take twelve numbers, for (x, y, z).
    Without ``inverse_map`` the direction is reversed. uint8 with a
    fill value equals Pillow's ``Image.transform(size, AFFINE, ...)`` (NEAREST, BILINEAR) bit for bit. Interpolated
    values are truncated; DALI rounds them. Volumes are rounded, and mixed with the fill value at their faces, as in
    DALI. INTERP_CUBIC is a cubic convolution of coefficient -3/4 at float32 coordinates, as in OpenCV, mixed with the
    fill value at the edges and rounded; DALI has none.

    Args:
        fill_value: Value outside of the image; by default that of the nearest edge pixel.
        interp_type: INTERP_NN, INTERP_LINEAR or, for images, INTERP_CUBIC.
        size: Size of the canvas in pixels, (height, width); of a volume (depth, height, width).
        dtype: Element type of the output; by default the input's.
        output_dtype: Former name of `dtype`.
        matrix: Six numbers, of a volume twelve; per frame for videos, too.
        inverse_map: The matrix takes the output to the input; False: the input to the output.
        name: Name of the node, shown in errors and by which outputs and readers are found.
        device: Where the operator runs.
        preserve: Run the operator also if its output is not used.
    """
    ...

def water(
    x: Input,
    /,
    *,
    interp_type: InterpType = InterpType.INTERP_NN,
    fill_value: float = 0.0,
    mask: int | DataNode = 1,
    ampl_x: float | DataNode = 10.0,
    ampl_y: float | DataNode = 10.0,
    freq_x: float | DataNode = 0.04908738521234052,
    freq_y: float | DataNode = 0.04908738521234052,
    phase_x: float | DataNode = 0.0,
    phase_y: float | DataNode = 0.0,
    name: str | None = None,
    device: Literal["cpu", "gpu", "mixed"] | None = None,
    preserve: bool = False,
    bytes_per_sample_hint: int | Sequence[int] | npt.NDArray[np.generic] = 0,
) -> DataNode:
    """Show an image as under water. Input: images of up to 32 bits an element, HW, HWC, CHW or these with a leading F.
    Output: the same.

    Pixel (x, y) shows the source at ``x + ampl_x sin(freq_x y + phase_x)``, ``y + ampl_y cos(freq_y x + phase_y)``, in
    float32. The bits are DALI's, which ignores a ``mask`` that is a constant.

    Args:
        interp_type: INTERP_NN, INTERP_LINEAR or INTERP_CUBIC.
        fill_value: Value outside of the image.
        mask: 0: the image stays as it is.
        ampl_x: Height of the waves along x, in pixels.
        ampl_y: Height of the waves along y, in pixels.
        freq_x: Radians per pixel of the waves along x.
        freq_y: Radians per pixel of the waves along y.
        phase_x: Phase of the waves along x, in radians.
        phase_y: Phase of the waves along y, in radians.
        name: Name of the node, shown in errors and by which outputs and readers are found.
        device: Where the operator runs.
        preserve: Run the operator also if its output is not used.
    """
    ...

def zeros(
    *,
    shape: int | Sequence[int | DataNode] | npt.NDArray[np.generic] | DataNode | None = None,
    dtype: DTypeLike = DType.INT32,
    layout: str | None = None,
    name: str | None = None,
    device: Literal["cpu", "gpu", "mixed"] | None = None,
    preserve: bool = False,
    bytes_per_sample_hint: int | Sequence[int] | npt.NDArray[np.generic] = 0,
) -> DataNode:
    """Create a tensor of zeros. Output: ``shape``; a scalar if it is not given.

    Args:
        shape: Shape of the output; a scalar if not given.
        dtype: Element type of the output.
        layout: Names of the output's axes.
        name: Name of the node, shown in errors and by which outputs and readers are found.
        device: Where the operator runs.
        preserve: Run the operator also if its output is not used.
    """
    ...

def zeros_like(
    like: Input,
    /,
    *,
    dtype: DTypeLike | None = None,
    name: str | None = None,
    device: Literal["cpu", "gpu", "mixed"] | None = None,
    preserve: bool = False,
    bytes_per_sample_hint: int | Sequence[int] | npt.NDArray[np.generic] = 0,
) -> DataNode:
    """Create a tensor of zeros with the input's shape and layout.

    Output: the input's type unless ``dtype`` is given.

    Args:
        dtype: Element type of the output; by default the input's.
        name: Name of the node, shown in errors and by which outputs and readers are found.
        device: Where the operator runs.
        preserve: Run the operator also if its output is not used.
    """
    ...

class decoders:
    @staticmethod
    def audio(
        data: Input,
        /,
        *,
        sample_rate: float | DataNode = 0.0,
        quality: float = 50.0,
        filter: Literal["exact", "dali"] = "exact",
        downmix: bool = False,
        dtype: DTypeLike = DType.FLOAT,
        offset: float | DataNode = 0.0,
        duration: float | DataNode = 0.0,
        preroll: float | None = None,
        max_samples: int = 1073741824,
        on_error: Literal["raise", "replace", "skip"] | None = None,
        name: str | None = None,
        device: Literal["cpu", "gpu", "mixed"] | None = None,
        preserve: bool = False,
        bytes_per_sample_hint: int | Sequence[int] | npt.NDArray[np.generic] = 0,
    ) -> tuple[DataNode, DataNode]:
        """Decode an audio file. Input: its bytes, uint8 ``(n,)``. Outputs: the samples, ``(frames, channels)``, or
        ``(frames,)`` with ``downmix``; and the sampling rate in Hz, float32 without axes.

        WAV files (8, 16, 24 and 32 bits, floats of 32 and 64 bits, extensible, RF64) are decoded natively, all others
        (FLAC, Ogg Vorbis, Opus, MP3, AIFF, compressed WAV) by libsndfile, from the package `soundfile`; FLAC by dr_flac,
        to the same bits, if the package `miniaudio` is installed; Opus natively by libopus, twice as fast and within 5e-7,
        if PyAV or the system has that library. AAC (M4A, MP4, ADTS), ALAC, and the audio of Matroska,
        WebM, WMA and WavPack files are decoded by FFmpeg, from the package `av`; samples that the container excludes, such
        as the encoder's priming and padding in M4A files, are removed. Integers are scaled by powers of two, so that full
        scale is 1. A float becomes an integer as ``round(32767 x)``, saturated (int32: 2147483647); DALI gives 0
        for most. Files that are cut off, Ogg files without the page that ends them, and MP3 files with other bytes between
        their frames, impossible side information or another number of frames than they state, are errors of their row; DALI
        returns what is left.

        The samples of a part of an Opus file depend on all packets before it, which are therefore decoded too. A `preroll`
        limits them: after 1 second of it, all measured parts had the samples of the whole; after the 0.08 seconds of
        RFC 7845, 4.6, some began with errors of half of the largest sample.

        Args:
            sample_rate: Resample to this rate in Hz, which is the second output too; 0: keep it.
            quality: Quality of resampling, 0 to 100 (`audio_resample`).
            filter: Filter of resampling (`audio_resample`).
            downmix: Return the mean over the channels, without their axis.
            dtype: Element type: FLOAT, INT16 or INT32.
            offset: First second to decode. WAV files decode nothing else.
            duration: Seconds to decode, at most to the end of the file; 0: all of them.
            preroll: Seconds to decode before `offset` in Opus files; by default all that is before it, for exact
                samples. No effect on other files.
            max_samples: Files that declare more samples (of all channels) are errors. 0: no limit.
            on_error: In a pipeline: policy for a row that fails here: raise, replace or skip; by default what the
                pipeline's `on_error` says.
            name: Name of the node, shown in errors and by which outputs and readers are found.
            device: Where the operator runs.
            preserve: Run the operator also if its output is not used.
        """
        ...

    @staticmethod
    def image(
        data: Input,
        /,
        *,
        output_type: ImageType = ImageType.RGB,
        dtype: DTypeLike = DType.UINT8,
        adjust_orientation: bool = True,
        jpeg_fancy_upsampling: bool = False,
        use_fast_idct: bool = False,
        max_pixels: int = 178956970,
        palette_indices: bool = False,
        max_scan_pixels: int = 524288000,
        scale_denom: int = 1,
        affine: bool = True,
        gpu_backend: Literal["exact", "nvjpeg_hardware"] = "exact",
        hw_decoder_load: float = 0.65,
        hybrid_huffman_threshold: int = 1000000,
        device_memory_padding: int = 16777216,
        host_memory_padding: int = 8388608,
        device_memory_padding_jpeg2k: int = 0,
        host_memory_padding_jpeg2k: int = 0,
        preallocate_width_hint: int = 0,
        preallocate_height_hint: int = 0,
        memory_stats: bool = False,
        split_stages: bool = False,
        use_chunk_allocator: bool = False,
        on_error: Literal["raise", "replace", "skip"] | None = None,
        cache_size: int = 0,
        cache_threshold: int = 0,
        cache_type: Literal["", "largest", "threshold"] = "",
        cache_debug: bool = False,
        cache_batch_copy: bool = True,
        name: str | None = None,
        device: Literal["cpu", "gpu", "mixed"] | None = None,
        preserve: bool = False,
        bytes_per_sample_hint: int | Sequence[int] | npt.NDArray[np.generic] = 0,
    ) -> DataNode:
        """Decode an image file. Input: its bytes, uint8 ``(N,)``. Output: ``(H, W, C)``, uint8 unless ``dtype`` is given.

        Exact: JPEG pixels equal those of libjpeg-turbo (accurate transform, fancy upsampling) and so of Pillow. Baseline
        and progressive JPEG, PNG, and usual BMP, PNM, TIFF, WebP, JPEG 2000 and GIF (its first frame) are decoded natively.
        Others of these, AVIF and QOI are decoded by Pillow; ``Pipeline.report`` lists these files with the reason. A crop
        that follows becomes a decode window: of a JPEG, no pixel outside of it is decoded. Smaller scales (``scale_denom``)
        are approximate and an opt-in.

        Args:
            output_type: Colour model of the output: RGB, BGR, GRAY, YCbCr, ANY_DATA.
            dtype: Element type. FLOAT is scaled to [0, 1], integers to their full range: UINT16 exactly, others are
                the float times the largest value in float32, rounded half up. All types but UINT8 keep the values
                of files with 16 bits (not with YCbCr), and with ANY_DATA floating types those of gray files with
                floats or 32-bit integers. Other outputs have 8 bits first: the upper 8 of 16; floats and 32-bit
                integers must be whole numbers up to 255, with UINT16 and ANY_DATA up to 65535.
            adjust_orientation: Turn the image as its EXIF orientation says.
            max_pixels: Larger images are errors, before memory is taken (decompression bombs). Counts the pixels
                that the file's header declares, also with `scale_denom` and for crops. 0: no limit.
            palette_indices: Read files with a palette as one channel of palette indices, such as segmentation
                masks. With `output_type` GRAY or ANY_DATA, and `dtype` UINT8. Other files are read as usual.
            max_scan_pixels: JPEG files with more than 24 scans whose scans times pixels exceed this are errors:
                every scan passes over the whole image, and costs the file a few bytes. Encoders write up to 18
                scans. The default is 500 scans of a megapixel, the limit of libjpeg-turbo's fuzzers. 0: no limit.
            scale_denom: 1, 2, 4 or 8: decode to 1 / `scale_denom` of the width and height, rounded up; approximate:
                on photographs 0.5 levels from the mean of the pixels on average, 27 to 53 at worst and up to 77 in
                the last row and column. JPEG uses low frequencies only, with TurboJPEG's pixels; other files are
                averaged. Crops count the smaller pixels.
            gpu_backend: "exact", or "nvjpeg_hardware": decode the share `hw_decoder_load` of the rows on a GPU with
                its JPEG engines (A100, H100, H200 and newer, through nvJPEG, the extra `nvjpeg`). The row key
                decides, so that pixels do not depend on threads or batches. Files with 4:4:4 sampling are exact,
                others approximate: photographs with 4:2:0 0.6 levels from the exact pixels on average, 69 at worst;
                with `jpeg_fancy_upsampling` 1 at worst. The engines do not report damaged data. Files that they do
                not decode (progressive, gray, inks, no end marker, another `output_type`) are exact.
                `Pipeline.report` has their number, the reasons, and the measured error. No effect on the CPU.
            hw_decoder_load: With `gpu_backend="nvjpeg_hardware"`: the engines' share of the rows, 0 to 1. Without
                effect with the exact backend, which uses no engine; with `mixed`, a value that is neither 0 nor the
                default warns there.
            on_error: In a pipeline: policy for a row that fails here: raise, replace or skip; by default what the
                pipeline's `on_error` says.
            name: Name of the node, shown in errors and by which outputs and readers are found.
            device: Where the operator runs.
            preserve: Run the operator also if its output is not used.
        """
        ...

    @staticmethod
    def image_crop(
        data: Input,
        /,
        *,
        crop: float | Sequence[float | DataNode] | npt.NDArray[np.generic] | DataNode | None = None,
        crop_h: float | DataNode = 0.0,
        crop_w: float | DataNode = 0.0,
        crop_d: float | DataNode = 0.0,
        crop_pos_x: float | DataNode = 0.5,
        crop_pos_y: float | DataNode = 0.5,
        crop_pos_z: float | DataNode = 0.5,
        rounding: Literal["round", "truncate"] = "round",
        output_type: ImageType = ImageType.RGB,
        dtype: DTypeLike = DType.UINT8,
        adjust_orientation: bool = True,
        jpeg_fancy_upsampling: bool = False,
        use_fast_idct: bool = False,
        max_pixels: int = 178956970,
        palette_indices: bool = False,
        max_scan_pixels: int = 524288000,
        scale_denom: int = 1,
        affine: bool = True,
        gpu_backend: Literal["exact", "nvjpeg_hardware"] = "exact",
        hw_decoder_load: float = 0.65,
        hybrid_huffman_threshold: int = 1000000,
        device_memory_padding: int = 16777216,
        host_memory_padding: int = 8388608,
        device_memory_padding_jpeg2k: int = 0,
        host_memory_padding_jpeg2k: int = 0,
        preallocate_width_hint: int = 0,
        preallocate_height_hint: int = 0,
        memory_stats: bool = False,
        split_stages: bool = False,
        use_chunk_allocator: bool = False,
        on_error: Literal["raise", "replace", "skip"] | None = None,
        name: str | None = None,
        device: Literal["cpu", "gpu", "mixed"] | None = None,
        preserve: bool = False,
        bytes_per_sample_hint: int | Sequence[int] | npt.NDArray[np.generic] = 0,
    ) -> DataNode:
        """Decode a window of an image. Input: a file's bytes. Output: ``(h, w, C)``, uint8 unless ``dtype`` is given.

        The window is that of ``crop``. Only the window is decoded. The pixels equal a crop of the whole image.

        Args:
            crop: Window in pixels as (height, width), or (depth, height, width).
            crop_h: Height of the window in pixels; 0: the whole height.
            crop_w: Width of the window in pixels; 0: the whole width.
            crop_d: Depth of the window; 0: the whole depth.
            crop_pos_x: Horizontal place: 0 is the left edge, 1 the right one.
            crop_pos_y: Vertical place: 0 is the top, 1 the bottom.
            crop_pos_z: Place in depth: 0 is the front, 1 the back.
            rounding: Rounding of the window's start: to the nearest pixel (half away from zero), or towards zero.
            output_type: Colour model of the output: RGB, BGR, GRAY, YCbCr, ANY_DATA.
            dtype: Element type. FLOAT is scaled to [0, 1], integers to their full range: UINT16 exactly, others are
                the float times the largest value in float32, rounded half up. All types but UINT8 keep the values
                of files with 16 bits (not with YCbCr), and with ANY_DATA floating types those of gray files with
                floats or 32-bit integers. Other outputs have 8 bits first: the upper 8 of 16; floats and 32-bit
                integers must be whole numbers up to 255, with UINT16 and ANY_DATA up to 65535.
            adjust_orientation: Turn the image as its EXIF orientation says.
            max_pixels: Larger images are errors, before memory is taken (decompression bombs). Counts the pixels
                that the file's header declares, also with `scale_denom` and for crops. 0: no limit.
            palette_indices: Read files with a palette as one channel of palette indices, such as segmentation
                masks. With `output_type` GRAY or ANY_DATA, and `dtype` UINT8. Other files are read as usual.
            max_scan_pixels: JPEG files with more than 24 scans whose scans times pixels exceed this are errors:
                every scan passes over the whole image, and costs the file a few bytes. Encoders write up to 18
                scans. The default is 500 scans of a megapixel, the limit of libjpeg-turbo's fuzzers. 0: no limit.
            scale_denom: 1, 2, 4 or 8: decode to 1 / `scale_denom` of the width and height, rounded up; approximate:
                on photographs 0.5 levels from the mean of the pixels on average, 27 to 53 at worst and up to 77 in
                the last row and column. JPEG uses low frequencies only, with TurboJPEG's pixels; other files are
                averaged. Crops count the smaller pixels.
            gpu_backend: "exact", or "nvjpeg_hardware": decode the share `hw_decoder_load` of the rows on a GPU with
                its JPEG engines (A100, H100, H200 and newer, through nvJPEG, the extra `nvjpeg`). The row key
                decides, so that pixels do not depend on threads or batches. Files with 4:4:4 sampling are exact,
                others approximate: photographs with 4:2:0 0.6 levels from the exact pixels on average, 69 at worst;
                with `jpeg_fancy_upsampling` 1 at worst. The engines do not report damaged data. Files that they do
                not decode (progressive, gray, inks, no end marker, another `output_type`) are exact.
                `Pipeline.report` has their number, the reasons, and the measured error. No effect on the CPU.
            hw_decoder_load: With `gpu_backend="nvjpeg_hardware"`: the engines' share of the rows, 0 to 1. Without
                effect with the exact backend, which uses no engine; with `mixed`, a value that is neither 0 nor the
                default warns there.
            on_error: In a pipeline: policy for a row that fails here: raise, replace or skip; by default what the
                pipeline's `on_error` says.
            name: Name of the node, shown in errors and by which outputs and readers are found.
            device: Where the operator runs.
            preserve: Run the operator also if its output is not used.
        """
        ...

    @staticmethod
    def image_random_crop(
        data: Input,
        /,
        *,
        output_type: ImageType = ImageType.RGB,
        dtype: DTypeLike = DType.UINT8,
        adjust_orientation: bool = True,
        jpeg_fancy_upsampling: bool = False,
        use_fast_idct: bool = False,
        max_pixels: int = 178956970,
        palette_indices: bool = False,
        max_scan_pixels: int = 524288000,
        scale_denom: int = 1,
        affine: bool = True,
        gpu_backend: Literal["exact", "nvjpeg_hardware"] = "exact",
        hw_decoder_load: float = 0.65,
        hybrid_huffman_threshold: int = 1000000,
        device_memory_padding: int = 16777216,
        host_memory_padding: int = 8388608,
        device_memory_padding_jpeg2k: int = 0,
        host_memory_padding_jpeg2k: int = 0,
        preallocate_width_hint: int = 0,
        preallocate_height_hint: int = 0,
        memory_stats: bool = False,
        split_stages: bool = False,
        use_chunk_allocator: bool = False,
        on_error: Literal["raise", "replace", "skip"] | None = None,
        num_attempts: int = 10,
        random_area: float | Sequence[float] | npt.NDArray[np.generic] = (0.08, 1.0),
        random_aspect_ratio: float | Sequence[float] | npt.NDArray[np.generic] = (0.75, 1.3333333333333333),
        seed: int | None = None,
        name: str | None = None,
        device: Literal["cpu", "gpu", "mixed"] | None = None,
        preserve: bool = False,
        bytes_per_sample_hint: int | Sequence[int] | npt.NDArray[np.generic] = 0,
    ) -> DataNode:
        """Decode a random window of an image. Input: a file's bytes. Output: ``(h, w, C)``.

        uint8 unless ``dtype`` is given. The window is drawn as in torchvision's RandomResizedCrop (see
        ``random_crop_generator``). Only the window is decoded. The pixels equal a crop of the whole image.

        Args:
            output_type: Colour model of the output: RGB, BGR, GRAY, YCbCr, ANY_DATA.
            dtype: Element type. FLOAT is scaled to [0, 1], integers to their full range: UINT16 exactly, others are
                the float times the largest value in float32, rounded half up. All types but UINT8 keep the values
                of files with 16 bits (not with YCbCr), and with ANY_DATA floating types those of gray files with
                floats or 32-bit integers. Other outputs have 8 bits first: the upper 8 of 16; floats and 32-bit
                integers must be whole numbers up to 255, with UINT16 and ANY_DATA up to 65535.
            adjust_orientation: Turn the image as its EXIF orientation says.
            max_pixels: Larger images are errors, before memory is taken (decompression bombs). Counts the pixels
                that the file's header declares, also with `scale_denom` and for crops. 0: no limit.
            palette_indices: Read files with a palette as one channel of palette indices, such as segmentation
                masks. With `output_type` GRAY or ANY_DATA, and `dtype` UINT8. Other files are read as usual.
            max_scan_pixels: JPEG files with more than 24 scans whose scans times pixels exceed this are errors:
                every scan passes over the whole image, and costs the file a few bytes. Encoders write up to 18
                scans. The default is 500 scans of a megapixel, the limit of libjpeg-turbo's fuzzers. 0: no limit.
            scale_denom: 1, 2, 4 or 8: decode to 1 / `scale_denom` of the width and height, rounded up; approximate:
                on photographs 0.5 levels from the mean of the pixels on average, 27 to 53 at worst and up to 77 in
                the last row and column. JPEG uses low frequencies only, with TurboJPEG's pixels; other files are
                averaged. Crops count the smaller pixels.
            gpu_backend: "exact", or "nvjpeg_hardware": decode the share `hw_decoder_load` of the rows on a GPU with
                its JPEG engines (A100, H100, H200 and newer, through nvJPEG, the extra `nvjpeg`). The row key
                decides, so that pixels do not depend on threads or batches. Files with 4:4:4 sampling are exact,
                others approximate: photographs with 4:2:0 0.6 levels from the exact pixels on average, 69 at worst;
                with `jpeg_fancy_upsampling` 1 at worst. The engines do not report damaged data. Files that they do
                not decode (progressive, gray, inks, no end marker, another `output_type`) are exact.
                `Pipeline.report` has their number, the reasons, and the measured error. No effect on the CPU.
            hw_decoder_load: With `gpu_backend="nvjpeg_hardware"`: the engines' share of the rows, 0 to 1. Without
                effect with the exact backend, which uses no engine; with `mixed`, a value that is neither 0 nor the
                default warns there.
            on_error: In a pipeline: policy for a row that fails here: raise, replace or skip; by default what the
                pipeline's `on_error` says.
            num_attempts: Attempts before the largest centred window of a permitted ratio is taken.
            random_area: Range of the window's share of the area, above 0 and up to 1.
            random_aspect_ratio: Range of width over height, above 0.
            seed: Seed of this operator's draws; by default it follows from the pipeline's.
            name: Name of the node, shown in errors and by which outputs and readers are found.
            device: Where the operator runs.
            preserve: Run the operator also if its output is not used.
        """
        ...

    @staticmethod
    def image_slice(
        data: Input,
        /,
        *limits: Input,
        axes: int | Sequence[int | DataNode] | npt.NDArray[np.generic] | DataNode = (1, 0),
        axis_names: str | None = None,
        start: int | Sequence[int | DataNode] | npt.NDArray[np.generic] | DataNode | None = None,
        end: int | Sequence[int | DataNode] | npt.NDArray[np.generic] | DataNode | None = None,
        shape: int | Sequence[int | DataNode] | npt.NDArray[np.generic] | DataNode | None = None,
        rel_start: float | Sequence[float | DataNode] | npt.NDArray[np.generic] | DataNode | None = None,
        rel_end: float | Sequence[float | DataNode] | npt.NDArray[np.generic] | DataNode | None = None,
        rel_shape: float | Sequence[float | DataNode] | npt.NDArray[np.generic] | DataNode | None = None,
        normalized_anchor: bool = True,
        normalized_shape: bool = True,
        output_type: ImageType = ImageType.RGB,
        dtype: DTypeLike = DType.UINT8,
        adjust_orientation: bool = True,
        jpeg_fancy_upsampling: bool = False,
        use_fast_idct: bool = False,
        max_pixels: int = 178956970,
        palette_indices: bool = False,
        max_scan_pixels: int = 524288000,
        scale_denom: int = 1,
        affine: bool = True,
        gpu_backend: Literal["exact", "nvjpeg_hardware"] = "exact",
        hw_decoder_load: float = 0.65,
        hybrid_huffman_threshold: int = 1000000,
        device_memory_padding: int = 16777216,
        host_memory_padding: int = 8388608,
        device_memory_padding_jpeg2k: int = 0,
        host_memory_padding_jpeg2k: int = 0,
        preallocate_width_hint: int = 0,
        preallocate_height_hint: int = 0,
        memory_stats: bool = False,
        split_stages: bool = False,
        use_chunk_allocator: bool = False,
        on_error: Literal["raise", "replace", "skip"] | None = None,
        name: str | None = None,
        device: Literal["cpu", "gpu", "mixed"] | None = None,
        preserve: bool = False,
        bytes_per_sample_hint: int | Sequence[int] | npt.NDArray[np.generic] = 0,
    ) -> DataNode:
        """Decode a window of an image. Inputs: a file's bytes, and optionally anchor and shape. Output: ``(h, w, C)``.

        The window is that of ``slice``, by default given as (x, y). Only the window is decoded. The pixels equal a slice of
        the whole image. uint8 unless ``dtype`` is given.

        Args:
            axes: The axes that the limits are for; negative ones count from the end. Empty: all.
            axis_names: The axes by name, for example "HW"; "WH" if the data have these axes and `axes` is not
                given.
            start: First element per axis.
            end: Element after the last per axis.
            shape: Number of elements per axis.
            rel_start: First element as a share of the extent.
            rel_end: End as a share of the extent.
            rel_shape: Number of elements as a share of the extent.
            normalized_anchor: Whether a positional anchor of floats is relative.
            normalized_shape: Whether a positional shape of floats is relative.
            output_type: Colour model of the output: RGB, BGR, GRAY, YCbCr, ANY_DATA.
            dtype: Element type. FLOAT is scaled to [0, 1], integers to their full range: UINT16 exactly, others are
                the float times the largest value in float32, rounded half up. All types but UINT8 keep the values
                of files with 16 bits (not with YCbCr), and with ANY_DATA floating types those of gray files with
                floats or 32-bit integers. Other outputs have 8 bits first: the upper 8 of 16; floats and 32-bit
                integers must be whole numbers up to 255, with UINT16 and ANY_DATA up to 65535.
            adjust_orientation: Turn the image as its EXIF orientation says.
            max_pixels: Larger images are errors, before memory is taken (decompression bombs). Counts the pixels
                that the file's header declares, also with `scale_denom` and for crops. 0: no limit.
            palette_indices: Read files with a palette as one channel of palette indices, such as segmentation
                masks. With `output_type` GRAY or ANY_DATA, and `dtype` UINT8. Other files are read as usual.
            max_scan_pixels: JPEG files with more than 24 scans whose scans times pixels exceed this are errors:
                every scan passes over the whole image, and costs the file a few bytes. Encoders write up to 18
                scans. The default is 500 scans of a megapixel, the limit of libjpeg-turbo's fuzzers. 0: no limit.
            scale_denom: 1, 2, 4 or 8: decode to 1 / `scale_denom` of the width and height, rounded up; approximate:
                on photographs 0.5 levels from the mean of the pixels on average, 27 to 53 at worst and up to 77 in
                the last row and column. JPEG uses low frequencies only, with TurboJPEG's pixels; other files are
                averaged. Crops count the smaller pixels.
            gpu_backend: "exact", or "nvjpeg_hardware": decode the share `hw_decoder_load` of the rows on a GPU with
                its JPEG engines (A100, H100, H200 and newer, through nvJPEG, the extra `nvjpeg`). The row key
                decides, so that pixels do not depend on threads or batches. Files with 4:4:4 sampling are exact,
                others approximate: photographs with 4:2:0 0.6 levels from the exact pixels on average, 69 at worst;
                with `jpeg_fancy_upsampling` 1 at worst. The engines do not report damaged data. Files that they do
                not decode (progressive, gray, inks, no end marker, another `output_type`) are exact.
                `Pipeline.report` has their number, the reasons, and the measured error. No effect on the CPU.
            hw_decoder_load: With `gpu_backend="nvjpeg_hardware"`: the engines' share of the rows, 0 to 1. Without
                effect with the exact backend, which uses no engine; with `mixed`, a value that is neither 0 nor the
                default warns there.
            on_error: In a pipeline: policy for a row that fails here: raise, replace or skip; by default what the
                pipeline's `on_error` says.
            name: Name of the node, shown in errors and by which outputs and readers are found.
            device: Where the operator runs.
            preserve: Run the operator also if its output is not used.
        """
        ...

    @staticmethod
    def inflate(
        data: Input,
        /,
        *,
        shape: int | Sequence[int | DataNode] | npt.NDArray[np.generic] | DataNode,
        dtype: DTypeLike = DType.UINT8,
        algorithm: Literal["LZ4"] = "LZ4",
        chunk_offsets: int | Sequence[int | DataNode] | npt.NDArray[np.generic] | DataNode | None = None,
        chunk_sizes: int | Sequence[int | DataNode] | npt.NDArray[np.generic] | DataNode | None = None,
        check_output_size: bool = False,
        layout: str = "",
        sequence_axis_name: str = "F",
        name: str | None = None,
        device: Literal["cpu", "gpu", "mixed"] | None = None,
        preserve: bool = False,
        bytes_per_sample_hint: int | Sequence[int] | npt.NDArray[np.generic] = 0,
    ) -> DataNode:
        """Decompress LZ4 blocks. Input: uint8 (N,). Output: elements of `dtype`, of the given `shape`.

        With `chunk_offsets` or `chunk_sizes` the input has several blocks, and the output has an axis for them in front.
        Without offsets the blocks follow each other; without sizes, each ends where the next one begins. A block that is
        damaged, or does not have the bytes of the shape, is an error of its row.

        Args:
            shape: Extents of a decompressed block.
            dtype: Type of the elements, little-endian as stored.
            chunk_offsets: First byte of each block.
            chunk_sizes: Bytes of each block.
            check_output_size: No effect: sizes are always checked.
            layout: Names of the axes of a block.
            sequence_axis_name: Name of the axis of blocks, if the blocks' axes have names.
            name: Name of the node, shown in errors and by which outputs and readers are found.
            device: Where the operator runs.
            preserve: Run the operator also if its output is not used.
        """
        ...

    @staticmethod
    def numpy(
        data: Input,
        /,
        *,
        dtype: DTypeLike | None = None,
        name: str | None = None,
        device: Literal["cpu", "gpu", "mixed"] | None = None,
        preserve: bool = False,
        bytes_per_sample_hint: int | Sequence[int] | npt.NDArray[np.generic] = 0,
    ) -> DataNode:
        """Decode arrays in the form of .npy files (versions 1 to 3). Input: uint8 (N,). Output: the array.

        The first batch decides the type and the number of axes; other arrays must have the same. Arrays in Fortran order
        and big-endian ones become contiguous arrays in the order of C, little-endian. With `dtype` the numbers are
        converted: rounded half to even, and limited to the range of the type. Arrays of objects, texts and complex numbers
        are errors of their rows, and so are bytes after the array.

        Args:
            dtype: Type of the output; by default that of the arrays.
            name: Name of the node, shown in errors and by which outputs and readers are found.
            device: Where the operator runs.
            preserve: Run the operator also if its output is not used.
        """
        ...

    @staticmethod
    def video(
        data: Input,
        /,
        *,
        frames: int | Sequence[int | DataNode] | npt.NDArray[np.generic] | DataNode | None = None,
        times: float | Sequence[float | DataNode] | npt.NDArray[np.generic] | DataNode | None = None,
        start_frame: int | DataNode | None = None,
        start_time: float | DataNode | None = None,
        end_frame: int | DataNode | None = None,
        end_time: float | DataNode | None = None,
        sequence_length: int | DataNode | None = None,
        stride: int | DataNode | None = None,
        fps: float = 0.0,
        keyframes_only: bool = False,
        uniform_sample: bool = False,
        random_crop: bool = False,
        pad_mode: Literal["none", "constant", "edge", "reflect_1001", "reflect_101", "repeat", "symmetric", "reflect"] = "constant",
        fill_value: Any = (0,),
        image_type: ImageType = ImageType.RGB,
        dtype: DTypeLike = DType.UINT8,
        adjust_orientation: bool = True,
        reduction: int = 1,
        build_index: bool = True,
        affine: bool = True,
        on_error: Literal["raise", "replace", "skip"] | None = None,
        seed: int | None = None,
        name: str | None = None,
        device: Literal["cpu", "gpu", "mixed"] | None = None,
        preserve: bool = False,
        bytes_per_sample_hint: int | Sequence[int] | npt.NDArray[np.generic] = 0,
    ) -> DataNode:
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

        Args:
            frames: Numbers of the frames, in any order; some may repeat.
            times: Seconds: the frames that are shown then, in any order.
            start_frame: The first frame; by default 0.
            start_time: Second at which the first frame is shown.
            end_frame: The frame before which the clip ends.
            end_time: Second before which the last frame begins.
            sequence_length: Number of frames; by default those up to the end.
            stride: Distance between consecutive frames; by default 1.
            fps: Count the frames that are shown at this rate per second; 0: all frames.
            keyframes_only: Count key frames only, which need no other frame.
            uniform_sample: `sequence_length` frames at equal distances over the whole range.
            random_crop: `sequence_length` frames at a random place of the range.
            pad_mode: Frames in place of those past the end: of `fill_value`, the last one, mirrored ones, or none.
            fill_value: Value of the pixels of constant frames, 0 to 255, or one per channel.
            image_type: Channels: types.RGB, BGR, or YCbCr (as stored, in 8 bits).
            dtype: Element type: UINT8, or UINT16 with all bits of the samples, 65535 for white.
            adjust_orientation: Turn the frames as the file says that players do.
            reduction: Decode at 1/2, 1/4 or 1/8 of the height and width, which is faster, with 2, 4 or 8, where the
                codec allows it: MPEG-1, -2 and -4, H.263, FLV, WMV and Motion JPEG.
            build_index: No effect: frames are found by an index of the packets.
            affine: No effect: threads are not pinned.
            on_error: In a pipeline: policy for a row that fails here: raise, replace or skip; by default what the
                pipeline's `on_error` says.
            seed: Seed of this operator's draws; by default it follows from the pipeline's.
            name: Name of the node, shown in errors and by which outputs and readers are found.
            device: Where the operator runs.
            preserve: Run the operator also if its output is not used.
        """
        ...

class experimental:
    @staticmethod
    def dilate(
        x: Input,
        /,
        *,
        mask_size: int | Sequence[int | DataNode] | npt.NDArray[np.generic] | DataNode = (3, 3),
        anchor: int | Sequence[int | DataNode] | npt.NDArray[np.generic] | DataNode = (-1, -1),
        iterations: int = 1,
        border_mode: Literal["constant", "reflect", "reflect_101", "replicate", "wrap"] = "constant",
        name: str | None = None,
        device: Literal["cpu", "gpu", "mixed"] | None = None,
        preserve: bool = False,
        bytes_per_sample_hint: int | Sequence[int] | npt.NDArray[np.generic] = 0,
    ) -> DataNode:
        """Replace every pixel by the largest one of a rectangle around it. Input: HW, HWC, CHW or these with a leading F;
        numbers of up to 32 bits. Output: the same.

        Exact: the bytes of OpenCV's ``dilate`` with a rectangle. Channels and frames are independent. NaNs count as numbers
        beyond the infinity of their sign. In DALI the operator runs on GPUs only.

        Args:
            mask_size: Size of the window in pixels, (width, height): at least 1, or -1 for 3.
            anchor: Pixel of the window that lies on the output's position, (x, y); -1: the middle.
            iterations: Number of repetitions, at least 0. Each one after the first enlarges the window by its size
                less one.
            border_mode: Pixels beyond the edges of a row abcd. constant: none, they never win; replicate:
                aaa|abcd|ddd; reflect: cba|abcd|dcb; reflect_101: dcb|abcd|cba; wrap: bcd|abcd|abc.
            name: Name of the node, shown in errors and by which outputs and readers are found.
            device: Where the operator runs.
            preserve: Run the operator also if its output is not used.
        """
        ...

    @staticmethod
    def erode(
        x: Input,
        /,
        *,
        mask_size: int | Sequence[int | DataNode] | npt.NDArray[np.generic] | DataNode = (3, 3),
        anchor: int | Sequence[int | DataNode] | npt.NDArray[np.generic] | DataNode = (-1, -1),
        iterations: int = 1,
        border_mode: Literal["constant", "reflect", "reflect_101", "replicate", "wrap"] = "constant",
        name: str | None = None,
        device: Literal["cpu", "gpu", "mixed"] | None = None,
        preserve: bool = False,
        bytes_per_sample_hint: int | Sequence[int] | npt.NDArray[np.generic] = 0,
    ) -> DataNode:
        """Replace every pixel by the smallest one of a rectangle around it. Input: HW, HWC, CHW or these with a leading F;
        numbers of up to 32 bits. Output: the same.

        Exact: the bytes of OpenCV's ``erode`` with a rectangle. Channels and frames are independent. NaNs count as numbers
        beyond the infinity of their sign. In DALI the operator runs on GPUs only.

        Args:
            mask_size: Size of the window in pixels, (width, height): at least 1, or -1 for 3.
            anchor: Pixel of the window that lies on the output's position, (x, y); -1: the middle.
            iterations: Number of repetitions, at least 0. Each one after the first enlarges the window by its size
                less one.
            border_mode: Pixels beyond the edges of a row abcd. constant: none, they never win; replicate:
                aaa|abcd|ddd; reflect: cba|abcd|dcb; reflect_101: dcb|abcd|cba; wrap: bcd|abcd|abc.
            name: Name of the node, shown in errors and by which outputs and readers are found.
            device: Where the operator runs.
            preserve: Run the operator also if its output is not used.
        """
        ...

    @staticmethod
    def median_blur(
        x: Input,
        /,
        *,
        window_size: int | Sequence[int | DataNode] | npt.NDArray[np.generic] | DataNode = (3, 3),
        name: str | None = None,
        device: Literal["cpu", "gpu", "mixed"] | None = None,
        preserve: bool = False,
        bytes_per_sample_hint: int | Sequence[int] | npt.NDArray[np.generic] = 0,
    ) -> DataNode:
        """Replace every pixel by the median of a rectangle around it. Input: HW, HWC, CHW or these with a leading F;
        numbers of up to 32 bits. Output: the same.

        Exact: the bytes of OpenCV's ``medianBlur``, also for types, sizes and rectangles that OpenCV lacks. Edges are
        repeated (aaa|abcd|ddd). Channels and frames are independent. NaNs count as numbers beyond the infinity of their
        sign. In DALI the operator runs on GPUs only.

        Args:
            window_size: Size of the window in pixels, (width, height): odd, 1 to 255.
            name: Name of the node, shown in errors and by which outputs and readers are found.
            device: Where the operator runs.
            preserve: Run the operator also if its output is not used.
        """
        ...

    @staticmethod
    def remap(
        x: Input,
        mapx: Input,
        mapy: Input,
        /,
        *,
        interp: InterpType = InterpType.INTERP_LINEAR,
        pixel_origin: Literal["corner", "center"] = "corner",
        name: str | None = None,
        device: Literal["cpu", "gpu", "mixed"] | None = None,
        preserve: bool = False,
        bytes_per_sample_hint: int | Sequence[int] | npt.NDArray[np.generic] = 0,
    ) -> DataNode:
        """Sample images at given coordinates. Inputs: an image of up to 32 bits an element, HW, HWC, CHW or these with a
        leading F; columns ``mapx`` and rows ``mapy`` of the source, float32: (H, W), (H, W, 1), or (F, H, W) by frame.
        Output: the image's axes in the maps' size.

        Neighbours beyond the edges are 0. With ``pixel_origin="center"`` bytes are those of OpenCV's ``remap``.

        Args:
            interp: INTERP_NN, INTERP_LINEAR or INTERP_CUBIC.
            pixel_origin: Point of the first pixel that is at (0, 0).
            name: Name of the node, shown in errors and by which outputs and readers are found.
            device: Where the operator runs.
            preserve: Run the operator also if its output is not used.
        """
        ...

    @overload
    @staticmethod
    def resize(
        x: Input,
        /,
        *,
        interp_type: InterpType | DataNode = InterpType.INTERP_LINEAR,
        min_filter: InterpType | DataNode | None = None,
        mag_filter: InterpType | DataNode | None = None,
        antialias: bool = True,
        minibatch_size: int = 32,
        temp_buffer_hint: int = 0,
        size: float | Sequence[float | DataNode] | npt.NDArray[np.generic] | DataNode | None = None,
        resize_x: float | DataNode | None = None,
        resize_y: float | DataNode | None = None,
        resize_shorter: float | DataNode | None = None,
        resize_longer: float | DataNode | None = None,
        resize_z: float | DataNode | None = None,
        max_size: float | Sequence[float] | npt.NDArray[np.generic] | None = None,
        mode: Literal["default", "stretch", "not_larger", "not_smaller"] = "default",
        subpixel_scale: bool = False,
        roi_start: float | Sequence[float | DataNode] | npt.NDArray[np.generic] | DataNode | None = None,
        roi_end: float | Sequence[float | DataNode] | npt.NDArray[np.generic] | DataNode | None = None,
        roi_relative: bool = False,
        dtype: DTypeLike | None = None,
        image_type: ImageType | None = None,
        save_attrs: Literal[False] = False,
        allow_empty: bool = False,
        name: str | None = None,
        device: Literal["cpu", "gpu", "mixed"] | None = None,
        preserve: bool = False,
        bytes_per_sample_hint: int | Sequence[int] | npt.NDArray[np.generic] = 0,
    ) -> DataNode:
        """Change the size of images as `resize` does, under DALI's experimental name.

        Args:
            interp_type: Filter for shrinking and enlarging, one of `types.INTERP_*`.
            min_filter: Filter for shrinking.
            mag_filter: Filter for enlarging.
            antialias: Widen the filter when shrinking, as Pillow does.
            size: Output (height, width) in pixels, of a volume (depth, height, width), or one number for all; 0:
                not given.
            resize_x: Output width in pixels; 0: not given.
            resize_y: Output height in pixels; 0: not given.
            resize_shorter: Output length of the shorter side in pixels; keeps the aspect ratio.
            resize_longer: Output length of the longer side in pixels; keeps the aspect ratio.
            resize_z: Output depth of a volume in pixels; 0: not given.
            max_size: Limit of the output size in pixels, one or one per axis.
            mode: default: a size that is not given keeps the aspect ratio; stretch: it keeps its extent;
                not_larger, not_smaller: keep the aspect ratio within or around the size.
            subpixel_scale: True adapts the region, about its centre, so that the scale is that of the unrounded
                size.
            roi_start: Region's (y, x) or (z, y, x) start in the input, in pixels.
            roi_end: Region's (y, x) or (z, y, x) end, in pixels; before the start: mirrored.
            roi_relative: Whether the region is in shares of the input's extents (0 to 1) instead of pixels.
            dtype: Element type of the output; by default the input's.
            save_attrs: Also output the input's shape, int32.
            allow_empty: Whether images without pixels are accepted: an axis without pixels stays so, and the
                output's shape depends on the data. No effect on volumes, and where the number of channels is known
                before the run (images of decoders, layout HW): an image without pixels is an error of its row
                there.
            name: Name of the node, shown in errors and by which outputs and readers are found.
            device: Where the operator runs.
            preserve: Run the operator also if its output is not used.
        """
        ...

    @overload
    @staticmethod
    def resize(
        x: Input,
        /,
        *,
        interp_type: InterpType | DataNode = InterpType.INTERP_LINEAR,
        min_filter: InterpType | DataNode | None = None,
        mag_filter: InterpType | DataNode | None = None,
        antialias: bool = True,
        minibatch_size: int = 32,
        temp_buffer_hint: int = 0,
        size: float | Sequence[float | DataNode] | npt.NDArray[np.generic] | DataNode | None = None,
        resize_x: float | DataNode | None = None,
        resize_y: float | DataNode | None = None,
        resize_shorter: float | DataNode | None = None,
        resize_longer: float | DataNode | None = None,
        resize_z: float | DataNode | None = None,
        max_size: float | Sequence[float] | npt.NDArray[np.generic] | None = None,
        mode: Literal["default", "stretch", "not_larger", "not_smaller"] = "default",
        subpixel_scale: bool = False,
        roi_start: float | Sequence[float | DataNode] | npt.NDArray[np.generic] | DataNode | None = None,
        roi_end: float | Sequence[float | DataNode] | npt.NDArray[np.generic] | DataNode | None = None,
        roi_relative: bool = False,
        dtype: DTypeLike | None = None,
        image_type: ImageType | None = None,
        save_attrs: Literal[True],
        allow_empty: bool = False,
        name: str | None = None,
        device: Literal["cpu", "gpu", "mixed"] | None = None,
        preserve: bool = False,
        bytes_per_sample_hint: int | Sequence[int] | npt.NDArray[np.generic] = 0,
    ) -> tuple[DataNode, DataNode]:
        """Change the size of images as `resize` does, under DALI's experimental name.

        Args:
            interp_type: Filter for shrinking and enlarging, one of `types.INTERP_*`.
            min_filter: Filter for shrinking.
            mag_filter: Filter for enlarging.
            antialias: Widen the filter when shrinking, as Pillow does.
            size: Output (height, width) in pixels, of a volume (depth, height, width), or one number for all; 0:
                not given.
            resize_x: Output width in pixels; 0: not given.
            resize_y: Output height in pixels; 0: not given.
            resize_shorter: Output length of the shorter side in pixels; keeps the aspect ratio.
            resize_longer: Output length of the longer side in pixels; keeps the aspect ratio.
            resize_z: Output depth of a volume in pixels; 0: not given.
            max_size: Limit of the output size in pixels, one or one per axis.
            mode: default: a size that is not given keeps the aspect ratio; stretch: it keeps its extent;
                not_larger, not_smaller: keep the aspect ratio within or around the size.
            subpixel_scale: True adapts the region, about its centre, so that the scale is that of the unrounded
                size.
            roi_start: Region's (y, x) or (z, y, x) start in the input, in pixels.
            roi_end: Region's (y, x) or (z, y, x) end, in pixels; before the start: mirrored.
            roi_relative: Whether the region is in shares of the input's extents (0 to 1) instead of pixels.
            dtype: Element type of the output; by default the input's.
            save_attrs: Also output the input's shape, int32.
            allow_empty: Whether images without pixels are accepted: an axis without pixels stays so, and the
                output's shape depends on the data. No effect on volumes, and where the number of channels is known
                before the run (images of decoders, layout HW): an image without pixels is an error of its row
                there.
            name: Name of the node, shown in errors and by which outputs and readers are found.
            device: Where the operator runs.
            preserve: Run the operator also if its output is not used.
        """
        ...

    @staticmethod
    def warp_perspective(
        x: Input,
        matrix_input: Input = ...,
        /,
        *,
        matrix: float | Sequence[float | DataNode] | npt.NDArray[np.generic] | DataNode | None = None,
        inverse_map: bool = True,
        pixel_origin: Literal["corner", "center"] = "corner",
        border_mode: Literal["constant", "replicate", "reflect", "reflect_101", "wrap"] = "constant",
        fill_value: float | Sequence[float] | npt.NDArray[np.generic] = 0.0,
        interp_type: InterpType = InterpType.INTERP_LINEAR,
        size: float | Sequence[float | DataNode] | npt.NDArray[np.generic] | DataNode | None = None,
        name: str | None = None,
        device: Literal["cpu", "gpu", "mixed"] | None = None,
        preserve: bool = False,
        bytes_per_sample_hint: int | Sequence[int] | npt.NDArray[np.generic] = 0,
    ) -> DataNode:
        """Warp images by a perspective. Inputs: HW, HWC, CHW or these with a leading F, up to 32 bits an element; a matrix
        unless ``matrix`` is given.

        The 3x3 matrix maps a point (x, y, 1) of the output to one of the input, up to division by its third number. Without
        ``inverse_map`` the direction is reversed. Output: the same layout and type.

        uint8 with a constant border, up to four channels, equals Pillow's ``Image.transform(size, PERSPECTIVE, ...)``
        (NEAREST, BILINEAR, BICUBIC) bit for bit: values are truncated, and a pixel whose point is outside gets the fill
        value. All else is as in DALI: sampled at float32 coordinates, mixed with the fill value at the edge, rounded, and
        a cubic of coefficient -3/4.

        Args:
            matrix: Nine numbers, rows first; per frame for videos, too.
            inverse_map: The matrix takes the output to the input; False: the input to the output.
            pixel_origin: Point of the first pixel that is at (0, 0).
            border_mode: Pixels beyond the edges of a row abcd. constant: `fill_value`; replicate: aaa|abcd|ddd;
                reflect: cba|abcd|dcb; reflect_101: dcb|abcd|cba; wrap: bcd|abcd|abc.
            fill_value: Value outside of the image: one, or one per channel.
            interp_type: INTERP_NN, INTERP_LINEAR or INTERP_CUBIC.
            size: Size of the output in pixels, (height, width).
            name: Name of the node, shown in errors and by which outputs and readers are found.
            device: Where the operator runs.
            preserve: Run the operator also if its output is not used.
        """
        ...

    class inputs:
        @staticmethod
        def video(
            *,
            sequence_length: int,
            last_sequence_policy: Literal["partial", "pad"] = "partial",
            blocking: bool = False,
            no_copy: bool = False,
            image_type: ImageType = ImageType.RGB,
            adjust_orientation: bool = True,
            reduction: int = 1,
            affine: bool = True,
            name: str | None = None,
            device: Literal["cpu", "gpu", "mixed"] | None = None,
            preserve: bool = False,
            bytes_per_sample_hint: int | Sequence[int] | npt.NDArray[np.generic] = 0,
        ) -> DataNode:
            """Decode videos that are fed by hand. Output: sequences of frames, uint8 FHWC.

            ``pipe.feed_input(name, [data])`` takes the bytes of one video, uint8 ``(n,)``. Its frames are returned in order: a
            batch has at most `batch_size` sequences of `sequence_length` frames, and the last batch of a video may be smaller.
            Then follows the video that was fed next. Frames and colors are those of `readers.video`. A damaged picture is an
            error of its batch, and the next run continues after that batch.

            Videos are decoded by FFmpeg, from the package `av` (extra `video`), or with `device="gpu"` or "mixed" by the GPU's
            video engines (NVDEC) to the same frames, as `readers.video` says.

            Args:
                sequence_length: Number of frames of a sequence.
                last_sequence_policy: Last sequence of a video: "partial" leaves it shorter, "pad" completes it with
                    frames of zeros.
                blocking: Wait for another thread to feed a video.
                no_copy: Read the bytes in place; they must not change until the video has ended.
                image_type: Channels: types.RGB, BGR, or YCbCr (as stored, in 8 bits).
                adjust_orientation: Turn the frames as the file says that players do.
                reduction: Decode at 1/2, 1/4 or 1/8 of the height and width, which is faster, with 2, 4 or 8, where the
                    codec allows it: MPEG-1, -2 and -4, H.263, FLV, WMV and Motion JPEG.
                affine: No effect: threads are not pinned.
                name: Name of the node, shown in errors and by which outputs and readers are found.
                device: Where the operator runs.
                preserve: Run the operator also if its output is not used.
            """
            ...

    class readers:
        @staticmethod
        def fits(
            *,
            file_root: str | PathLike[str] | None = None,
            file_filter: str | PathLike[str] = "*.fits",
            file_list: str | PathLike[str] | None = None,
            files: Any = None,
            hdu_indices: int | Sequence[int] | npt.NDArray[np.generic] = 2,
            dtypes: Any = None,
            random_shuffle: bool = False,
            shuffle_after_epoch: bool = False,
            seed: int | None = None,
            sampler: Any = None,
            num_shards: int | None = None,
            shard_id: int | None = None,
            sharding: Literal["strided", "contiguous"] | None = None,
            stick_to_shard: bool = False,
            pad_last_batch: bool = False,
            on_error: Literal["raise", "replace", "skip"] | None = None,
            initial_fill: int = 1024,
            prefetch_queue_depth: int = 1,
            read_ahead: bool = False,
            skip_cached_images: bool = False,
            dont_use_mmap: bool = False,
            lazy_init: bool = False,
            tensor_init_bytes: int = 1048576,
            shuffle_after_epoch_seed: int | None = None,
            name: str | None = None,
            device: Literal["cpu", "gpu", "mixed"] | None = None,
            preserve: bool = False,
            bytes_per_sample_hint: int | Sequence[int] | npt.NDArray[np.generic] = 0,
        ) -> DataNode:
            """Read images in FITS files. Outputs: an array per header and data unit (HDU) of `hdu_indices`.

            Axes are those of NumPy: the slowest first, so NAXIS1 is the last one. The elements have the type of the file
            (BITPIX), with the usual unsigned integers and signed bytes (BZERO). Images with other numbers as BZERO and BSCALE
            are float32, or float64 if they have more than 16 bits. Images that are compressed by tiles are decompressed.

            All files have the types and numbers of axes of the first one; their extents may differ. This reader needs the
            package ``astropy``, which threads of the pipeline call.

            Args:
                file_root: Folder of the files, with its sub-folders; the base of relative paths otherwise.
                file_filter: Pattern of the names to take in the folder.
                file_list: Text file with one path per line.
                files: Paths, absolute or relative to file_root.
                hdu_indices: Numbers of the HDUs to read, from 1; 1 is the primary one.
                dtypes: Element type of each output; files with another type are refused.
                random_shuffle: Another order every epoch: a permutation of the whole data set.
                shuffle_after_epoch: Like random_shuffle, over the whole data set: contiguous shards too have other
                    samples every epoch.
                seed: Seed of the order; by default the pipeline's.
                sampler: Samples of an epoch and their order: one of stoker.samplers, a sequence of numbers, or any
                    iterable, such as a torch.utils.data.Sampler.
                num_shards: Number of parts that every epoch is divided into. By default 1, or with the pipeline's
                    `shards="launcher"` the number of processes (WORLD_SIZE).
                shard_id: First part that this pipeline takes; see `stick_to_shard`. By default 0, or with the
                    pipeline's `shards="launcher"` this process's number (RANK).
                sharding: strided: part k is the positions k, k + num_shards, ... of the epoch's order, so that a state
                    restores with another num_shards too. contiguous: as DALI, from floor(k * size / num_shards) on. By
                    default strided, unless parts are both shuffled and kept (random_shuffle with stick_to_shard).
                stick_to_shard: Take the same part in every epoch; by default the next one.
                pad_last_batch: Complete a part, and the last batch of an epoch, by repeating the part's last sample. By
                    default the part is completed with the following samples, and the batch with the next epoch's first
                    ones.
                on_error: In a pipeline: policy for a row that fails here: raise, replace or skip; by default what the
                    pipeline's `on_error` says.
                initial_fill: No effect: a shuffle is over the whole data set, not over a buffer.
                prefetch_queue_depth: No effect: the pipeline's prefetch_queue_depth holds.
                read_ahead: No effect: rows are prefetched with their batches.
                skip_cached_images: No effect: there is no cache of decoded images.
                dont_use_mmap: No effect: files are always read, never mapped.
                lazy_init: No effect: the index is read when the pipeline is built.
                tensor_init_bytes: No effect: memory is planned.
                shuffle_after_epoch_seed: No effect: `seed` decides the order of shuffled epochs.
                name: Name of the node, shown in errors and by which outputs and readers are found.
                device: Where the operator runs.
                preserve: Run the operator also if its output is not used.
            """
            ...

        @overload
        @staticmethod
        def video(
            *,
            sequence_length: int,
            filenames: Any = None,
            file_root: str | PathLike[str] | None = None,
            file_list: str | PathLike[str] | None = None,
            base: str | None = None,
            labels: Any = None,
            stride: int = 1,
            uniform_sample: bool = False,
            random_crop: bool = False,
            fps: float = 0.0,
            keyframes_only: bool = False,
            size_group: int = 0,
            enable_frame_num: Literal["none", "scalar", "sequence"] = "none",
            enable_timestamps: Literal[False] = False,
            with_audio: bool = False,
            sample_rate: float | None = None,
            downmix: bool = False,
            image_type: ImageType = ImageType.RGB,
            adjust_orientation: bool = True,
            reduction: int = 1,
            initial_fill: int = 1024,
            prefetch_queue_depth: int = 1,
            read_ahead: bool = False,
            skip_cached_images: bool = False,
            dont_use_mmap: bool = False,
            lazy_init: bool = False,
            tensor_init_bytes: int = 1048576,
            step: int = -1,
            pad_mode: Literal["none", "constant", "edge", "reflect_1001", "reflect_101", "repeat", "symmetric", "reflect"] = "none",
            fill_value: Any = (0,),
            file_list_format: Literal["timestamps", "frames"] = "timestamps",
            file_list_rounding: Literal["start_down_end_up", "start_up_end_down", "all_up", "all_down"] = "start_down_end_up",
            file_list_include_end: bool = True,
            random_shuffle: bool = False,
            shuffle_after_epoch: bool = False,
            seed: int | None = None,
            sampler: Any = None,
            num_shards: int | None = None,
            shard_id: int | None = None,
            sharding: Literal["strided", "contiguous"] | None = None,
            stick_to_shard: bool = False,
            pad_last_batch: bool = False,
            on_error: Literal["raise", "replace", "skip"] | None = None,
            name: str | None = None,
            device: Literal["cpu", "gpu", "mixed"] | None = None,
            preserve: bool = False,
            bytes_per_sample_hint: int | Sequence[int] | npt.NDArray[np.generic] = 0,
        ) -> tuple[DataNode, DataNode]:
            """Read clips of videos. Outputs: as those of `readers.video`, which describes frames, colors and damage too.

            A line of `file_list` is ``path label [start [end]]``. Clips at the end of a video that lack frames are left out, or
            completed as `pad_mode` says.

            Args:
                filenames: Path of a video, or a list of paths.
                file_root: Folder with one sub-folder per class; with `file_list`, the folder of relative paths.
                file_list: Text file with one "path label [start [end]]" per line.
                base: Folder of relative paths in `file_list`; by default `file_root`, or that of the list. DALI's is
                    the current folder.
                labels: One integer per path of `filenames`; an empty list: the index of the path.
                sequence_length: Number of frames of a clip.
                stride: Distance between consecutive frames of a clip.
                uniform_sample: One clip per file or range, of frames at equal distances from end to end.
                random_crop: One clip per file or range, at a random place, which is another one in every epoch.
                fps: Take the frames that are shown at this rate per second: `sequence_length`, `stride` and `step`
                    count those; 0: all frames.
                keyframes_only: Take key frames only, which need no other frame: `sequence_length`, `stride` and `step`
                    count those.
                size_group: Positions in the order whose clips have frames of one size, for batches of one size without
                    resizing: the batch size times the number of shards. 0: clips of all sizes mix.
                enable_frame_num: Return the number of the first frame ("scalar"), or of all ("sequence").
                enable_timestamps: Return the seconds from the file's first frame to each frame.
                with_audio: Return the audio of each clip too, float32 `(samples, channels)`, and its sampling rate.
                sample_rate: Resample the audio to this rate in Hz; by default each file keeps its own.
                downmix: Return the mean over the audio's channels, without their axis.
                image_type: Channels: types.RGB, BGR, or YCbCr (as stored, in 8 bits).
                adjust_orientation: Turn the frames as the file says that players do.
                reduction: Decode at 1/2, 1/4 or 1/8 of the height and width, which is faster, with 2, 4 or 8, where the
                    codec allows it: MPEG-1, -2 and -4, H.263, FLV, WMV and Motion JPEG.
                initial_fill: No effect: a shuffle is over the whole data set, not over a buffer.
                prefetch_queue_depth: No effect: the pipeline's prefetch_queue_depth holds.
                read_ahead: No effect: rows are prefetched with their batches.
                skip_cached_images: No effect: there is no cache of decoded frames.
                dont_use_mmap: No effect: files are always read, never mapped.
                lazy_init: No effect: the files are indexed when the pipeline is built.
                tensor_init_bytes: No effect: memory is planned.
                step: Distance between the first frames of consecutive clips; -1: `stride * sequence_length`.
                pad_mode: Frames that complete clips at the end: of `fill_value`, the last one, or mirrored ones.
                fill_value: Value of the pixels of constant frames, 0 to 255, or one per channel.
                file_list_format: Meaning of starts and ends: seconds or frames.
                file_list_rounding: Whether a time between two frames means the earlier or the later one.
                file_list_include_end: The end is the last frame of the range, not the one after it.
                random_shuffle: Another order every epoch: a permutation of the whole data set.
                shuffle_after_epoch: Like random_shuffle, over the whole data set: contiguous shards too have other
                    samples every epoch.
                seed: Seed of the order; by default the pipeline's.
                sampler: Samples of an epoch and their order: one of stoker.samplers, a sequence of numbers, or any
                    iterable, such as a torch.utils.data.Sampler.
                num_shards: Number of parts that every epoch is divided into. By default 1, or with the pipeline's
                    `shards="launcher"` the number of processes (WORLD_SIZE).
                shard_id: First part that this pipeline takes; see `stick_to_shard`. By default 0, or with the
                    pipeline's `shards="launcher"` this process's number (RANK).
                sharding: strided: part k is the positions k, k + num_shards, ... of the epoch's order, so that a state
                    restores with another num_shards too. contiguous: as DALI, from floor(k * size / num_shards) on. By
                    default strided, unless parts are both shuffled and kept (random_shuffle with stick_to_shard).
                stick_to_shard: Take the same part in every epoch; by default the next one.
                pad_last_batch: Complete a part, and the last batch of an epoch, by repeating the part's last sample. By
                    default the part is completed with the following samples, and the batch with the next epoch's first
                    ones.
                on_error: In a pipeline: policy for a row that fails here: raise, replace or skip; by default what the
                    pipeline's `on_error` says.
                name: Name of the node, shown in errors and by which outputs and readers are found.
                device: Where the operator runs.
                preserve: Run the operator also if its output is not used.
            """
            ...

        @overload
        @staticmethod
        def video(
            *,
            sequence_length: int,
            filenames: Any = None,
            file_root: str | PathLike[str] | None = None,
            file_list: str | PathLike[str] | None = None,
            base: str | None = None,
            labels: Any = None,
            stride: int = 1,
            uniform_sample: bool = False,
            random_crop: bool = False,
            fps: float = 0.0,
            keyframes_only: bool = False,
            size_group: int = 0,
            enable_frame_num: Literal["none", "scalar", "sequence"] = "none",
            enable_timestamps: Literal[True],
            with_audio: bool = False,
            sample_rate: float | None = None,
            downmix: bool = False,
            image_type: ImageType = ImageType.RGB,
            adjust_orientation: bool = True,
            reduction: int = 1,
            initial_fill: int = 1024,
            prefetch_queue_depth: int = 1,
            read_ahead: bool = False,
            skip_cached_images: bool = False,
            dont_use_mmap: bool = False,
            lazy_init: bool = False,
            tensor_init_bytes: int = 1048576,
            step: int = -1,
            pad_mode: Literal["none", "constant", "edge", "reflect_1001", "reflect_101", "repeat", "symmetric", "reflect"] = "none",
            fill_value: Any = (0,),
            file_list_format: Literal["timestamps", "frames"] = "timestamps",
            file_list_rounding: Literal["start_down_end_up", "start_up_end_down", "all_up", "all_down"] = "start_down_end_up",
            file_list_include_end: bool = True,
            random_shuffle: bool = False,
            shuffle_after_epoch: bool = False,
            seed: int | None = None,
            sampler: Any = None,
            num_shards: int | None = None,
            shard_id: int | None = None,
            sharding: Literal["strided", "contiguous"] | None = None,
            stick_to_shard: bool = False,
            pad_last_batch: bool = False,
            on_error: Literal["raise", "replace", "skip"] | None = None,
            name: str | None = None,
            device: Literal["cpu", "gpu", "mixed"] | None = None,
            preserve: bool = False,
            bytes_per_sample_hint: int | Sequence[int] | npt.NDArray[np.generic] = 0,
        ) -> tuple[DataNode, DataNode, DataNode]:
            """Read clips of videos. Outputs: as those of `readers.video`, which describes frames, colors and damage too.

            A line of `file_list` is ``path label [start [end]]``. Clips at the end of a video that lack frames are left out, or
            completed as `pad_mode` says.

            Args:
                filenames: Path of a video, or a list of paths.
                file_root: Folder with one sub-folder per class; with `file_list`, the folder of relative paths.
                file_list: Text file with one "path label [start [end]]" per line.
                base: Folder of relative paths in `file_list`; by default `file_root`, or that of the list. DALI's is
                    the current folder.
                labels: One integer per path of `filenames`; an empty list: the index of the path.
                sequence_length: Number of frames of a clip.
                stride: Distance between consecutive frames of a clip.
                uniform_sample: One clip per file or range, of frames at equal distances from end to end.
                random_crop: One clip per file or range, at a random place, which is another one in every epoch.
                fps: Take the frames that are shown at this rate per second: `sequence_length`, `stride` and `step`
                    count those; 0: all frames.
                keyframes_only: Take key frames only, which need no other frame: `sequence_length`, `stride` and `step`
                    count those.
                size_group: Positions in the order whose clips have frames of one size, for batches of one size without
                    resizing: the batch size times the number of shards. 0: clips of all sizes mix.
                enable_frame_num: Return the number of the first frame ("scalar"), or of all ("sequence").
                enable_timestamps: Return the seconds from the file's first frame to each frame.
                with_audio: Return the audio of each clip too, float32 `(samples, channels)`, and its sampling rate.
                sample_rate: Resample the audio to this rate in Hz; by default each file keeps its own.
                downmix: Return the mean over the audio's channels, without their axis.
                image_type: Channels: types.RGB, BGR, or YCbCr (as stored, in 8 bits).
                adjust_orientation: Turn the frames as the file says that players do.
                reduction: Decode at 1/2, 1/4 or 1/8 of the height and width, which is faster, with 2, 4 or 8, where the
                    codec allows it: MPEG-1, -2 and -4, H.263, FLV, WMV and Motion JPEG.
                initial_fill: No effect: a shuffle is over the whole data set, not over a buffer.
                prefetch_queue_depth: No effect: the pipeline's prefetch_queue_depth holds.
                read_ahead: No effect: rows are prefetched with their batches.
                skip_cached_images: No effect: there is no cache of decoded frames.
                dont_use_mmap: No effect: files are always read, never mapped.
                lazy_init: No effect: the files are indexed when the pipeline is built.
                tensor_init_bytes: No effect: memory is planned.
                step: Distance between the first frames of consecutive clips; -1: `stride * sequence_length`.
                pad_mode: Frames that complete clips at the end: of `fill_value`, the last one, or mirrored ones.
                fill_value: Value of the pixels of constant frames, 0 to 255, or one per channel.
                file_list_format: Meaning of starts and ends: seconds or frames.
                file_list_rounding: Whether a time between two frames means the earlier or the later one.
                file_list_include_end: The end is the last frame of the range, not the one after it.
                random_shuffle: Another order every epoch: a permutation of the whole data set.
                shuffle_after_epoch: Like random_shuffle, over the whole data set: contiguous shards too have other
                    samples every epoch.
                seed: Seed of the order; by default the pipeline's.
                sampler: Samples of an epoch and their order: one of stoker.samplers, a sequence of numbers, or any
                    iterable, such as a torch.utils.data.Sampler.
                num_shards: Number of parts that every epoch is divided into. By default 1, or with the pipeline's
                    `shards="launcher"` the number of processes (WORLD_SIZE).
                shard_id: First part that this pipeline takes; see `stick_to_shard`. By default 0, or with the
                    pipeline's `shards="launcher"` this process's number (RANK).
                sharding: strided: part k is the positions k, k + num_shards, ... of the epoch's order, so that a state
                    restores with another num_shards too. contiguous: as DALI, from floor(k * size / num_shards) on. By
                    default strided, unless parts are both shuffled and kept (random_shuffle with stick_to_shard).
                stick_to_shard: Take the same part in every epoch; by default the next one.
                pad_last_batch: Complete a part, and the last batch of an epoch, by repeating the part's last sample. By
                    default the part is completed with the following samples, and the batch with the next epoch's first
                    ones.
                on_error: In a pipeline: policy for a row that fails here: raise, replace or skip; by default what the
                    pipeline's `on_error` says.
                name: Name of the node, shown in errors and by which outputs and readers are found.
                device: Where the operator runs.
                preserve: Run the operator also if its output is not used.
            """
            ...

class features:
    @staticmethod
    def kaldi_fbank(
        x: Input,
        /,
        *,
        num_mel_bins: int = 23,
        sample_frequency: float = 16000.0,
        frame_length: float = 25.0,
        frame_shift: float = 10.0,
        low_freq: float = 20.0,
        high_freq: float = 0.0,
        window_type: Literal["povey", "hanning", "hamming", "blackman", "rectangular"] = "povey",
        preemphasis_coefficient: float = 0.97,
        remove_dc_offset: bool = True,
        round_to_power_of_two: bool = True,
        snip_edges: bool = True,
        use_log_fbank: bool = True,
        use_power: bool = True,
        name: str | None = None,
        device: Literal["cpu", "gpu", "mixed"] | None = None,
        preserve: bool = False,
        bytes_per_sample_hint: int | Sequence[int] | npt.NDArray[np.generic] = 0,
    ) -> DataNode:
        """Compute Kaldi's log-mel filter bank. Input: float32 ``(n,)`` or ``(n, 1)``. Output: ``(frames, num_mel_bins)``,
        layout tf.

        From each frame its mean is subtracted, then pre-emphasis is applied within the frame, then the window. The filters
        are triangles on Kaldi's mel scale; logarithms are natural. The values are those of
        ``torchaudio.compliance.kaldi.fbank`` without dither, within float32 rounding. Kaldi's own programs take samples of
        16 bits as they are: multiply the signal by 32768 for their values.

        Args:
            num_mel_bins: Number of mel filters, at least 4.
            sample_frequency: Sampling rate of the signal in Hz.
            frame_length: Milliseconds of a frame.
            frame_shift: Milliseconds from one frame to the next.
            low_freq: Lower edge of the first filter in Hz.
            high_freq: Upper edge of the last filter in Hz; up to 0: relative to half of the rate.
            window_type: Window of the frames.
            preemphasis_coefficient: Coefficient of pre-emphasis; 0: none.
            remove_dc_offset: Subtract the mean of each frame.
            round_to_power_of_two: Fill frames up with zeros to a power of two.
            snip_edges: Only frames within the signal; else the signal is mirrored at its ends.
            use_log_fbank: Return logarithms.
            use_power: Sum powers, else magnitudes.
            name: Name of the node, shown in errors and by which outputs and readers are found.
            device: Where the operator runs.
            preserve: Run the operator also if its output is not used.
        """
        ...

    @staticmethod
    def nemo(
        x: Input,
        /,
        *,
        features: int = 80,
        sample_rate: float = 16000.0,
        window_size: float = 0.025,
        window_stride: float = 0.01,
        n_fft: int | None = None,
        preemph: float = 0.97,
        lowfreq: float = 0.0,
        highfreq: float = 0.0,
        normalize: Literal["per_feature", "all_features", "none"] = "per_feature",
        name: str | None = None,
        device: Literal["cpu", "gpu", "mixed"] | None = None,
        preserve: bool = False,
        bytes_per_sample_hint: int | Sequence[int] | npt.NDArray[np.generic] = 0,
    ) -> DataNode:
        """Compute the log-mel spectrogram of NVIDIA NeMo's speech models (Conformer, FastConformer, Parakeet). Input:
        float32 ``(n,)`` or ``(n, 1)``. Output: ``(features, n // step)``, layout ft.

        Pre-emphasis (the sample before the first is 0); powers of frames (a symmetric Hann window, zeros beyond the
        signal); mel filters of Slaney's form; natural logarithms of the sums plus ``2**-24``; and normalization over time:
        ``(x - mean) / (deviation + 1e-5)``, with ``N - 1`` in the deviation. These are the formulas of
        ``AudioToMelSpectrogramPreprocessor`` without dither, and the values of Hugging Face's
        ``ParakeetFeatureExtractor``, within float32 rounding. NeMo's padding to multiples of frames is `pad`.

        Args:
            features: Number of mel filters.
            sample_rate: Sampling rate of the signal in Hz.
            window_size: Seconds of a frame.
            window_stride: Seconds from one frame to the next.
            n_fft: Points of the transform; by default the next power of two.
            preemph: Coefficient of pre-emphasis; 0: none.
            lowfreq: Lower edge of the first filter in Hz.
            highfreq: Upper edge of the last filter in Hz; 0: half of `sample_rate`.
            normalize: Mean and deviation of each feature, of all together, or none.
            name: Name of the node, shown in errors and by which outputs and readers are found.
            device: Where the operator runs.
            preserve: Run the operator also if its output is not used.
        """
        ...

    @staticmethod
    def wav2vec2(
        x: Input,
        /,
        *,
        do_normalize: bool = True,
        max_length: int | None = None,
        padding: Literal["do_not_pad", "max_length"] = "do_not_pad",
        padding_value: float = 0.0,
        mask_padding: bool = False,
        name: str | None = None,
        device: Literal["cpu", "gpu", "mixed"] | None = None,
        preserve: bool = False,
        bytes_per_sample_hint: int | Sequence[int] | npt.NDArray[np.generic] = 0,
    ) -> DataNode:
        """Normalize a signal for Wav2Vec2, HuBERT and WavLM: mean 0 and variance 1. Input: float32 ``(n,)`` or ``(n, 1)``.
        Output: ``(n,)``, or ``(max_length,)`` with padding.

        The values are ``(x - mean) / sqrt(variance + 1e-7)``, those of Hugging Face's ``Wav2Vec2FeatureExtractor``, within
        float32 rounding. Batches of different lengths are padded by ``Loader(ragged="padded")``, which returns the lengths.

        Args:
            do_normalize: Normalize; else only cut and pad.
            max_length: Cut longer signals to this many samples.
            padding: "max_length": fill up signals to `max_length`.
            padding_value: Sample that fills up signals.
            mask_padding: Normalize by the signal alone and keep padding at `padding_value`, as Hugging Face does
                with `return_attention_mask=True`; else the padding counts, and is normalized.
            name: Name of the node, shown in errors and by which outputs and readers are found.
            device: Where the operator runs.
            preserve: Run the operator also if its output is not used.
        """
        ...

    @staticmethod
    def whisper(
        x: Input,
        /,
        *,
        n_mels: int = 80,
        chunk_length: float = 30.0,
        hop_length: int = 160,
        n_fft: int = 400,
        padding: Literal["max_length", "do_not_pad"] = "max_length",
        truncation: bool = True,
        padding_value: float = 0.0,
        do_normalize: bool = False,
        name: str | None = None,
        device: Literal["cpu", "gpu", "mixed"] | None = None,
        preserve: bool = False,
        bytes_per_sample_hint: int | Sequence[int] | npt.NDArray[np.generic] = 0,
    ) -> DataNode:
        """Compute the log-mel spectrogram that Whisper takes. Input: float32 ``(n,)`` or ``(n, 1)`` at 16 kHz. Output:
        ``(n_mels, frames)``, layout ft, 100 frames per second.

        The signal is cut or filled up with zeros to ``chunk_length`` seconds. Powers of 25 ms every 10 ms (a periodic Hann
        window), mel filters of Slaney's form, and decimal logarithms of at least 1e-10 are raised to 8 below the largest
        one, plus 4, divided by 4. The values are those of Hugging Face's ``WhisperFeatureExtractor``, within float32
        rounding. Long recordings take ``truncation=False``, short ones without padding ``padding="do_not_pad"``.

        Args:
            n_mels: Number of mel filters: 80, or 128 for large-v3. Hugging Face: `feature_size`.
            chunk_length: Seconds of the output.
            hop_length: Samples from one frame to the next.
            n_fft: Samples of a frame, and points of the transform.
            padding: Fill up shorter signals ("max_length"), or return the frames of the signal alone.
            truncation: Cut longer signals; else return all their frames.
            padding_value: Sample that fills up signals.
            do_normalize: First normalize the signal, without its padding: mean 0, variance 1.
            name: Name of the node, shown in errors and by which outputs and readers are found.
            device: Where the operator runs.
            preserve: Run the operator also if its output is not used.
        """
        ...

class io:
    class file:
        @staticmethod
        def read(
            path: Input,
            /,
            *,
            dont_use_mmap: bool = False,
            use_o_direct: bool = False,
            name: str | None = None,
            device: Literal["cpu", "gpu", "mixed"] | None = None,
            preserve: bool = False,
            bytes_per_sample_hint: int | Sequence[int] | npt.NDArray[np.generic] = 0,
        ) -> DataNode:
            """Read whole files, or whole objects. Input: a path, or an address (s3://, gs://, az://, https://), as bytes, uint8
            (N,); zeros at its end are ignored. Output: the file's bytes, uint8 (N,).

            A file or object that cannot be read is an error of its row. An object is asked for when its row runs; readers ask
            for objects ahead of the rows.

            Args:
                use_o_direct: Only False: files are read through the page cache.
                name: Name of the node, shown in errors and by which outputs and readers are found.
                device: Where the operator runs.
                preserve: Run the operator also if its output is not used.
            """
            ...

class noise:
    @staticmethod
    def gaussian(
        x: Input,
        /,
        *,
        mean: float | DataNode = 0.0,
        stddev: float | DataNode = 1.0,
        seed: int | None = None,
        name: str | None = None,
        device: Literal["cpu", "gpu", "mixed"] | None = None,
        preserve: bool = False,
        bytes_per_sample_hint: int | Sequence[int] | npt.NDArray[np.generic] = 0,
    ) -> DataNode:
        """Add noise from the normal distribution to every element. Input: numbers of any shape. Output: the same type and
        shape.

        Each element has its own draw, also each channel. A draw depends on the seed, the epoch, the sample and the
        element's place, so that batches, threads and devices change nothing. Sums are float32's, float64's for elements of
        32 bits and more; integers are rounded half to even and saturate. DALI's CPU form rounds halves away from zero.

        Source of the numbers: Box and Muller's method in float32, from 24 random bits each. So no draw is further than 5.77
        standard deviations from the mean.

        Args:
            mean: Mean of the noise.
            stddev: Standard deviation of the noise, at least 0.
            seed: Seed of this operator's draws; by default it follows from the pipeline's.
            name: Name of the node, shown in errors and by which outputs and readers are found.
            device: Where the operator runs.
            preserve: Run the operator also if its output is not used.
        """
        ...

    @staticmethod
    def salt_and_pepper(
        x: Input,
        /,
        *,
        prob: float | DataNode = 0.05,
        salt_vs_pepper: float | DataNode = 0.5,
        per_channel: bool = False,
        salt_val: float | DataNode | None = None,
        pepper_val: float | DataNode | None = None,
        seed: int | None = None,
        name: str | None = None,
        device: Literal["cpu", "gpu", "mixed"] | None = None,
        preserve: bool = False,
        bytes_per_sample_hint: int | Sequence[int] | npt.NDArray[np.generic] = 0,
    ) -> DataNode:
        """Replace random pixels by one of two values. Input: numbers of any shape. Output: the same type and shape.

        All channels of a pixel are replaced together, unless ``per_channel`` is set. Channels are the axis C of the layout;
        an unnamed tensor of three axes is HWC, one of two axes has none. DALI takes the last axis of every unnamed tensor
        for channels, so that it replaces whole rows of an image without channels.

        A draw depends on the seed, the epoch, the sample and the pixel's place.

        Args:
            prob: Probability of a pixel to be replaced.
            salt_vs_pepper: Probability of a replaced pixel to become salt.
            per_channel: Draw for each channel.
            salt_val: Value of salt; by default the type's largest number, 1 for floats.
            pepper_val: Value of pepper; by default the type's smallest number, -1 for floats.
            seed: Seed of this operator's draws; by default it follows from the pipeline's.
            name: Name of the node, shown in errors and by which outputs and readers are found.
            device: Where the operator runs.
            preserve: Run the operator also if its output is not used.
        """
        ...

    @staticmethod
    def shot(
        x: Input,
        /,
        *,
        factor: float | DataNode = 20.0,
        seed: int | None = None,
        name: str | None = None,
        device: Literal["cpu", "gpu", "mixed"] | None = None,
        preserve: bool = False,
        bytes_per_sample_hint: int | Sequence[int] | npt.NDArray[np.generic] = 0,
    ) -> DataNode:
        """Add shot noise: ``factor`` times a number from the Poisson distribution with the mean ``x / factor``. Input:
        numbers of any shape, except 64-bit integers. Output: the same type and shape.

        Numbers below 0 become 0; a ``factor`` of 0 leaves the data as they are. DALI uses 12 if no factor is given,
        although its documentation says 20, and returns zeros for 0. Each element has its own draw, also each channel. A
        draw depends on the seed, the epoch, the sample and the element's place.

        Args:
            factor: Size of an event, at least 0: larger numbers give more noise.
            seed: Seed of this operator's draws; by default it follows from the pipeline's.
            name: Name of the node, shown in errors and by which outputs and readers are found.
            device: Where the operator runs.
            preserve: Run the operator also if its output is not used.
        """
        ...

class random:
    @staticmethod
    def beta(
        *like: Input,
        alpha: float | DataNode = 1.0,
        beta: float | DataNode = 1.0,
        dtype: DTypeLike = DType.FLOAT,
        shape: int | Sequence[int | DataNode] | npt.NDArray[np.generic] | DataNode | None = None,
        seed: int | None = None,
        name: str | None = None,
        device: Literal["cpu", "gpu", "mixed"] | None = None,
        preserve: bool = False,
        bytes_per_sample_hint: int | Sequence[int] | npt.NDArray[np.generic] = 0,
    ) -> DataNode:
        """Draw from the beta distribution: the weights of `mixup`. Output: numbers in [0, 1], a scalar, ``shape`` or the
        input's shape.

        Source: the quotient of two gamma variates, as logarithms, so that small ``alpha`` and ``beta`` do not underflow
        (Marsaglia and Tsang, "A simple method for generating gamma variables", 2000). Computed in double and rounded once.

        Args:
            alpha: First parameter, above 0.
            beta: Second parameter, above 0.
            dtype: Element type of the output, a floating-point type.
            shape: Shape of the output; a scalar if not given.
            seed: Seed of this operator's draws; by default it follows from the pipeline's.
            name: Name of the node, shown in errors and by which outputs and readers are found.
            device: Where the operator runs.
            preserve: Run the operator also if its output is not used.
        """
        ...

    @staticmethod
    def choice(
        a: Input,
        /,
        *like: Input,
        p: float | Sequence[float | DataNode] | npt.NDArray[np.generic] | DataNode | None = None,
        shape: int | Sequence[int | DataNode] | npt.NDArray[np.generic] | DataNode | None = None,
        seed: int | None = None,
        name: str | None = None,
        device: Literal["cpu", "gpu", "mixed"] | None = None,
        preserve: bool = False,
        bytes_per_sample_hint: int | Sequence[int] | npt.NDArray[np.generic] = 0,
    ) -> DataNode:
        """Draw elements along the first axis. Inputs: the elements, or a number n for 0 .. n - 1; optionally a tensor whose
        shape the draws take.

        Output: the elements' type. Without ``shape`` the output is one element, without moving data.

        Args:
            p: Weight of every element, at least 0; they need not add up to 1.
            shape: Shape of the draws; one draw if not given.
            seed: Seed of this operator's draws; by default it follows from the pipeline's.
            name: Name of the node, shown in errors and by which outputs and readers are found.
            device: Where the operator runs.
            preserve: Run the operator also if its output is not used.
        """
        ...

    @staticmethod
    def coin_flip(
        *like: Input,
        probability: float | DataNode = 0.5,
        dtype: DTypeLike = DType.INT32,
        shape: int | Sequence[int | DataNode] | npt.NDArray[np.generic] | DataNode | None = None,
        seed: int | None = None,
        name: str | None = None,
        device: Literal["cpu", "gpu", "mixed"] | None = None,
        preserve: bool = False,
        bytes_per_sample_hint: int | Sequence[int] | npt.NDArray[np.generic] = 0,
    ) -> DataNode:
        """Draw 1 with ``probability``, else 0. Output: a scalar or ``shape``, int32 unless ``dtype`` says else.

        Args:
            probability: Probability of 1, in [0, 1].
            dtype: Element type of the output.
            shape: Shape of the output; a scalar if not given.
            seed: Seed of this operator's draws; by default it follows from the pipeline's.
            name: Name of the node, shown in errors and by which outputs and readers are found.
            device: Where the operator runs.
            preserve: Run the operator also if its output is not used.
        """
        ...

    @staticmethod
    def normal(
        *like: Input,
        mean: float | DataNode = 0.0,
        stddev: float | DataNode = 1.0,
        dtype: DTypeLike | None = None,
        shape: int | Sequence[int | DataNode] | npt.NDArray[np.generic] | DataNode | None = None,
        seed: int | None = None,
        name: str | None = None,
        device: Literal["cpu", "gpu", "mixed"] | None = None,
        preserve: bool = False,
        bytes_per_sample_hint: int | Sequence[int] | npt.NDArray[np.generic] = 0,
    ) -> DataNode:
        """Draw from the normal distribution. Output: a scalar, ``shape`` or the input's shape, float32.

        Source: Box and Muller's method, computed in double and rounded to ``dtype`` once.

        Args:
            mean: Mean.
            stddev: Standard deviation, at least 0.
            dtype: Element type of the output; FLOAT by default.
            shape: Shape of the output; a scalar if not given.
            seed: Seed of this operator's draws; by default it follows from the pipeline's.
            name: Name of the node, shown in errors and by which outputs and readers are found.
            device: Where the operator runs.
            preserve: Run the operator also if its output is not used.
        """
        ...

    @staticmethod
    def uniform(
        *like: Input,
        range: float | Sequence[float | DataNode] | npt.NDArray[np.generic] | DataNode = (-1.0, 1.0),
        values: float | Sequence[float | DataNode] | npt.NDArray[np.generic] | DataNode | None = None,
        dtype: DTypeLike | None = None,
        shape: int | Sequence[int | DataNode] | npt.NDArray[np.generic] | DataNode | None = None,
        seed: int | None = None,
        name: str | None = None,
        device: Literal["cpu", "gpu", "mixed"] | None = None,
        preserve: bool = False,
        bytes_per_sample_hint: int | Sequence[int] | npt.NDArray[np.generic] = 0,
    ) -> DataNode:
        """Draw evenly from ``range``, or one of ``values``. Output: a scalar, ``shape`` or the input's shape, float32.

        A float32 or float64 never reaches the upper end of ``range``. Other types round half to even, as in DALI:
        ``range=[0, 3]`` with ``dtype=INT32`` gives 3 as well, and 0 and 3 half as often as 1 and 2. For integers use
        ``values`` or ``random.choice``.

        Args:
            range: From (inclusive) and to (exclusive).
            values: The numbers to draw from, instead of `range`.
            dtype: Element type of the output; FLOAT by default.
            shape: Shape of the output; a scalar if not given.
            seed: Seed of this operator's draws; by default it follows from the pipeline's.
            name: Name of the node, shown in errors and by which outputs and readers are found.
            device: Where the operator runs.
            preserve: Run the operator also if its output is not used.
        """
        ...

class readers:
    @staticmethod
    def array_record(
        paths: Any,
        *,
        random_shuffle: bool = False,
        shuffle_after_epoch: bool = False,
        seed: int | None = None,
        sampler: Any = None,
        num_shards: int | None = None,
        shard_id: int | None = None,
        sharding: Literal["strided", "contiguous"] | None = None,
        stick_to_shard: bool = False,
        pad_last_batch: bool = False,
        on_error: Literal["raise", "replace", "skip"] | None = None,
        initial_fill: int = 1024,
        prefetch_queue_depth: int = 1,
        read_ahead: bool = False,
        skip_cached_images: bool = False,
        dont_use_mmap: bool = False,
        lazy_init: bool = False,
        tensor_init_bytes: int = 1048576,
        shuffle_after_epoch_seed: int | None = None,
        name: str | None = None,
        device: Literal["cpu", "gpu", "mixed"] | None = None,
        preserve: bool = False,
        bytes_per_sample_hint: int | Sequence[int] | npt.NDArray[np.generic] = 0,
    ) -> DataNode:
        """Read records of ArrayRecord files. Output: the bytes, uint8 ``(N,)``.

        Threads of the pipeline call the library for the rows of the next batches. Write the files with the option
        ``group_size:1``, as the library recommends for random access: of larger groups, a row costs the decoding of its
        whole group.

        Args:
            paths: ArrayRecord file, or a list of files.
            random_shuffle: Another order every epoch: a permutation of the whole data set.
            shuffle_after_epoch: Like random_shuffle, over the whole data set: contiguous shards too have other
                samples every epoch.
            seed: Seed of the order; by default the pipeline's.
            sampler: Samples of an epoch and their order: one of stoker.samplers, a sequence of numbers, or any
                iterable, such as a torch.utils.data.Sampler.
            num_shards: Number of parts that every epoch is divided into. By default 1, or with the pipeline's
                `shards="launcher"` the number of processes (WORLD_SIZE).
            shard_id: First part that this pipeline takes; see `stick_to_shard`. By default 0, or with the
                pipeline's `shards="launcher"` this process's number (RANK).
            sharding: strided: part k is the positions k, k + num_shards, ... of the epoch's order, so that a state
                restores with another num_shards too. contiguous: as DALI, from floor(k * size / num_shards) on. By
                default strided, unless parts are both shuffled and kept (random_shuffle with stick_to_shard).
            stick_to_shard: Take the same part in every epoch; by default the next one.
            pad_last_batch: Complete a part, and the last batch of an epoch, by repeating the part's last sample. By
                default the part is completed with the following samples, and the batch with the next epoch's first
                ones.
            on_error: In a pipeline: policy for a row that fails here: raise, replace or skip; by default what the
                pipeline's `on_error` says.
            initial_fill: No effect: a shuffle is over the whole data set, not over a buffer.
            prefetch_queue_depth: No effect: the pipeline's prefetch_queue_depth holds.
            read_ahead: No effect: rows are prefetched with their batches.
            skip_cached_images: No effect: there is no cache of decoded images.
            dont_use_mmap: No effect: files are always read, never mapped.
            lazy_init: No effect: the index is read when the pipeline is built.
            tensor_init_bytes: No effect: memory is planned.
            shuffle_after_epoch_seed: No effect: `seed` decides the order of shuffled epochs.
            name: Name of the node, shown in errors and by which outputs and readers are found.
            device: Where the operator runs.
            preserve: Run the operator also if its output is not used.
        """
        ...

    @staticmethod
    def audio(
        *,
        sample_rate: float | None = None,
        quality: float = 50.0,
        filter: Literal["exact", "dali"] = "exact",
        downmix: bool = True,
        dtype: DTypeLike = DType.FLOAT,
        file_root: str | PathLike[str] | None = None,
        file_list: str | PathLike[str] | None = None,
        files: Any = None,
        labels: Any = None,
        texts: Any = None,
        extensions: Any = None,
        file_filters: Any = None,
        dir_filters: Any = None,
        case_sensitive_filter: bool = False,
        random_shuffle: bool = False,
        shuffle_after_epoch: bool = False,
        seed: int | None = None,
        sampler: Any = None,
        num_shards: int | None = None,
        shard_id: int | None = None,
        sharding: Literal["strided", "contiguous"] | None = None,
        stick_to_shard: bool = False,
        pad_last_batch: bool = False,
        on_error: Literal["raise", "replace", "skip"] | None = None,
        name: str | None = None,
        device: Literal["cpu", "gpu", "mixed"] | None = None,
        preserve: bool = False,
        bytes_per_sample_hint: int | Sequence[int] | npt.NDArray[np.generic] = 0,
    ) -> tuple[DataNode, DataNode, DataNode]:
        """Read and decode audio files. Outputs: the samples, ``(frames,)`` (or ``(frames, channels)`` without ``downmix``);
        the sampling rate of the file in Hz, float32 without axes; and the label, int32 ``(1,)``, or the text, uint8
        ``(N,)``.

        Every sub-folder of ``file_root`` is a class, as in `readers.file`. A line of ``file_list`` is ``path label``, or
        with a tab ``path<tab>text``; all lines have the same form. ``texts`` go with ``files``. Files are decoded as by
        `decoders.audio`.

        Args:
            sample_rate: Resample to this rate in Hz; by default each file keeps its own.
            quality: Quality of resampling, 0 to 100 (`audio_resample`).
            filter: Filter of resampling (`audio_resample`).
            downmix: Return the mean over the channels, without their axis.
            dtype: Element type of the samples: FLOAT, INT16 or INT32.
            file_root: Folder with one sub-folder per class; the base of relative paths otherwise.
            file_list: Text file with one "path label" or "path<tab>text" per line.
            files: Paths, absolute or relative to file_root.
            labels: One integer per path of `files`; the index of the path if not given.
            texts: One text per path of `files`, in place of `labels`.
            extensions: Extensions of the files to take, with their dot. By default .wav, .flac, .ogg, .opus, .mp3,
                .aif, .aiff, .au, .caf, .w64, .m4a, .m4b, .aac, .mka, .wma, .wv.
            file_filters: Patterns of the names to take, in place of `extensions`.
            dir_filters: Patterns of the class folders to take; by default all.
            case_sensitive_filter: Whether the patterns distinguish upper and lower case.
            random_shuffle: Another order every epoch: a permutation of the whole data set.
            shuffle_after_epoch: Like random_shuffle, over the whole data set: contiguous shards too have other
                samples every epoch.
            seed: Seed of the order; by default the pipeline's.
            sampler: Samples of an epoch and their order: one of stoker.samplers, a sequence of numbers, or any
                iterable, such as a torch.utils.data.Sampler.
            num_shards: Number of parts that every epoch is divided into. By default 1, or with the pipeline's
                `shards="launcher"` the number of processes (WORLD_SIZE).
            shard_id: First part that this pipeline takes; see `stick_to_shard`. By default 0, or with the
                pipeline's `shards="launcher"` this process's number (RANK).
            sharding: strided: part k is the positions k, k + num_shards, ... of the epoch's order, so that a state
                restores with another num_shards too. contiguous: as DALI, from floor(k * size / num_shards) on. By
                default strided, unless parts are both shuffled and kept (random_shuffle with stick_to_shard).
            stick_to_shard: Take the same part in every epoch; by default the next one.
            pad_last_batch: Complete a part, and the last batch of an epoch, by repeating the part's last sample. By
                default the part is completed with the following samples, and the batch with the next epoch's first
                ones.
            on_error: In a pipeline: policy for a row that fails here: raise, replace or skip; by default what the
                pipeline's `on_error` says.
            name: Name of the node, shown in errors and by which outputs and readers are found.
            device: Where the operator runs.
            preserve: Run the operator also if its output is not used.
        """
        ...

    @staticmethod
    def bagz(
        paths: Any,
        *,
        random_shuffle: bool = False,
        shuffle_after_epoch: bool = False,
        seed: int | None = None,
        sampler: Any = None,
        num_shards: int | None = None,
        shard_id: int | None = None,
        sharding: Literal["strided", "contiguous"] | None = None,
        stick_to_shard: bool = False,
        pad_last_batch: bool = False,
        on_error: Literal["raise", "replace", "skip"] | None = None,
        initial_fill: int = 1024,
        prefetch_queue_depth: int = 1,
        read_ahead: bool = False,
        skip_cached_images: bool = False,
        dont_use_mmap: bool = False,
        lazy_init: bool = False,
        tensor_init_bytes: int = 1048576,
        shuffle_after_epoch_seed: int | None = None,
        name: str | None = None,
        device: Literal["cpu", "gpu", "mixed"] | None = None,
        preserve: bool = False,
        bytes_per_sample_hint: int | Sequence[int] | npt.NDArray[np.generic] = 0,
    ) -> DataNode:
        """Read records of Bagz files. Output: the bytes, uint8 ``(N,)``.

        A file has its records one after the other and then their end offsets. Files with compressed records (``.bagz``) are
        refused: write them without compression (``.bag``).

        Args:
            paths: Bagz file, or a list of files; or a manifest (.manifest), which `stoker index --manifest` writes.
            random_shuffle: Another order every epoch: a permutation of the whole data set.
            shuffle_after_epoch: Like random_shuffle, over the whole data set: contiguous shards too have other
                samples every epoch.
            seed: Seed of the order; by default the pipeline's.
            sampler: Samples of an epoch and their order: one of stoker.samplers, a sequence of numbers, or any
                iterable, such as a torch.utils.data.Sampler.
            num_shards: Number of parts that every epoch is divided into. By default 1, or with the pipeline's
                `shards="launcher"` the number of processes (WORLD_SIZE).
            shard_id: First part that this pipeline takes; see `stick_to_shard`. By default 0, or with the
                pipeline's `shards="launcher"` this process's number (RANK).
            sharding: strided: part k is the positions k, k + num_shards, ... of the epoch's order, so that a state
                restores with another num_shards too. contiguous: as DALI, from floor(k * size / num_shards) on. By
                default strided, unless parts are both shuffled and kept (random_shuffle with stick_to_shard).
            stick_to_shard: Take the same part in every epoch; by default the next one.
            pad_last_batch: Complete a part, and the last batch of an epoch, by repeating the part's last sample. By
                default the part is completed with the following samples, and the batch with the next epoch's first
                ones.
            on_error: In a pipeline: policy for a row that fails here: raise, replace or skip; by default what the
                pipeline's `on_error` says.
            initial_fill: No effect: a shuffle is over the whole data set, not over a buffer.
            prefetch_queue_depth: No effect: the pipeline's prefetch_queue_depth holds.
            read_ahead: No effect: rows are prefetched with their batches.
            skip_cached_images: No effect: there is no cache of decoded images.
            dont_use_mmap: No effect: files are always read, never mapped.
            lazy_init: No effect: the index is read when the pipeline is built.
            tensor_init_bytes: No effect: memory is planned.
            shuffle_after_epoch_seed: No effect: `seed` decides the order of shuffled epochs.
            name: Name of the node, shown in errors and by which outputs and readers are found.
            device: Where the operator runs.
            preserve: Run the operator also if its output is not used.
        """
        ...

    @overload
    @staticmethod
    def caffe(
        path: Any,
        *,
        image_available: Literal[True] = True,
        label_available: bool = True,
        random_shuffle: bool = False,
        shuffle_after_epoch: bool = False,
        seed: int | None = None,
        sampler: Any = None,
        num_shards: int | None = None,
        shard_id: int | None = None,
        sharding: Literal["strided", "contiguous"] | None = None,
        stick_to_shard: bool = False,
        pad_last_batch: bool = False,
        on_error: Literal["raise", "replace", "skip"] | None = None,
        initial_fill: int = 1024,
        prefetch_queue_depth: int = 1,
        read_ahead: bool = False,
        skip_cached_images: bool = False,
        dont_use_mmap: bool = False,
        lazy_init: bool = False,
        tensor_init_bytes: int = 1048576,
        shuffle_after_epoch_seed: int | None = None,
        name: str | None = None,
        device: Literal["cpu", "gpu", "mixed"] | None = None,
        preserve: bool = False,
        bytes_per_sample_hint: int | Sequence[int] | npt.NDArray[np.generic] = 0,
    ) -> tuple[DataNode, DataNode]:
        """Read images and labels of LMDB environments that Caffe's tools have written. Outputs: the image, the label.

        An encoded image is uint8 ``(N,)``; pixels are uint8 ``(H, W, C)`` in the order in which they are stored, which is
        channel by channel. The first record decides which of the two all are. The label is int32 ``(1,)``, or has no
        elements if the record lacks it. Records come in the order of their keys as bytes, one environment after the other.

        The values of an environment are found in one pass over its tree, and the result is kept in Stoker's cache folder.
        No other program may write to the environment while it is read.

        Args:
            path: Folder of an LMDB environment, or its data file (.mdb), or a list of them; or addresses.
            image_available: Whether there is an output for images.
            label_available: Whether there is an output for labels.
            random_shuffle: Another order every epoch: a permutation of the whole data set.
            shuffle_after_epoch: Like random_shuffle, over the whole data set: contiguous shards too have other
                samples every epoch.
            seed: Seed of the order; by default the pipeline's.
            sampler: Samples of an epoch and their order: one of stoker.samplers, a sequence of numbers, or any
                iterable, such as a torch.utils.data.Sampler.
            num_shards: Number of parts that every epoch is divided into. By default 1, or with the pipeline's
                `shards="launcher"` the number of processes (WORLD_SIZE).
            shard_id: First part that this pipeline takes; see `stick_to_shard`. By default 0, or with the
                pipeline's `shards="launcher"` this process's number (RANK).
            sharding: strided: part k is the positions k, k + num_shards, ... of the epoch's order, so that a state
                restores with another num_shards too. contiguous: as DALI, from floor(k * size / num_shards) on. By
                default strided, unless parts are both shuffled and kept (random_shuffle with stick_to_shard).
            stick_to_shard: Take the same part in every epoch; by default the next one.
            pad_last_batch: Complete a part, and the last batch of an epoch, by repeating the part's last sample. By
                default the part is completed with the following samples, and the batch with the next epoch's first
                ones.
            on_error: In a pipeline: policy for a row that fails here: raise, replace or skip; by default what the
                pipeline's `on_error` says.
            initial_fill: No effect: a shuffle is over the whole data set, not over a buffer.
            prefetch_queue_depth: No effect: the pipeline's prefetch_queue_depth holds.
            read_ahead: No effect: rows are prefetched with their batches.
            skip_cached_images: No effect: there is no cache of decoded images.
            dont_use_mmap: No effect: files are always read, never mapped.
            lazy_init: No effect: the index is read when the pipeline is built.
            tensor_init_bytes: No effect: memory is planned.
            shuffle_after_epoch_seed: No effect: `seed` decides the order of shuffled epochs.
            name: Name of the node, shown in errors and by which outputs and readers are found.
            device: Where the operator runs.
            preserve: Run the operator also if its output is not used.
        """
        ...

    @overload
    @staticmethod
    def caffe(
        path: Any,
        *,
        image_available: Literal[False],
        label_available: bool = True,
        random_shuffle: bool = False,
        shuffle_after_epoch: bool = False,
        seed: int | None = None,
        sampler: Any = None,
        num_shards: int | None = None,
        shard_id: int | None = None,
        sharding: Literal["strided", "contiguous"] | None = None,
        stick_to_shard: bool = False,
        pad_last_batch: bool = False,
        on_error: Literal["raise", "replace", "skip"] | None = None,
        initial_fill: int = 1024,
        prefetch_queue_depth: int = 1,
        read_ahead: bool = False,
        skip_cached_images: bool = False,
        dont_use_mmap: bool = False,
        lazy_init: bool = False,
        tensor_init_bytes: int = 1048576,
        shuffle_after_epoch_seed: int | None = None,
        name: str | None = None,
        device: Literal["cpu", "gpu", "mixed"] | None = None,
        preserve: bool = False,
        bytes_per_sample_hint: int | Sequence[int] | npt.NDArray[np.generic] = 0,
    ) -> DataNode:
        """Read images and labels of LMDB environments that Caffe's tools have written. Outputs: the image, the label.

        An encoded image is uint8 ``(N,)``; pixels are uint8 ``(H, W, C)`` in the order in which they are stored, which is
        channel by channel. The first record decides which of the two all are. The label is int32 ``(1,)``, or has no
        elements if the record lacks it. Records come in the order of their keys as bytes, one environment after the other.

        The values of an environment are found in one pass over its tree, and the result is kept in Stoker's cache folder.
        No other program may write to the environment while it is read.

        Args:
            path: Folder of an LMDB environment, or its data file (.mdb), or a list of them; or addresses.
            image_available: Whether there is an output for images.
            label_available: Whether there is an output for labels.
            random_shuffle: Another order every epoch: a permutation of the whole data set.
            shuffle_after_epoch: Like random_shuffle, over the whole data set: contiguous shards too have other
                samples every epoch.
            seed: Seed of the order; by default the pipeline's.
            sampler: Samples of an epoch and their order: one of stoker.samplers, a sequence of numbers, or any
                iterable, such as a torch.utils.data.Sampler.
            num_shards: Number of parts that every epoch is divided into. By default 1, or with the pipeline's
                `shards="launcher"` the number of processes (WORLD_SIZE).
            shard_id: First part that this pipeline takes; see `stick_to_shard`. By default 0, or with the
                pipeline's `shards="launcher"` this process's number (RANK).
            sharding: strided: part k is the positions k, k + num_shards, ... of the epoch's order, so that a state
                restores with another num_shards too. contiguous: as DALI, from floor(k * size / num_shards) on. By
                default strided, unless parts are both shuffled and kept (random_shuffle with stick_to_shard).
            stick_to_shard: Take the same part in every epoch; by default the next one.
            pad_last_batch: Complete a part, and the last batch of an epoch, by repeating the part's last sample. By
                default the part is completed with the following samples, and the batch with the next epoch's first
                ones.
            on_error: In a pipeline: policy for a row that fails here: raise, replace or skip; by default what the
                pipeline's `on_error` says.
            initial_fill: No effect: a shuffle is over the whole data set, not over a buffer.
            prefetch_queue_depth: No effect: the pipeline's prefetch_queue_depth holds.
            read_ahead: No effect: rows are prefetched with their batches.
            skip_cached_images: No effect: there is no cache of decoded images.
            dont_use_mmap: No effect: files are always read, never mapped.
            lazy_init: No effect: the index is read when the pipeline is built.
            tensor_init_bytes: No effect: memory is planned.
            shuffle_after_epoch_seed: No effect: `seed` decides the order of shuffled epochs.
            name: Name of the node, shown in errors and by which outputs and readers are found.
            device: Where the operator runs.
            preserve: Run the operator also if its output is not used.
        """
        ...

    @overload
    @staticmethod
    def caffe2(
        path: Any,
        *,
        num_labels: int = 1,
        label_type: int = 0,
        image_available: Literal[True] = True,
        additional_inputs: int = 0,
        bbox: bool = False,
        random_shuffle: bool = False,
        shuffle_after_epoch: bool = False,
        seed: int | None = None,
        sampler: Any = None,
        num_shards: int | None = None,
        shard_id: int | None = None,
        sharding: Literal["strided", "contiguous"] | None = None,
        stick_to_shard: bool = False,
        pad_last_batch: bool = False,
        on_error: Literal["raise", "replace", "skip"] | None = None,
        initial_fill: int = 1024,
        prefetch_queue_depth: int = 1,
        read_ahead: bool = False,
        skip_cached_images: bool = False,
        dont_use_mmap: bool = False,
        lazy_init: bool = False,
        tensor_init_bytes: int = 1048576,
        shuffle_after_epoch_seed: int | None = None,
        name: str | None = None,
        device: Literal["cpu", "gpu", "mixed"] | None = None,
        preserve: bool = False,
        bytes_per_sample_hint: int | Sequence[int] | npt.NDArray[np.generic] = 0,
    ) -> tuple[DataNode, DataNode]:
        """Read tensors of LMDB environments that Caffe2's tools have written. Outputs: image, label, other tensors.

        A record is a list of tensors: the image, the label (with weights for `label_type` 3), `additional_inputs` others,
        and a box. An encoded image is uint8 ``(N,)``; pixels are uint8 ``(H, W, C)``. The first record decides which of the
        two all are, and the types and axes of the other tensors.

        The label is ``(1,)`` for `label_type` 0. For 1 it is ``(num_labels,)`` in the type of the stored indices, with ones
        at the indices. For 2 it is the tensor as stored. For 3 it is float32 ``(num_labels,)``, with the weights at the
        indices. For 4 there is none. Records come in the order of their keys as bytes, one environment after the other.

        Args:
            path: Folder of an LMDB environment, or its data file (.mdb), or a list of them; or addresses.
            num_labels: Number of classes, at most 16777216, for `label_type` 1 and 3.
            label_type: 0: one label; 1: indices of labels; 2: a tensor; 3: indices and weights; 4: none.
            image_available: Whether records begin with an image.
            additional_inputs: Number of other tensors after the label.
            bbox: Whether records end with a box, int32 ``(4,)``.
            random_shuffle: Another order every epoch: a permutation of the whole data set.
            shuffle_after_epoch: Like random_shuffle, over the whole data set: contiguous shards too have other
                samples every epoch.
            seed: Seed of the order; by default the pipeline's.
            sampler: Samples of an epoch and their order: one of stoker.samplers, a sequence of numbers, or any
                iterable, such as a torch.utils.data.Sampler.
            num_shards: Number of parts that every epoch is divided into. By default 1, or with the pipeline's
                `shards="launcher"` the number of processes (WORLD_SIZE).
            shard_id: First part that this pipeline takes; see `stick_to_shard`. By default 0, or with the
                pipeline's `shards="launcher"` this process's number (RANK).
            sharding: strided: part k is the positions k, k + num_shards, ... of the epoch's order, so that a state
                restores with another num_shards too. contiguous: as DALI, from floor(k * size / num_shards) on. By
                default strided, unless parts are both shuffled and kept (random_shuffle with stick_to_shard).
            stick_to_shard: Take the same part in every epoch; by default the next one.
            pad_last_batch: Complete a part, and the last batch of an epoch, by repeating the part's last sample. By
                default the part is completed with the following samples, and the batch with the next epoch's first
                ones.
            on_error: In a pipeline: policy for a row that fails here: raise, replace or skip; by default what the
                pipeline's `on_error` says.
            initial_fill: No effect: a shuffle is over the whole data set, not over a buffer.
            prefetch_queue_depth: No effect: the pipeline's prefetch_queue_depth holds.
            read_ahead: No effect: rows are prefetched with their batches.
            skip_cached_images: No effect: there is no cache of decoded images.
            dont_use_mmap: No effect: files are always read, never mapped.
            lazy_init: No effect: the index is read when the pipeline is built.
            tensor_init_bytes: No effect: memory is planned.
            shuffle_after_epoch_seed: No effect: `seed` decides the order of shuffled epochs.
            name: Name of the node, shown in errors and by which outputs and readers are found.
            device: Where the operator runs.
            preserve: Run the operator also if its output is not used.
        """
        ...

    @overload
    @staticmethod
    def caffe2(
        path: Any,
        *,
        num_labels: int = 1,
        label_type: int = 0,
        image_available: Literal[False],
        additional_inputs: int = 0,
        bbox: bool = False,
        random_shuffle: bool = False,
        shuffle_after_epoch: bool = False,
        seed: int | None = None,
        sampler: Any = None,
        num_shards: int | None = None,
        shard_id: int | None = None,
        sharding: Literal["strided", "contiguous"] | None = None,
        stick_to_shard: bool = False,
        pad_last_batch: bool = False,
        on_error: Literal["raise", "replace", "skip"] | None = None,
        initial_fill: int = 1024,
        prefetch_queue_depth: int = 1,
        read_ahead: bool = False,
        skip_cached_images: bool = False,
        dont_use_mmap: bool = False,
        lazy_init: bool = False,
        tensor_init_bytes: int = 1048576,
        shuffle_after_epoch_seed: int | None = None,
        name: str | None = None,
        device: Literal["cpu", "gpu", "mixed"] | None = None,
        preserve: bool = False,
        bytes_per_sample_hint: int | Sequence[int] | npt.NDArray[np.generic] = 0,
    ) -> DataNode:
        """Read tensors of LMDB environments that Caffe2's tools have written. Outputs: image, label, other tensors.

        A record is a list of tensors: the image, the label (with weights for `label_type` 3), `additional_inputs` others,
        and a box. An encoded image is uint8 ``(N,)``; pixels are uint8 ``(H, W, C)``. The first record decides which of the
        two all are, and the types and axes of the other tensors.

        The label is ``(1,)`` for `label_type` 0. For 1 it is ``(num_labels,)`` in the type of the stored indices, with ones
        at the indices. For 2 it is the tensor as stored. For 3 it is float32 ``(num_labels,)``, with the weights at the
        indices. For 4 there is none. Records come in the order of their keys as bytes, one environment after the other.

        Args:
            path: Folder of an LMDB environment, or its data file (.mdb), or a list of them; or addresses.
            num_labels: Number of classes, at most 16777216, for `label_type` 1 and 3.
            label_type: 0: one label; 1: indices of labels; 2: a tensor; 3: indices and weights; 4: none.
            image_available: Whether records begin with an image.
            additional_inputs: Number of other tensors after the label.
            bbox: Whether records end with a box, int32 ``(4,)``.
            random_shuffle: Another order every epoch: a permutation of the whole data set.
            shuffle_after_epoch: Like random_shuffle, over the whole data set: contiguous shards too have other
                samples every epoch.
            seed: Seed of the order; by default the pipeline's.
            sampler: Samples of an epoch and their order: one of stoker.samplers, a sequence of numbers, or any
                iterable, such as a torch.utils.data.Sampler.
            num_shards: Number of parts that every epoch is divided into. By default 1, or with the pipeline's
                `shards="launcher"` the number of processes (WORLD_SIZE).
            shard_id: First part that this pipeline takes; see `stick_to_shard`. By default 0, or with the
                pipeline's `shards="launcher"` this process's number (RANK).
            sharding: strided: part k is the positions k, k + num_shards, ... of the epoch's order, so that a state
                restores with another num_shards too. contiguous: as DALI, from floor(k * size / num_shards) on. By
                default strided, unless parts are both shuffled and kept (random_shuffle with stick_to_shard).
            stick_to_shard: Take the same part in every epoch; by default the next one.
            pad_last_batch: Complete a part, and the last batch of an epoch, by repeating the part's last sample. By
                default the part is completed with the following samples, and the batch with the next epoch's first
                ones.
            on_error: In a pipeline: policy for a row that fails here: raise, replace or skip; by default what the
                pipeline's `on_error` says.
            initial_fill: No effect: a shuffle is over the whole data set, not over a buffer.
            prefetch_queue_depth: No effect: the pipeline's prefetch_queue_depth holds.
            read_ahead: No effect: rows are prefetched with their batches.
            skip_cached_images: No effect: there is no cache of decoded images.
            dont_use_mmap: No effect: files are always read, never mapped.
            lazy_init: No effect: the index is read when the pipeline is built.
            tensor_init_bytes: No effect: memory is planned.
            shuffle_after_epoch_seed: No effect: `seed` decides the order of shuffled epochs.
            name: Name of the node, shown in errors and by which outputs and readers are found.
            device: Where the operator runs.
            preserve: Run the operator also if its output is not used.
        """
        ...

    @overload
    @staticmethod
    def coco(
        file_root: str | PathLike[str] | None = None,
        annotations_file: str | PathLike[str] = "",
        *,
        images: Any = None,
        ltrb: bool = False,
        ratio: bool = False,
        avoid_class_remapping: bool = False,
        include_iscrowd: bool = True,
        size_threshold: float = 0.1,
        skip_empty: bool = False,
        polygon_masks: Literal[False] = False,
        masks: bool = False,
        pixelwise_masks: bool = False,
        image_ids: bool = False,
        save_img_ids: bool = False,
        preprocessed_annotations: str = "",
        save_preprocessed_annotations: bool = False,
        save_preprocessed_annotations_dir: str = "",
        meta_files_path: str | PathLike[str] = "",
        dump_meta_files: bool = False,
        dump_meta_files_path: str | PathLike[str] = "",
        random_shuffle: bool = False,
        shuffle_after_epoch: bool = False,
        seed: int | None = None,
        sampler: Any = None,
        num_shards: int | None = None,
        shard_id: int | None = None,
        sharding: Literal["strided", "contiguous"] | None = None,
        stick_to_shard: bool = False,
        pad_last_batch: bool = False,
        on_error: Literal["raise", "replace", "skip"] | None = None,
        initial_fill: int = 1024,
        prefetch_queue_depth: int = 1,
        read_ahead: bool = False,
        skip_cached_images: bool = False,
        dont_use_mmap: bool = False,
        lazy_init: bool = False,
        tensor_init_bytes: int = 1048576,
        shuffle_after_epoch_seed: int | None = None,
        origin: bool = False,
        name: str | None = None,
        device: Literal["cpu", "gpu", "mixed"] | None = None,
        preserve: bool = False,
        bytes_per_sample_hint: int | Sequence[int] | npt.NDArray[np.generic] = 0,
    ) -> tuple[DataNode, DataNode, DataNode]:
        """Read images with the annotations of a file in COCO's form. Outputs: bytes of the image, boxes, labels.

        Boxes are float32 ``(M, 4)``: x, y, width, height, or with `ltrb` left, top, right, bottom. Labels are int32
        ``(M,)``: the position of the category in the file, from 1 on, or with `avoid_class_remapping` its number. Further
        outputs, in this order:

        * `polygon_masks`: polygons, int32 ``(P, 3)``, with the annotation of each polygon in the sample and its first and
          end vertex; vertices, float32 ``(V, 2)``. Run lengths (crowds) have no polygons.
        * `pixelwise_masks`: int32 ``(H, W, 1)``, the label of each pixel, 0 outside of all objects. The largest label of
          overlapping objects holds. The pixels are those of pycocotools.
        * `image_ids`: number of the image, int32 ``(1,)``.

        Samples come in the order of the images' numbers, or in that of `images`. A file without `annotations` gives images
        without boxes. A faulty `segmentation`, as one of another size than its image, matters only to readers that return
        shapes, and the size of an image only to `ratio` and `pixelwise_masks`. The annotation file is parsed once, and its
        contents are kept in Stoker's cache folder.

        Args:
            file_root: Folder of the images, or its address in a store or on a server.
            annotations_file: Annotation file, JSON, or its address.
            images: Names of the images to take, as in the annotation file, in this order. By default all, in the
                order of their numbers.
            ltrb: Boxes as left, top, right, bottom.
            ratio: Boxes and vertices as shares of the image's width and height.
            avoid_class_remapping: Labels are the numbers of the categories.
            include_iscrowd: Whether annotations with `iscrowd` are taken.
            size_threshold: Annotations whose box is narrower or lower, in pixels, are left out.
            skip_empty: Leave out images without annotations.
            polygon_masks: Outputs for polygons and their vertices.
            masks: As `polygon_masks`, but with positions of coordinates instead of vertices, also with both.
            pixelwise_masks: Output for a mask of labels.
            image_ids: Output for the number of the image.
            save_img_ids: Old name of `image_ids`.
            preprocessed_annotations: Refused: parsed annotations are kept in Stoker's cache folder.
            save_preprocessed_annotations: No effect: parsed annotations are kept automatically.
            save_preprocessed_annotations_dir: No effect: STOKER_INDEX_CACHE names the folder.
            meta_files_path: Old name of `preprocessed_annotations`.
            dump_meta_files: Old name of `save_preprocessed_annotations`.
            dump_meta_files_path: Old name of `save_preprocessed_annotations_dir`.
            random_shuffle: Another order every epoch: a permutation of the whole data set.
            shuffle_after_epoch: Like random_shuffle, over the whole data set: contiguous shards too have other
                samples every epoch.
            seed: Seed of the order; by default the pipeline's.
            sampler: Samples of an epoch and their order: one of stoker.samplers, a sequence of numbers, or any
                iterable, such as a torch.utils.data.Sampler.
            num_shards: Number of parts that every epoch is divided into. By default 1, or with the pipeline's
                `shards="launcher"` the number of processes (WORLD_SIZE).
            shard_id: First part that this pipeline takes; see `stick_to_shard`. By default 0, or with the
                pipeline's `shards="launcher"` this process's number (RANK).
            sharding: strided: part k is the positions k, k + num_shards, ... of the epoch's order, so that a state
                restores with another num_shards too. contiguous: as DALI, from floor(k * size / num_shards) on. By
                default strided, unless parts are both shuffled and kept (random_shuffle with stick_to_shard).
            stick_to_shard: Take the same part in every epoch; by default the next one.
            pad_last_batch: Complete a part, and the last batch of an epoch, by repeating the part's last sample. By
                default the part is completed with the following samples, and the batch with the next epoch's first
                ones.
            on_error: In a pipeline: policy for a row that fails here: raise, replace or skip; by default what the
                pipeline's `on_error` says.
            initial_fill: No effect: a shuffle is over the whole data set, not over a buffer.
            prefetch_queue_depth: No effect: the pipeline's prefetch_queue_depth holds.
            read_ahead: No effect: rows are prefetched with their batches.
            skip_cached_images: No effect: there is no cache of decoded images.
            dont_use_mmap: No effect: files are always read, never mapped.
            lazy_init: No effect: the index is read when the pipeline is built.
            tensor_init_bytes: No effect: memory is planned.
            shuffle_after_epoch_seed: No effect: `seed` decides the order of shuffled epochs.
            origin: Add a last output: the path of the sample's file as UTF-8, uint8 `(N,)`, in a container followed
                by ` at byte N`. `fn.get_property(x, key="source_info")` does so too.
            name: Name of the node, shown in errors and by which outputs and readers are found.
            device: Where the operator runs.
            preserve: Run the operator also if its output is not used.
        """
        ...

    @overload
    @staticmethod
    def coco(
        file_root: str | PathLike[str] | None = None,
        annotations_file: str | PathLike[str] = "",
        *,
        images: Any = None,
        ltrb: bool = False,
        ratio: bool = False,
        avoid_class_remapping: bool = False,
        include_iscrowd: bool = True,
        size_threshold: float = 0.1,
        skip_empty: bool = False,
        polygon_masks: Literal[True],
        masks: bool = False,
        pixelwise_masks: bool = False,
        image_ids: bool = False,
        save_img_ids: bool = False,
        preprocessed_annotations: str = "",
        save_preprocessed_annotations: bool = False,
        save_preprocessed_annotations_dir: str = "",
        meta_files_path: str | PathLike[str] = "",
        dump_meta_files: bool = False,
        dump_meta_files_path: str | PathLike[str] = "",
        random_shuffle: bool = False,
        shuffle_after_epoch: bool = False,
        seed: int | None = None,
        sampler: Any = None,
        num_shards: int | None = None,
        shard_id: int | None = None,
        sharding: Literal["strided", "contiguous"] | None = None,
        stick_to_shard: bool = False,
        pad_last_batch: bool = False,
        on_error: Literal["raise", "replace", "skip"] | None = None,
        initial_fill: int = 1024,
        prefetch_queue_depth: int = 1,
        read_ahead: bool = False,
        skip_cached_images: bool = False,
        dont_use_mmap: bool = False,
        lazy_init: bool = False,
        tensor_init_bytes: int = 1048576,
        shuffle_after_epoch_seed: int | None = None,
        origin: bool = False,
        name: str | None = None,
        device: Literal["cpu", "gpu", "mixed"] | None = None,
        preserve: bool = False,
        bytes_per_sample_hint: int | Sequence[int] | npt.NDArray[np.generic] = 0,
    ) -> tuple[DataNode, DataNode, DataNode, DataNode, DataNode]:
        """Read images with the annotations of a file in COCO's form. Outputs: bytes of the image, boxes, labels.

        Boxes are float32 ``(M, 4)``: x, y, width, height, or with `ltrb` left, top, right, bottom. Labels are int32
        ``(M,)``: the position of the category in the file, from 1 on, or with `avoid_class_remapping` its number. Further
        outputs, in this order:

        * `polygon_masks`: polygons, int32 ``(P, 3)``, with the annotation of each polygon in the sample and its first and
          end vertex; vertices, float32 ``(V, 2)``. Run lengths (crowds) have no polygons.
        * `pixelwise_masks`: int32 ``(H, W, 1)``, the label of each pixel, 0 outside of all objects. The largest label of
          overlapping objects holds. The pixels are those of pycocotools.
        * `image_ids`: number of the image, int32 ``(1,)``.

        Samples come in the order of the images' numbers, or in that of `images`. A file without `annotations` gives images
        without boxes. A faulty `segmentation`, as one of another size than its image, matters only to readers that return
        shapes, and the size of an image only to `ratio` and `pixelwise_masks`. The annotation file is parsed once, and its
        contents are kept in Stoker's cache folder.

        Args:
            file_root: Folder of the images, or its address in a store or on a server.
            annotations_file: Annotation file, JSON, or its address.
            images: Names of the images to take, as in the annotation file, in this order. By default all, in the
                order of their numbers.
            ltrb: Boxes as left, top, right, bottom.
            ratio: Boxes and vertices as shares of the image's width and height.
            avoid_class_remapping: Labels are the numbers of the categories.
            include_iscrowd: Whether annotations with `iscrowd` are taken.
            size_threshold: Annotations whose box is narrower or lower, in pixels, are left out.
            skip_empty: Leave out images without annotations.
            polygon_masks: Outputs for polygons and their vertices.
            masks: As `polygon_masks`, but with positions of coordinates instead of vertices, also with both.
            pixelwise_masks: Output for a mask of labels.
            image_ids: Output for the number of the image.
            save_img_ids: Old name of `image_ids`.
            preprocessed_annotations: Refused: parsed annotations are kept in Stoker's cache folder.
            save_preprocessed_annotations: No effect: parsed annotations are kept automatically.
            save_preprocessed_annotations_dir: No effect: STOKER_INDEX_CACHE names the folder.
            meta_files_path: Old name of `preprocessed_annotations`.
            dump_meta_files: Old name of `save_preprocessed_annotations`.
            dump_meta_files_path: Old name of `save_preprocessed_annotations_dir`.
            random_shuffle: Another order every epoch: a permutation of the whole data set.
            shuffle_after_epoch: Like random_shuffle, over the whole data set: contiguous shards too have other
                samples every epoch.
            seed: Seed of the order; by default the pipeline's.
            sampler: Samples of an epoch and their order: one of stoker.samplers, a sequence of numbers, or any
                iterable, such as a torch.utils.data.Sampler.
            num_shards: Number of parts that every epoch is divided into. By default 1, or with the pipeline's
                `shards="launcher"` the number of processes (WORLD_SIZE).
            shard_id: First part that this pipeline takes; see `stick_to_shard`. By default 0, or with the
                pipeline's `shards="launcher"` this process's number (RANK).
            sharding: strided: part k is the positions k, k + num_shards, ... of the epoch's order, so that a state
                restores with another num_shards too. contiguous: as DALI, from floor(k * size / num_shards) on. By
                default strided, unless parts are both shuffled and kept (random_shuffle with stick_to_shard).
            stick_to_shard: Take the same part in every epoch; by default the next one.
            pad_last_batch: Complete a part, and the last batch of an epoch, by repeating the part's last sample. By
                default the part is completed with the following samples, and the batch with the next epoch's first
                ones.
            on_error: In a pipeline: policy for a row that fails here: raise, replace or skip; by default what the
                pipeline's `on_error` says.
            initial_fill: No effect: a shuffle is over the whole data set, not over a buffer.
            prefetch_queue_depth: No effect: the pipeline's prefetch_queue_depth holds.
            read_ahead: No effect: rows are prefetched with their batches.
            skip_cached_images: No effect: there is no cache of decoded images.
            dont_use_mmap: No effect: files are always read, never mapped.
            lazy_init: No effect: the index is read when the pipeline is built.
            tensor_init_bytes: No effect: memory is planned.
            shuffle_after_epoch_seed: No effect: `seed` decides the order of shuffled epochs.
            origin: Add a last output: the path of the sample's file as UTF-8, uint8 `(N,)`, in a container followed
                by ` at byte N`. `fn.get_property(x, key="source_info")` does so too.
            name: Name of the node, shown in errors and by which outputs and readers are found.
            device: Where the operator runs.
            preserve: Run the operator also if its output is not used.
        """
        ...

    @staticmethod
    def concat(
        parts: Any,
        *,
        label_offsets: Any = None,
        seed: int | None = None,
        num_shards: int | None = None,
        shard_id: int | None = None,
        sharding: Literal["strided", "contiguous"] | None = None,
        stick_to_shard: bool = False,
        pad_last_batch: bool = False,
        on_error: Literal["raise", "replace", "skip"] | None = None,
        random_shuffle: bool = False,
        sampler: Any = None,
        name: str | None = None,
        device: Literal["cpu", "gpu", "mixed"] | None = None,
        preserve: bool = False,
        bytes_per_sample_hint: int | Sequence[int] | npt.NDArray[np.generic] = 0,
    ) -> tuple[DataNode, DataNode, DataNode]:
        """Read the samples of several readers as one data set: those of the first, then those of the second, and so on.

        Usage: ``fn.readers.concat([a, b])`` with the outputs of ``fn.readers.file``. Outputs: the bytes, uint8 ``(N,)``,
        the label, int32 ``(1,)``, and the number of the sample's part, int32 ``(1,)``. An epoch has every sample that an
        epoch of each part has, in the parts' own orders; with ``random_shuffle`` a permutation of all of them.

        Args:
            parts: Outputs of the readers to join, in a list; at least one.
            label_offsets: Offsets for the labels of each part: a list of numbers, or "disjoint" for labels that
                begin after those of the previous part; by default none.
            seed: Seed of the orders; by default the pipeline's. A part's own `seed` stays.
            num_shards: Number of parts that every epoch is divided into. By default 1, or with the pipeline's
                `shards="launcher"` the number of processes (WORLD_SIZE).
            shard_id: First part that this pipeline takes; see `stick_to_shard`. By default 0, or with the
                pipeline's `shards="launcher"` this process's number (RANK).
            sharding: strided: part k is the positions k, k + num_shards, ... of the epoch's order, so that a state
                restores with another num_shards too. contiguous: as DALI, from floor(k * size / num_shards) on. By
                default strided, unless parts are both shuffled and kept (random_shuffle with stick_to_shard).
            stick_to_shard: Take the same part in every epoch; by default the next one.
            pad_last_batch: Complete a part, and the last batch of an epoch, by repeating the part's last sample. By
                default the part is completed with the following samples, and the batch with the next epoch's first
                ones.
            on_error: In a pipeline: policy for a row that fails here: raise, replace or skip; by default what the
                pipeline's `on_error` says.
            random_shuffle: Another order every epoch: a permutation of all parts' samples together.
            sampler: Samples of an epoch, as indices into all parts together; as for `readers.file`.
            name: Name of the node, shown in errors and by which outputs and readers are found.
            device: Where the operator runs.
            preserve: Run the operator also if its output is not used.
        """
        ...

    @overload
    @staticmethod
    def dataset(
        source: Any,
        *,
        num_outputs: Literal[1] = 1,
        columns: Any = None,
        random_shuffle: bool = False,
        shuffle_after_epoch: bool = False,
        seed: int | None = None,
        sampler: Any = None,
        num_shards: int | None = None,
        shard_id: int | None = None,
        sharding: Literal["strided", "contiguous"] | None = None,
        stick_to_shard: bool = False,
        pad_last_batch: bool = False,
        on_error: Literal["raise", "replace", "skip"] | None = None,
        name: str | None = None,
        device: Literal["cpu", "gpu", "mixed"] | None = None,
        preserve: bool = False,
        bytes_per_sample_hint: int | Sequence[int] | npt.NDArray[np.generic] = 0,
    ) -> DataNode:
        """Take samples from a map-style data set, such as a ``torch.utils.data.Dataset``, in worker processes.

        The pipeline's worker processes (``py_num_workers``, ``py_start_method``) call ``source[index]`` for the rows of the
        next batches, and the values return in shared memory. The order of samples, shards and states are those of all
        readers, for any number of processes: give `sampler` in place of a DataLoader's one.

        A sample is a tuple of `num_outputs` values, or a dict with the keys `columns`. In the latter case the outputs are
        a dict. A value is an array, a tensor, a Pillow image, a number, a text (UTF-8) or bytes. The values of the first
        batch decide the types. A sample that raises an exception is a bad sample, for which `on_error` holds. So is one
        whose process dies; another process replaces that one.

        Random numbers that the data set draws itself are its own: each process seeds the generators of Python, NumPy and
        torch differently, and a state does not restore them. Draw with Stoker's operators to have the same numbers again.

        Args:
            source: Object with `__getitem__` for whole numbers and `__len__`.
            num_outputs: Number of values of a sample.
            columns: Keys of the values, for samples that are dicts; in place of `num_outputs`.
            random_shuffle: Another order every epoch: a permutation of the whole data set.
            shuffle_after_epoch: Like random_shuffle, over the whole data set: contiguous shards too have other
                samples every epoch.
            seed: Seed of the order; by default the pipeline's.
            sampler: Samples of an epoch and their order: one of stoker.samplers, a sequence of numbers, or any
                iterable, such as a torch.utils.data.Sampler.
            num_shards: Number of parts that every epoch is divided into. By default 1, or with the pipeline's
                `shards="launcher"` the number of processes (WORLD_SIZE).
            shard_id: First part that this pipeline takes; see `stick_to_shard`. By default 0, or with the
                pipeline's `shards="launcher"` this process's number (RANK).
            sharding: strided: part k is the positions k, k + num_shards, ... of the epoch's order, so that a state
                restores with another num_shards too. contiguous: as DALI, from floor(k * size / num_shards) on. By
                default strided, unless parts are both shuffled and kept (random_shuffle with stick_to_shard).
            stick_to_shard: Take the same part in every epoch; by default the next one.
            pad_last_batch: Complete a part, and the last batch of an epoch, by repeating the part's last sample. By
                default the part is completed with the following samples, and the batch with the next epoch's first
                ones.
            on_error: In a pipeline: policy for a row that fails here: raise, replace or skip; by default what the
                pipeline's `on_error` says.
            name: Name of the node, shown in errors and by which outputs and readers are found.
            device: Where the operator runs.
            preserve: Run the operator also if its output is not used.
        """
        ...

    @overload
    @staticmethod
    def dataset(
        source: Any,
        *,
        num_outputs: int,
        columns: Any = None,
        random_shuffle: bool = False,
        shuffle_after_epoch: bool = False,
        seed: int | None = None,
        sampler: Any = None,
        num_shards: int | None = None,
        shard_id: int | None = None,
        sharding: Literal["strided", "contiguous"] | None = None,
        stick_to_shard: bool = False,
        pad_last_batch: bool = False,
        on_error: Literal["raise", "replace", "skip"] | None = None,
        name: str | None = None,
        device: Literal["cpu", "gpu", "mixed"] | None = None,
        preserve: bool = False,
        bytes_per_sample_hint: int | Sequence[int] | npt.NDArray[np.generic] = 0,
    ) -> tuple[DataNode, ...]:
        """Take samples from a map-style data set, such as a ``torch.utils.data.Dataset``, in worker processes.

        The pipeline's worker processes (``py_num_workers``, ``py_start_method``) call ``source[index]`` for the rows of the
        next batches, and the values return in shared memory. The order of samples, shards and states are those of all
        readers, for any number of processes: give `sampler` in place of a DataLoader's one.

        A sample is a tuple of `num_outputs` values, or a dict with the keys `columns`. In the latter case the outputs are
        a dict. A value is an array, a tensor, a Pillow image, a number, a text (UTF-8) or bytes. The values of the first
        batch decide the types. A sample that raises an exception is a bad sample, for which `on_error` holds. So is one
        whose process dies; another process replaces that one.

        Random numbers that the data set draws itself are its own: each process seeds the generators of Python, NumPy and
        torch differently, and a state does not restore them. Draw with Stoker's operators to have the same numbers again.

        Args:
            source: Object with `__getitem__` for whole numbers and `__len__`.
            num_outputs: Number of values of a sample.
            columns: Keys of the values, for samples that are dicts; in place of `num_outputs`.
            random_shuffle: Another order every epoch: a permutation of the whole data set.
            shuffle_after_epoch: Like random_shuffle, over the whole data set: contiguous shards too have other
                samples every epoch.
            seed: Seed of the order; by default the pipeline's.
            sampler: Samples of an epoch and their order: one of stoker.samplers, a sequence of numbers, or any
                iterable, such as a torch.utils.data.Sampler.
            num_shards: Number of parts that every epoch is divided into. By default 1, or with the pipeline's
                `shards="launcher"` the number of processes (WORLD_SIZE).
            shard_id: First part that this pipeline takes; see `stick_to_shard`. By default 0, or with the
                pipeline's `shards="launcher"` this process's number (RANK).
            sharding: strided: part k is the positions k, k + num_shards, ... of the epoch's order, so that a state
                restores with another num_shards too. contiguous: as DALI, from floor(k * size / num_shards) on. By
                default strided, unless parts are both shuffled and kept (random_shuffle with stick_to_shard).
            stick_to_shard: Take the same part in every epoch; by default the next one.
            pad_last_batch: Complete a part, and the last batch of an epoch, by repeating the part's last sample. By
                default the part is completed with the following samples, and the batch with the next epoch's first
                ones.
            on_error: In a pipeline: policy for a row that fails here: raise, replace or skip; by default what the
                pipeline's `on_error` says.
            name: Name of the node, shown in errors and by which outputs and readers are found.
            device: Where the operator runs.
            preserve: Run the operator also if its output is not used.
        """
        ...

    @staticmethod
    def file(
        *,
        file_root: str | PathLike[str] | None = None,
        file_list: str | PathLike[str] | None = None,
        files: Any = None,
        labels: Any = None,
        extensions: Any = None,
        file_filters: Any = None,
        dir_filters: Any = None,
        case_sensitive_filter: bool = False,
        shuffle_after_epoch_seed: int | None = None,
        initial_fill: int = 1024,
        prefetch_queue_depth: int = 1,
        read_ahead: bool = False,
        skip_cached_images: bool = False,
        dont_use_mmap: bool = False,
        lazy_init: bool = False,
        tensor_init_bytes: int = 1048576,
        random_shuffle: bool = False,
        shuffle_after_epoch: bool = False,
        seed: int | None = None,
        sampler: Any = None,
        num_shards: int | None = None,
        shard_id: int | None = None,
        sharding: Literal["strided", "contiguous"] | None = None,
        stick_to_shard: bool = False,
        pad_last_batch: bool = False,
        on_error: Literal["raise", "replace", "skip"] | None = None,
        origin: bool = False,
        name: str | None = None,
        device: Literal["cpu", "gpu", "mixed"] | None = None,
        preserve: bool = False,
        bytes_per_sample_hint: int | Sequence[int] | npt.NDArray[np.generic] = 0,
    ) -> tuple[DataNode, DataNode]:
        """Read whole files. Outputs: the bytes, uint8 ``(N,)``, and the label, int32 ``(1,)``.

        Without ``files`` or ``file_list``, every sub-folder of ``file_root`` is a class; classes are numbered in
        lexicographic order, and files come in lexicographic order within their class, as in DALI.

        Args:
            file_root: Folder with one sub-folder per class; the base of relative paths otherwise.
            file_list: Text file with one "path label" per line, separated by spaces or tabs.
            files: Path or list of paths, absolute or relative to file_root; or addresses of objects (s3://, gs://,
                az://, https://).
            labels: One integer per path of `files`; the index of the path if not given.
            extensions: Extensions of the files to take, with their dot ("" for none), such as [".jpg", ".png"]. By
                default the images: files with the extension .jpg, .jpeg, .jpe, .jfif, .png, .bmp, .dib, .tif,
                .tiff, .pnm, .ppm, .pgm, .pbm, .jp2, .j2k, .webp, .gif, .avif, .heic, .heif, .jxl, .qoi, and other
                files whose content begins like an image.
            file_filters: Patterns of the names to take, in place of `extensions`.
            dir_filters: Patterns of the class folders to take; by default all.
            case_sensitive_filter: Whether the patterns distinguish upper and lower case.
            shuffle_after_epoch_seed: No effect: `seed` decides the order of shuffled epochs.
            initial_fill: No effect: a shuffle is over the whole data set, not over a buffer.
            prefetch_queue_depth: No effect: the pipeline's prefetch_queue_depth holds.
            read_ahead: No effect: rows are prefetched with their batches.
            skip_cached_images: No effect: there is no cache of decoded images.
            dont_use_mmap: No effect: files are always read, never mapped.
            lazy_init: No effect: the files are listed when the pipeline is built.
            tensor_init_bytes: No effect: memory is planned.
            random_shuffle: Another order every epoch: a permutation of the whole data set.
            shuffle_after_epoch: Like random_shuffle, over the whole data set: contiguous shards too have other
                samples every epoch.
            seed: Seed of the order; by default the pipeline's.
            sampler: Samples of an epoch and their order: one of stoker.samplers, a sequence of numbers, or any
                iterable, such as a torch.utils.data.Sampler.
            num_shards: Number of parts that every epoch is divided into. By default 1, or with the pipeline's
                `shards="launcher"` the number of processes (WORLD_SIZE).
            shard_id: First part that this pipeline takes; see `stick_to_shard`. By default 0, or with the
                pipeline's `shards="launcher"` this process's number (RANK).
            sharding: strided: part k is the positions k, k + num_shards, ... of the epoch's order, so that a state
                restores with another num_shards too. contiguous: as DALI, from floor(k * size / num_shards) on. By
                default strided, unless parts are both shuffled and kept (random_shuffle with stick_to_shard).
            stick_to_shard: Take the same part in every epoch; by default the next one.
            pad_last_batch: Complete a part, and the last batch of an epoch, by repeating the part's last sample. By
                default the part is completed with the following samples, and the batch with the next epoch's first
                ones.
            on_error: In a pipeline: policy for a row that fails here: raise, replace or skip; by default what the
                pipeline's `on_error` says.
            origin: Add a last output: the path of the sample's file as UTF-8, uint8 `(N,)`, in a container followed
                by ` at byte N`. `fn.get_property(x, key="source_info")` does so too.
            name: Name of the node, shown in errors and by which outputs and readers are found.
            device: Where the operator runs.
            preserve: Run the operator also if its output is not used.
        """
        ...

    @staticmethod
    def huggingface(
        source: Any,
        columns: Any,
        *,
        random_shuffle: bool = False,
        shuffle_after_epoch: bool = False,
        seed: int | None = None,
        sampler: Any = None,
        num_shards: int | None = None,
        shard_id: int | None = None,
        sharding: Literal["strided", "contiguous"] | None = None,
        stick_to_shard: bool = False,
        pad_last_batch: bool = False,
        on_error: Literal["raise", "replace", "skip"] | None = None,
        initial_fill: int = 1024,
        prefetch_queue_depth: int = 1,
        read_ahead: bool = False,
        skip_cached_images: bool = False,
        dont_use_mmap: bool = False,
        lazy_init: bool = False,
        tensor_init_bytes: int = 1048576,
        shuffle_after_epoch_seed: int | None = None,
        name: str | None = None,
        device: Literal["cpu", "gpu", "mixed"] | None = None,
        preserve: bool = False,
        bytes_per_sample_hint: int | Sequence[int] | npt.NDArray[np.generic] = 0,
    ) -> DataNode:
        """Read columns of a Hugging Face ``datasets.Dataset``. Outputs: a dict with a node per column.

        Bytes and texts are uint8 ``(N,)``. Images and audio files are their encoded bytes, uint8 ``(N,)``, whether the
        data set holds them or their paths: decode them with ``decoders.image`` or ``decoders.audio``. A number is ``(1,)``
        of its type. A class label is int32 ``(1,)``, and samplers balance by the first column of labels. Lists of numbers
        are ``(N,)``, and ``Array2D`` to ``Array5D`` have their axes. A missing value has no elements.

        The data set keeps its rows in Arrow files. This reader reads a row as a byte range of its file, without the
        library, in every order at the same speed. ``shuffle``, ``select``, ``sort``, ``filter`` and
        ``concatenate_datasets`` hold. Numbers are read into memory when the pipeline is built.

        Args:
            columns: Names of the columns to read, such as ["image", "label"].
            source: The data set, or the folder that its `save_to_disk` has written. A folder of a store is copied.
            random_shuffle: Another order every epoch: a permutation of the whole data set.
            shuffle_after_epoch: Like random_shuffle, over the whole data set: contiguous shards too have other
                samples every epoch.
            seed: Seed of the order; by default the pipeline's.
            sampler: Samples of an epoch and their order: one of stoker.samplers, a sequence of numbers, or any
                iterable, such as a torch.utils.data.Sampler.
            num_shards: Number of parts that every epoch is divided into. By default 1, or with the pipeline's
                `shards="launcher"` the number of processes (WORLD_SIZE).
            shard_id: First part that this pipeline takes; see `stick_to_shard`. By default 0, or with the
                pipeline's `shards="launcher"` this process's number (RANK).
            sharding: strided: part k is the positions k, k + num_shards, ... of the epoch's order, so that a state
                restores with another num_shards too. contiguous: as DALI, from floor(k * size / num_shards) on. By
                default strided, unless parts are both shuffled and kept (random_shuffle with stick_to_shard).
            stick_to_shard: Take the same part in every epoch; by default the next one.
            pad_last_batch: Complete a part, and the last batch of an epoch, by repeating the part's last sample. By
                default the part is completed with the following samples, and the batch with the next epoch's first
                ones.
            on_error: In a pipeline: policy for a row that fails here: raise, replace or skip; by default what the
                pipeline's `on_error` says.
            initial_fill: No effect: a shuffle is over the whole data set, not over a buffer.
            prefetch_queue_depth: No effect: the pipeline's prefetch_queue_depth holds.
            read_ahead: No effect: rows are prefetched with their batches.
            skip_cached_images: No effect: there is no cache of decoded images.
            dont_use_mmap: No effect: files are always read, never mapped.
            lazy_init: No effect: the index is read when the pipeline is built.
            tensor_init_bytes: No effect: memory is planned.
            shuffle_after_epoch_seed: No effect: `seed` decides the order of shuffled epochs.
            name: Name of the node, shown in errors and by which outputs and readers are found.
            device: Where the operator runs.
            preserve: Run the operator also if its output is not used.
        """
        ...

    @staticmethod
    def lance(
        source: Any,
        columns: Any,
        *,
        label: str | None = None,
        random_shuffle: bool = False,
        shuffle_after_epoch: bool = False,
        seed: int | None = None,
        sampler: Any = None,
        num_shards: int | None = None,
        shard_id: int | None = None,
        sharding: Literal["strided", "contiguous"] | None = None,
        stick_to_shard: bool = False,
        pad_last_batch: bool = False,
        on_error: Literal["raise", "replace", "skip"] | None = None,
        initial_fill: int = 1024,
        prefetch_queue_depth: int = 1,
        read_ahead: bool = False,
        skip_cached_images: bool = False,
        dont_use_mmap: bool = False,
        lazy_init: bool = False,
        tensor_init_bytes: int = 1048576,
        shuffle_after_epoch_seed: int | None = None,
        name: str | None = None,
        device: Literal["cpu", "gpu", "mixed"] | None = None,
        preserve: bool = False,
        bytes_per_sample_hint: int | Sequence[int] | npt.NDArray[np.generic] = 0,
    ) -> DataNode:
        """Read columns of a Lance data set. Outputs: a dict with a node per column.

        Bytes and texts are uint8 ``(N,)``. A number is ``(1,)`` of its type, and a list of numbers, such as an embedding,
        ``(N,)``. A missing value has no elements. Numbers are read into memory when the pipeline is built.

        Threads of the pipeline take the rows of the next batches by their numbers, so rows in any order cost the same. The
        rows are those of the version that is open when the pipeline is built: later appends and deletions do not change
        them. A state restores in pipelines over the same version.

        Args:
            columns: Names of the columns to read, such as ["image", "label"].
            source: A lance.LanceDataset, also one in a store or of an older version; or its folder.
            label: Column of class labels among `columns`: int32, and samplers balance by it.
            random_shuffle: Another order every epoch: a permutation of the whole data set.
            shuffle_after_epoch: Like random_shuffle, over the whole data set: contiguous shards too have other
                samples every epoch.
            seed: Seed of the order; by default the pipeline's.
            sampler: Samples of an epoch and their order: one of stoker.samplers, a sequence of numbers, or any
                iterable, such as a torch.utils.data.Sampler.
            num_shards: Number of parts that every epoch is divided into. By default 1, or with the pipeline's
                `shards="launcher"` the number of processes (WORLD_SIZE).
            shard_id: First part that this pipeline takes; see `stick_to_shard`. By default 0, or with the
                pipeline's `shards="launcher"` this process's number (RANK).
            sharding: strided: part k is the positions k, k + num_shards, ... of the epoch's order, so that a state
                restores with another num_shards too. contiguous: as DALI, from floor(k * size / num_shards) on. By
                default strided, unless parts are both shuffled and kept (random_shuffle with stick_to_shard).
            stick_to_shard: Take the same part in every epoch; by default the next one.
            pad_last_batch: Complete a part, and the last batch of an epoch, by repeating the part's last sample. By
                default the part is completed with the following samples, and the batch with the next epoch's first
                ones.
            on_error: In a pipeline: policy for a row that fails here: raise, replace or skip; by default what the
                pipeline's `on_error` says.
            initial_fill: No effect: a shuffle is over the whole data set, not over a buffer.
            prefetch_queue_depth: No effect: the pipeline's prefetch_queue_depth holds.
            read_ahead: No effect: rows are prefetched with their batches.
            skip_cached_images: No effect: there is no cache of decoded images.
            dont_use_mmap: No effect: files are always read, never mapped.
            lazy_init: No effect: the index is read when the pipeline is built.
            tensor_init_bytes: No effect: memory is planned.
            shuffle_after_epoch_seed: No effect: `seed` decides the order of shuffled epochs.
            name: Name of the node, shown in errors and by which outputs and readers are found.
            device: Where the operator runs.
            preserve: Run the operator also if its output is not used.
        """
        ...

    @overload
    @staticmethod
    def litdata(
        path: Any,
        *,
        num_outputs: Literal[1] = 1,
        columns: Any = None,
        random_shuffle: bool = False,
        shuffle_after_epoch: bool = False,
        seed: int | None = None,
        sampler: Any = None,
        num_shards: int | None = None,
        shard_id: int | None = None,
        sharding: Literal["strided", "contiguous"] | None = None,
        stick_to_shard: bool = False,
        pad_last_batch: bool = False,
        on_error: Literal["raise", "replace", "skip"] | None = None,
        name: str | None = None,
        device: Literal["cpu", "gpu", "mixed"] | None = None,
        preserve: bool = False,
        bytes_per_sample_hint: int | Sequence[int] | npt.NDArray[np.generic] = 0,
    ) -> DataNode:
        """Read samples of a folder that ``litdata.optimize`` has written, in worker processes.

        The pipeline's worker processes (``py_num_workers``, ``py_start_method``) read the rows of the next batches with
        the library, and the values return in shared memory. The order of samples, shards and states are those of all
        readers. LitData keeps samples in chunks: ``samplers.Windowed(block=N, window=16)`` for chunks of N samples takes
        the rows of a window from few chunks.

        A sample is a dict with the keys `columns`, and the outputs are a dict; or it is a tuple of `num_outputs` values.
        A value is an array, a tensor, a number, a text (UTF-8) or bytes. Images of LitData's types ``Jpeg`` and ``Image``,
        files, audio and videos are their encoded bytes, uint8 ``(N,)``: decode them with Stoker's operators. Images that
        the library keeps as Pillow's pixels are pixels. Pickled values are bytes and are never loaded. The values of the
        first batch decide the types.

        Args:
            path: Folder with the data set's index.json.
            num_outputs: Number of values of a sample.
            columns: Keys of the values, for samples that are dicts; in place of `num_outputs`.
            random_shuffle: Another order every epoch: a permutation of the whole data set.
            shuffle_after_epoch: Like random_shuffle, over the whole data set: contiguous shards too have other
                samples every epoch.
            seed: Seed of the order; by default the pipeline's.
            sampler: Samples of an epoch and their order: one of stoker.samplers, a sequence of numbers, or any
                iterable, such as a torch.utils.data.Sampler.
            num_shards: Number of parts that every epoch is divided into. By default 1, or with the pipeline's
                `shards="launcher"` the number of processes (WORLD_SIZE).
            shard_id: First part that this pipeline takes; see `stick_to_shard`. By default 0, or with the
                pipeline's `shards="launcher"` this process's number (RANK).
            sharding: strided: part k is the positions k, k + num_shards, ... of the epoch's order, so that a state
                restores with another num_shards too. contiguous: as DALI, from floor(k * size / num_shards) on. By
                default strided, unless parts are both shuffled and kept (random_shuffle with stick_to_shard).
            stick_to_shard: Take the same part in every epoch; by default the next one.
            pad_last_batch: Complete a part, and the last batch of an epoch, by repeating the part's last sample. By
                default the part is completed with the following samples, and the batch with the next epoch's first
                ones.
            on_error: In a pipeline: policy for a row that fails here: raise, replace or skip; by default what the
                pipeline's `on_error` says.
            name: Name of the node, shown in errors and by which outputs and readers are found.
            device: Where the operator runs.
            preserve: Run the operator also if its output is not used.
        """
        ...

    @overload
    @staticmethod
    def litdata(
        path: Any,
        *,
        num_outputs: int,
        columns: Any = None,
        random_shuffle: bool = False,
        shuffle_after_epoch: bool = False,
        seed: int | None = None,
        sampler: Any = None,
        num_shards: int | None = None,
        shard_id: int | None = None,
        sharding: Literal["strided", "contiguous"] | None = None,
        stick_to_shard: bool = False,
        pad_last_batch: bool = False,
        on_error: Literal["raise", "replace", "skip"] | None = None,
        name: str | None = None,
        device: Literal["cpu", "gpu", "mixed"] | None = None,
        preserve: bool = False,
        bytes_per_sample_hint: int | Sequence[int] | npt.NDArray[np.generic] = 0,
    ) -> tuple[DataNode, ...]:
        """Read samples of a folder that ``litdata.optimize`` has written, in worker processes.

        The pipeline's worker processes (``py_num_workers``, ``py_start_method``) read the rows of the next batches with
        the library, and the values return in shared memory. The order of samples, shards and states are those of all
        readers. LitData keeps samples in chunks: ``samplers.Windowed(block=N, window=16)`` for chunks of N samples takes
        the rows of a window from few chunks.

        A sample is a dict with the keys `columns`, and the outputs are a dict; or it is a tuple of `num_outputs` values.
        A value is an array, a tensor, a number, a text (UTF-8) or bytes. Images of LitData's types ``Jpeg`` and ``Image``,
        files, audio and videos are their encoded bytes, uint8 ``(N,)``: decode them with Stoker's operators. Images that
        the library keeps as Pillow's pixels are pixels. Pickled values are bytes and are never loaded. The values of the
        first batch decide the types.

        Args:
            path: Folder with the data set's index.json.
            num_outputs: Number of values of a sample.
            columns: Keys of the values, for samples that are dicts; in place of `num_outputs`.
            random_shuffle: Another order every epoch: a permutation of the whole data set.
            shuffle_after_epoch: Like random_shuffle, over the whole data set: contiguous shards too have other
                samples every epoch.
            seed: Seed of the order; by default the pipeline's.
            sampler: Samples of an epoch and their order: one of stoker.samplers, a sequence of numbers, or any
                iterable, such as a torch.utils.data.Sampler.
            num_shards: Number of parts that every epoch is divided into. By default 1, or with the pipeline's
                `shards="launcher"` the number of processes (WORLD_SIZE).
            shard_id: First part that this pipeline takes; see `stick_to_shard`. By default 0, or with the
                pipeline's `shards="launcher"` this process's number (RANK).
            sharding: strided: part k is the positions k, k + num_shards, ... of the epoch's order, so that a state
                restores with another num_shards too. contiguous: as DALI, from floor(k * size / num_shards) on. By
                default strided, unless parts are both shuffled and kept (random_shuffle with stick_to_shard).
            stick_to_shard: Take the same part in every epoch; by default the next one.
            pad_last_batch: Complete a part, and the last batch of an epoch, by repeating the part's last sample. By
                default the part is completed with the following samples, and the batch with the next epoch's first
                ones.
            on_error: In a pipeline: policy for a row that fails here: raise, replace or skip; by default what the
                pipeline's `on_error` says.
            name: Name of the node, shown in errors and by which outputs and readers are found.
            device: Where the operator runs.
            preserve: Run the operator also if its output is not used.
        """
        ...

    @staticmethod
    def mds(
        path: str | PathLike[str],
        columns: Any,
        *,
        random_shuffle: bool = False,
        shuffle_after_epoch: bool = False,
        seed: int | None = None,
        sampler: Any = None,
        num_shards: int | None = None,
        shard_id: int | None = None,
        sharding: Literal["strided", "contiguous"] | None = None,
        stick_to_shard: bool = False,
        pad_last_batch: bool = False,
        on_error: Literal["raise", "replace", "skip"] | None = None,
        initial_fill: int = 1024,
        prefetch_queue_depth: int = 1,
        read_ahead: bool = False,
        skip_cached_images: bool = False,
        dont_use_mmap: bool = False,
        lazy_init: bool = False,
        tensor_init_bytes: int = 1048576,
        shuffle_after_epoch_seed: int | None = None,
        name: str | None = None,
        device: Literal["cpu", "gpu", "mixed"] | None = None,
        preserve: bool = False,
        bytes_per_sample_hint: int | Sequence[int] | npt.NDArray[np.generic] = 0,
    ) -> DataNode:
        """Read columns of a data set in the form of MosaicML Streaming (MDS). Outputs: a dict with a node per column.

        Numbers (``int``, ``float32``, ...) are arrays ``(1,)`` of their type. All other columns are uint8 ``(N,)``, as
        stored: a JPEG file for ``jpeg``, UTF-8 for ``str``. An ``ndarray`` of declared type and shape has these.
        Shards must not be compressed, because parts of compressed ones cannot be read.

        Args:
            columns: Names of the columns to read, such as ["image", "label"].
            path: Folder with the data set's index.json, or its address; or a manifest (.manifest), which `stoker
                index --manifest` writes.
            random_shuffle: Another order every epoch: a permutation of the whole data set.
            shuffle_after_epoch: Like random_shuffle, over the whole data set: contiguous shards too have other
                samples every epoch.
            seed: Seed of the order; by default the pipeline's.
            sampler: Samples of an epoch and their order: one of stoker.samplers, a sequence of numbers, or any
                iterable, such as a torch.utils.data.Sampler.
            num_shards: Number of parts that every epoch is divided into. By default 1, or with the pipeline's
                `shards="launcher"` the number of processes (WORLD_SIZE).
            shard_id: First part that this pipeline takes; see `stick_to_shard`. By default 0, or with the
                pipeline's `shards="launcher"` this process's number (RANK).
            sharding: strided: part k is the positions k, k + num_shards, ... of the epoch's order, so that a state
                restores with another num_shards too. contiguous: as DALI, from floor(k * size / num_shards) on. By
                default strided, unless parts are both shuffled and kept (random_shuffle with stick_to_shard).
            stick_to_shard: Take the same part in every epoch; by default the next one.
            pad_last_batch: Complete a part, and the last batch of an epoch, by repeating the part's last sample. By
                default the part is completed with the following samples, and the batch with the next epoch's first
                ones.
            on_error: In a pipeline: policy for a row that fails here: raise, replace or skip; by default what the
                pipeline's `on_error` says.
            initial_fill: No effect: a shuffle is over the whole data set, not over a buffer.
            prefetch_queue_depth: No effect: the pipeline's prefetch_queue_depth holds.
            read_ahead: No effect: rows are prefetched with their batches.
            skip_cached_images: No effect: there is no cache of decoded images.
            dont_use_mmap: No effect: files are always read, never mapped.
            lazy_init: No effect: the index is read when the pipeline is built.
            tensor_init_bytes: No effect: memory is planned.
            shuffle_after_epoch_seed: No effect: `seed` decides the order of shuffled epochs.
            name: Name of the node, shown in errors and by which outputs and readers are found.
            device: Where the operator runs.
            preserve: Run the operator also if its output is not used.
        """
        ...

    @staticmethod
    def mix(
        parts: Any,
        *,
        label_offsets: Any = None,
        seed: int | None = None,
        num_shards: int | None = None,
        shard_id: int | None = None,
        sharding: Literal["strided", "contiguous"] | None = None,
        stick_to_shard: bool = False,
        pad_last_batch: bool = False,
        on_error: Literal["raise", "replace", "skip"] | None = None,
        weights: Any = None,
        length: Any = "sum",
        name: str | None = None,
        device: Literal["cpu", "gpu", "mixed"] | None = None,
        preserve: bool = False,
        bytes_per_sample_hint: int | Sequence[int] | npt.NDArray[np.generic] = 0,
    ) -> tuple[DataNode, DataNode, DataNode]:
        """Read the samples of several readers in proportion to ``weights``, in a random order.

        Usage: ``fn.readers.mix([a, b], weights=[0.8, 0.2])`` with the outputs of ``fn.readers.file``. Outputs: the bytes,
        uint8 ``(N,)``, the label, int32 ``(1,)``, and the number of the sample's part, int32 ``(1,)``.

        The proportions hold in every block of samples, not only on average. A block is as long as the sum of the weights in
        lowest terms, at most 1000. Each part runs in its own order. All its samples are used before one repeats, across
        epochs of the pipeline. Each repetition is an epoch of the part, with another order if the part is shuffled. A
        sample that occurs several times gets another augmentation each time.

        Args:
            parts: Outputs of the readers to join, in a list; at least one.
            label_offsets: Offsets for the labels of each part: a list of numbers, or "disjoint" for labels that
                begin after those of the previous part; by default none.
            seed: Seed of the orders; by default the pipeline's. A part's own `seed` stays.
            num_shards: Number of parts that every epoch is divided into. By default 1, or with the pipeline's
                `shards="launcher"` the number of processes (WORLD_SIZE).
            shard_id: First part that this pipeline takes; see `stick_to_shard`. By default 0, or with the
                pipeline's `shards="launcher"` this process's number (RANK).
            sharding: strided: part k is the positions k, k + num_shards, ... of the epoch's order, so that a state
                restores with another num_shards too. contiguous: as DALI, from floor(k * size / num_shards) on. By
                default strided, unless parts are both shuffled and kept (random_shuffle with stick_to_shard).
            stick_to_shard: Take the same part in every epoch; by default the next one.
            pad_last_batch: Complete a part, and the last batch of an epoch, by repeating the part's last sample. By
                default the part is completed with the following samples, and the batch with the next epoch's first
                ones.
            on_error: In a pipeline: policy for a row that fails here: raise, replace or skip; by default what the
                pipeline's `on_error` says.
            weights: Share of each part. Shares need not sum to 1. By default all are equal.
            length: Samples of an epoch: a number; or sum, the total of the parts' epochs; shortest, until the first
                part is used up; or longest, until all parts are.
            name: Name of the node, shown in errors and by which outputs and readers are found.
            device: Where the operator runs.
            preserve: Run the operator also if its output is not used.
        """
        ...

    @staticmethod
    def mxnet(
        path: Any,
        index_path: Any = None,
        *,
        random_shuffle: bool = False,
        shuffle_after_epoch: bool = False,
        seed: int | None = None,
        sampler: Any = None,
        num_shards: int | None = None,
        shard_id: int | None = None,
        sharding: Literal["strided", "contiguous"] | None = None,
        stick_to_shard: bool = False,
        pad_last_batch: bool = False,
        on_error: Literal["raise", "replace", "skip"] | None = None,
        initial_fill: int = 1024,
        prefetch_queue_depth: int = 1,
        read_ahead: bool = False,
        skip_cached_images: bool = False,
        dont_use_mmap: bool = False,
        lazy_init: bool = False,
        tensor_init_bytes: int = 1048576,
        shuffle_after_epoch_seed: int | None = None,
        name: str | None = None,
        device: Literal["cpu", "gpu", "mixed"] | None = None,
        preserve: bool = False,
        bytes_per_sample_hint: int | Sequence[int] | npt.NDArray[np.generic] = 0,
    ) -> tuple[DataNode, DataNode]:
        """Read images and labels in RecordIO files. Outputs: the bytes, uint8 ``(N,)``, and the labels, float32 ``(L,)``.

        A record has one label, or a list of labels; they may differ in length.

        No index file is needed: the first pipeline over a file finds its records, in one pass over their headers, and keeps
        the result in Stoker's cache folder. Records come in the order of the files. Records that MXNet has stored in
        several parts, because they contain its magic number, are joined.

        Args:
            path: RecordIO file (.rec), or a list of files; or a manifest (.manifest), which `stoker index
                --manifest` writes.
            index_path: Index file (.idx) with "key offset" per line: one for all files, with offsets that continue
                from file to file. By default the records are found without one.
            random_shuffle: Another order every epoch: a permutation of the whole data set.
            shuffle_after_epoch: Like random_shuffle, over the whole data set: contiguous shards too have other
                samples every epoch.
            seed: Seed of the order; by default the pipeline's.
            sampler: Samples of an epoch and their order: one of stoker.samplers, a sequence of numbers, or any
                iterable, such as a torch.utils.data.Sampler.
            num_shards: Number of parts that every epoch is divided into. By default 1, or with the pipeline's
                `shards="launcher"` the number of processes (WORLD_SIZE).
            shard_id: First part that this pipeline takes; see `stick_to_shard`. By default 0, or with the
                pipeline's `shards="launcher"` this process's number (RANK).
            sharding: strided: part k is the positions k, k + num_shards, ... of the epoch's order, so that a state
                restores with another num_shards too. contiguous: as DALI, from floor(k * size / num_shards) on. By
                default strided, unless parts are both shuffled and kept (random_shuffle with stick_to_shard).
            stick_to_shard: Take the same part in every epoch; by default the next one.
            pad_last_batch: Complete a part, and the last batch of an epoch, by repeating the part's last sample. By
                default the part is completed with the following samples, and the batch with the next epoch's first
                ones.
            on_error: In a pipeline: policy for a row that fails here: raise, replace or skip; by default what the
                pipeline's `on_error` says.
            initial_fill: No effect: a shuffle is over the whole data set, not over a buffer.
            prefetch_queue_depth: No effect: the pipeline's prefetch_queue_depth holds.
            read_ahead: No effect: rows are prefetched with their batches.
            skip_cached_images: No effect: there is no cache of decoded images.
            dont_use_mmap: No effect: files are always read, never mapped.
            lazy_init: No effect: the index is read when the pipeline is built.
            tensor_init_bytes: No effect: memory is planned.
            shuffle_after_epoch_seed: No effect: `seed` decides the order of shuffled epochs.
            name: Name of the node, shown in errors and by which outputs and readers are found.
            device: Where the operator runs.
            preserve: Run the operator also if its output is not used.
        """
        ...

    @overload
    @staticmethod
    def nemo_asr(
        manifest_filepaths: Any,
        *,
        sample_rate: float | None = None,
        quality: float = 50.0,
        filter: Literal["exact", "dali"] = "exact",
        downmix: bool = True,
        dtype: DTypeLike = DType.FLOAT,
        base: str | None = None,
        read_sample_rate: Literal[True] = True,
        read_text: bool = True,
        read_idxs: bool = False,
        min_duration: float = 0.0,
        max_duration: float = 0.0,
        preroll: float | None = None,
        shuffle_after_epoch_seed: int | None = None,
        initial_fill: int = 1024,
        prefetch_queue_depth: int = 1,
        read_ahead: bool = False,
        skip_cached_images: bool = False,
        dont_use_mmap: bool = False,
        lazy_init: bool = False,
        tensor_init_bytes: int = 1048576,
        normalize_text: bool = False,
        random_shuffle: bool = False,
        shuffle_after_epoch: bool = False,
        seed: int | None = None,
        sampler: Any = None,
        num_shards: int | None = None,
        shard_id: int | None = None,
        sharding: Literal["strided", "contiguous"] | None = None,
        stick_to_shard: bool = False,
        pad_last_batch: bool = False,
        on_error: Literal["raise", "replace", "skip"] | None = None,
        name: str | None = None,
        device: Literal["cpu", "gpu", "mixed"] | None = None,
        preserve: bool = False,
        bytes_per_sample_hint: int | Sequence[int] | npt.NDArray[np.generic] = 0,
    ) -> tuple[DataNode, DataNode, DataNode]:
        """Read speech and transcripts by manifests of NVIDIA NeMo: text files with one JSON object per line. Outputs: the
        samples, ``(frames,)`` (or ``(frames, channels)`` without ``downmix``); the sampling rate of the file in Hz, float32
        without axes; the text, uint8 ``(N,)``; and with ``read_idxs`` the entry's number, int64 ``(1,)``.

        An entry has ``audio_filepath``, and optionally ``duration`` and ``offset`` in seconds (a part of the file, which
        ends with the file at the latest) and ``text``. Other keys are ignored. Lines that are no entry are left out, with a
        warning. Numbers of entries count those that are kept, from 0 in each manifest, as DALI's do; the rate is that of
        the file, also after resampling. Files are decoded as by `decoders.audio`; an offset means the nearest sample, in
        DALI the sample before.

        Args:
            sample_rate: Resample to this rate in Hz; by default each file keeps its own.
            quality: Quality of resampling, 0 to 100 (`audio_resample`).
            filter: Filter of resampling (`audio_resample`).
            downmix: Return the mean over the channels, without their axis.
            dtype: Element type of the samples: FLOAT, INT16 or INT32.
            manifest_filepaths: Manifest file or its address, or a list of them.
            base: Folder of relative paths; by default that of the manifest, as in NeMo. DALI's is the current
                folder.
            read_sample_rate: Return the sampling rate.
            read_text: Return the text.
            read_idxs: Return the number of the entry.
            min_duration: Leave out entries with a shorter `duration` or none; 0: none of them.
            max_duration: Leave out entries with a longer `duration`; 0: none of them.
            preroll: Seconds to decode before an `offset` in Opus files; by default all that is before it, for exact
                samples (`decoders.audio`).
            shuffle_after_epoch_seed: No effect: `seed` decides the order of shuffled epochs.
            initial_fill: No effect: a shuffle is over the whole data set, not over a buffer.
            prefetch_queue_depth: No effect: the pipeline's prefetch_queue_depth holds.
            read_ahead: No effect: rows are prefetched with their batches.
            skip_cached_images: No effect: there is no cache of decoded images.
            dont_use_mmap: No effect: files are always read, never mapped.
            lazy_init: No effect: manifests are read when the pipeline is built.
            tensor_init_bytes: No effect: memory is planned.
            normalize_text: No effect, as in DALI: texts are returned as the manifest has them.
            random_shuffle: Another order every epoch: a permutation of the whole data set.
            shuffle_after_epoch: Like random_shuffle, over the whole data set: contiguous shards too have other
                samples every epoch.
            seed: Seed of the order; by default the pipeline's.
            sampler: Samples of an epoch and their order: one of stoker.samplers, a sequence of numbers, or any
                iterable, such as a torch.utils.data.Sampler.
            num_shards: Number of parts that every epoch is divided into. By default 1, or with the pipeline's
                `shards="launcher"` the number of processes (WORLD_SIZE).
            shard_id: First part that this pipeline takes; see `stick_to_shard`. By default 0, or with the
                pipeline's `shards="launcher"` this process's number (RANK).
            sharding: strided: part k is the positions k, k + num_shards, ... of the epoch's order, so that a state
                restores with another num_shards too. contiguous: as DALI, from floor(k * size / num_shards) on. By
                default strided, unless parts are both shuffled and kept (random_shuffle with stick_to_shard).
            stick_to_shard: Take the same part in every epoch; by default the next one.
            pad_last_batch: Complete a part, and the last batch of an epoch, by repeating the part's last sample. By
                default the part is completed with the following samples, and the batch with the next epoch's first
                ones.
            on_error: In a pipeline: policy for a row that fails here: raise, replace or skip; by default what the
                pipeline's `on_error` says.
            name: Name of the node, shown in errors and by which outputs and readers are found.
            device: Where the operator runs.
            preserve: Run the operator also if its output is not used.
        """
        ...

    @overload
    @staticmethod
    def nemo_asr(
        manifest_filepaths: Any,
        *,
        sample_rate: float | None = None,
        quality: float = 50.0,
        filter: Literal["exact", "dali"] = "exact",
        downmix: bool = True,
        dtype: DTypeLike = DType.FLOAT,
        base: str | None = None,
        read_sample_rate: Literal[False],
        read_text: bool = True,
        read_idxs: bool = False,
        min_duration: float = 0.0,
        max_duration: float = 0.0,
        preroll: float | None = None,
        shuffle_after_epoch_seed: int | None = None,
        initial_fill: int = 1024,
        prefetch_queue_depth: int = 1,
        read_ahead: bool = False,
        skip_cached_images: bool = False,
        dont_use_mmap: bool = False,
        lazy_init: bool = False,
        tensor_init_bytes: int = 1048576,
        normalize_text: bool = False,
        random_shuffle: bool = False,
        shuffle_after_epoch: bool = False,
        seed: int | None = None,
        sampler: Any = None,
        num_shards: int | None = None,
        shard_id: int | None = None,
        sharding: Literal["strided", "contiguous"] | None = None,
        stick_to_shard: bool = False,
        pad_last_batch: bool = False,
        on_error: Literal["raise", "replace", "skip"] | None = None,
        name: str | None = None,
        device: Literal["cpu", "gpu", "mixed"] | None = None,
        preserve: bool = False,
        bytes_per_sample_hint: int | Sequence[int] | npt.NDArray[np.generic] = 0,
    ) -> tuple[DataNode, DataNode]:
        """Read speech and transcripts by manifests of NVIDIA NeMo: text files with one JSON object per line. Outputs: the
        samples, ``(frames,)`` (or ``(frames, channels)`` without ``downmix``); the sampling rate of the file in Hz, float32
        without axes; the text, uint8 ``(N,)``; and with ``read_idxs`` the entry's number, int64 ``(1,)``.

        An entry has ``audio_filepath``, and optionally ``duration`` and ``offset`` in seconds (a part of the file, which
        ends with the file at the latest) and ``text``. Other keys are ignored. Lines that are no entry are left out, with a
        warning. Numbers of entries count those that are kept, from 0 in each manifest, as DALI's do; the rate is that of
        the file, also after resampling. Files are decoded as by `decoders.audio`; an offset means the nearest sample, in
        DALI the sample before.

        Args:
            sample_rate: Resample to this rate in Hz; by default each file keeps its own.
            quality: Quality of resampling, 0 to 100 (`audio_resample`).
            filter: Filter of resampling (`audio_resample`).
            downmix: Return the mean over the channels, without their axis.
            dtype: Element type of the samples: FLOAT, INT16 or INT32.
            manifest_filepaths: Manifest file or its address, or a list of them.
            base: Folder of relative paths; by default that of the manifest, as in NeMo. DALI's is the current
                folder.
            read_sample_rate: Return the sampling rate.
            read_text: Return the text.
            read_idxs: Return the number of the entry.
            min_duration: Leave out entries with a shorter `duration` or none; 0: none of them.
            max_duration: Leave out entries with a longer `duration`; 0: none of them.
            preroll: Seconds to decode before an `offset` in Opus files; by default all that is before it, for exact
                samples (`decoders.audio`).
            shuffle_after_epoch_seed: No effect: `seed` decides the order of shuffled epochs.
            initial_fill: No effect: a shuffle is over the whole data set, not over a buffer.
            prefetch_queue_depth: No effect: the pipeline's prefetch_queue_depth holds.
            read_ahead: No effect: rows are prefetched with their batches.
            skip_cached_images: No effect: there is no cache of decoded images.
            dont_use_mmap: No effect: files are always read, never mapped.
            lazy_init: No effect: manifests are read when the pipeline is built.
            tensor_init_bytes: No effect: memory is planned.
            normalize_text: No effect, as in DALI: texts are returned as the manifest has them.
            random_shuffle: Another order every epoch: a permutation of the whole data set.
            shuffle_after_epoch: Like random_shuffle, over the whole data set: contiguous shards too have other
                samples every epoch.
            seed: Seed of the order; by default the pipeline's.
            sampler: Samples of an epoch and their order: one of stoker.samplers, a sequence of numbers, or any
                iterable, such as a torch.utils.data.Sampler.
            num_shards: Number of parts that every epoch is divided into. By default 1, or with the pipeline's
                `shards="launcher"` the number of processes (WORLD_SIZE).
            shard_id: First part that this pipeline takes; see `stick_to_shard`. By default 0, or with the
                pipeline's `shards="launcher"` this process's number (RANK).
            sharding: strided: part k is the positions k, k + num_shards, ... of the epoch's order, so that a state
                restores with another num_shards too. contiguous: as DALI, from floor(k * size / num_shards) on. By
                default strided, unless parts are both shuffled and kept (random_shuffle with stick_to_shard).
            stick_to_shard: Take the same part in every epoch; by default the next one.
            pad_last_batch: Complete a part, and the last batch of an epoch, by repeating the part's last sample. By
                default the part is completed with the following samples, and the batch with the next epoch's first
                ones.
            on_error: In a pipeline: policy for a row that fails here: raise, replace or skip; by default what the
                pipeline's `on_error` says.
            name: Name of the node, shown in errors and by which outputs and readers are found.
            device: Where the operator runs.
            preserve: Run the operator also if its output is not used.
        """
        ...

    @staticmethod
    def numpy(
        *,
        file_root: str | PathLike[str] | None = None,
        file_filter: str | PathLike[str] = "*.npy",
        file_list: str | PathLike[str] | None = None,
        files: Any = None,
        roi_start: int | Sequence[int | DataNode] | npt.NDArray[np.generic] | DataNode | None = None,
        rel_roi_start: float | Sequence[float | DataNode] | npt.NDArray[np.generic] | DataNode | None = None,
        roi_end: int | Sequence[int | DataNode] | npt.NDArray[np.generic] | DataNode | None = None,
        rel_roi_end: float | Sequence[float | DataNode] | npt.NDArray[np.generic] | DataNode | None = None,
        roi_shape: int | Sequence[int | DataNode] | npt.NDArray[np.generic] | DataNode | None = None,
        rel_roi_shape: float | Sequence[float | DataNode] | npt.NDArray[np.generic] | DataNode | None = None,
        roi_axes: int | Sequence[int] | npt.NDArray[np.generic] = (),
        out_of_bounds_policy: Literal["error", "pad", "trim_to_shape"] = "error",
        fill_value: float = 0.0,
        cache_header_information: bool = False,
        register_buffers: bool = True,
        use_o_direct: bool = False,
        random_shuffle: bool = False,
        shuffle_after_epoch: bool = False,
        seed: int | None = None,
        sampler: Any = None,
        num_shards: int | None = None,
        shard_id: int | None = None,
        sharding: Literal["strided", "contiguous"] | None = None,
        stick_to_shard: bool = False,
        pad_last_batch: bool = False,
        on_error: Literal["raise", "replace", "skip"] | None = None,
        initial_fill: int = 1024,
        prefetch_queue_depth: int = 1,
        read_ahead: bool = False,
        skip_cached_images: bool = False,
        dont_use_mmap: bool = False,
        lazy_init: bool = False,
        tensor_init_bytes: int = 1048576,
        shuffle_after_epoch_seed: int | None = None,
        origin: bool = False,
        name: str | None = None,
        device: Literal["cpu", "gpu", "mixed"] | None = None,
        preserve: bool = False,
        bytes_per_sample_hint: int | Sequence[int] | npt.NDArray[np.generic] = 0,
    ) -> DataNode:
        """Read arrays in .npy files (versions 1 to 3). Output: the array, or a region of it.

        All arrays have the type and the number of axes of the first one; their extents may differ. Arrays in Fortran order
        and big-endian ones become contiguous arrays in the order of C, little-endian.

        A region has a start (`roi_start`, or `rel_roi_start` as a share of the extent) and an end or a shape, in the axes
        `roi_axes`, or in all axes. Relative numbers are rounded to the nearest element. Only the rows of the slowest axis
        that the region needs are read from the file. With ``device="gpu"`` large arrays go to the GPU in pieces, or by
        GPUDirect Storage, if the environment's ``STOKER_GDS`` is ``auto`` or ``on``.

        Args:
            file_root: Folder of the files, with its sub-folders; the base of relative paths otherwise.
            file_filter: Pattern of the names to take in the folder.
            file_list: Text file with one path per line.
            files: Paths, absolute or relative to file_root.
            roi_start: First index of the region in each axis; by default 0.
            rel_roi_start: Start of the region as a share of the extent: 0 to 1.
            roi_end: Index after the region in each axis.
            rel_roi_end: End of the region as a share of the extent.
            roi_shape: Extents of the region.
            rel_roi_shape: Extents of the region as shares of the extents.
            roi_axes: Axes that the region limits; negative ones count from the last.
            out_of_bounds_policy: Policy for regions that are not inside of the array: error, pad with `fill_value`,
                or trim_to_shape.
            fill_value: Value outside of the array, rounded and limited to the array's type.
            cache_header_information: No effect: a header is read with its array.
            register_buffers: Ignored: Stoker and cuFile have buffers of their own.
            use_o_direct: Only False: files are read through the page cache.
            random_shuffle: Another order every epoch: a permutation of the whole data set.
            shuffle_after_epoch: Like random_shuffle, over the whole data set: contiguous shards too have other
                samples every epoch.
            seed: Seed of the order; by default the pipeline's.
            sampler: Samples of an epoch and their order: one of stoker.samplers, a sequence of numbers, or any
                iterable, such as a torch.utils.data.Sampler.
            num_shards: Number of parts that every epoch is divided into. By default 1, or with the pipeline's
                `shards="launcher"` the number of processes (WORLD_SIZE).
            shard_id: First part that this pipeline takes; see `stick_to_shard`. By default 0, or with the
                pipeline's `shards="launcher"` this process's number (RANK).
            sharding: strided: part k is the positions k, k + num_shards, ... of the epoch's order, so that a state
                restores with another num_shards too. contiguous: as DALI, from floor(k * size / num_shards) on. By
                default strided, unless parts are both shuffled and kept (random_shuffle with stick_to_shard).
            stick_to_shard: Take the same part in every epoch; by default the next one.
            pad_last_batch: Complete a part, and the last batch of an epoch, by repeating the part's last sample. By
                default the part is completed with the following samples, and the batch with the next epoch's first
                ones.
            on_error: In a pipeline: policy for a row that fails here: raise, replace or skip; by default what the
                pipeline's `on_error` says.
            initial_fill: No effect: a shuffle is over the whole data set, not over a buffer.
            prefetch_queue_depth: No effect: the pipeline's prefetch_queue_depth holds.
            read_ahead: No effect: rows are prefetched with their batches.
            skip_cached_images: No effect: there is no cache of decoded images.
            dont_use_mmap: No effect: files are always read, never mapped.
            lazy_init: No effect: the index is read when the pipeline is built.
            tensor_init_bytes: No effect: memory is planned.
            shuffle_after_epoch_seed: No effect: `seed` decides the order of shuffled epochs.
            origin: Add a last output: the path of the sample's file as UTF-8, uint8 `(N,)`, in a container followed
                by ` at byte N`. `fn.get_property(x, key="source_info")` does so too.
            name: Name of the node, shown in errors and by which outputs and readers are found.
            device: Where the operator runs.
            preserve: Run the operator also if its output is not used.
        """
        ...

    @staticmethod
    def parquet(
        paths: Any,
        columns: Any,
        *,
        label: str | None = None,
        cache_bytes: int = 1073741824,
        random_shuffle: bool = False,
        shuffle_after_epoch: bool = False,
        seed: int | None = None,
        sampler: Any = None,
        num_shards: int | None = None,
        shard_id: int | None = None,
        sharding: Literal["strided", "contiguous"] | None = None,
        stick_to_shard: bool = False,
        pad_last_batch: bool = False,
        on_error: Literal["raise", "replace", "skip"] | None = None,
        initial_fill: int = 1024,
        prefetch_queue_depth: int = 1,
        read_ahead: bool = False,
        skip_cached_images: bool = False,
        dont_use_mmap: bool = False,
        lazy_init: bool = False,
        tensor_init_bytes: int = 1048576,
        shuffle_after_epoch_seed: int | None = None,
        name: str | None = None,
        device: Literal["cpu", "gpu", "mixed"] | None = None,
        preserve: bool = False,
        bytes_per_sample_hint: int | Sequence[int] | npt.NDArray[np.generic] = 0,
    ) -> DataNode:
        """Read columns of Parquet files. Outputs: a dict with a node per column.

        Bytes and texts are uint8 ``(N,)``; so are images in the form of Hugging Face, a struct of bytes and a path. A
        number is ``(1,)`` of its type, and a list of numbers ``(N,)``. A missing value has no elements.

        Parquet compresses rows in groups, so one row costs the decoding of its group. Threads decode groups before their
        rows are needed, and keep them in memory up to `cache_bytes`. Shuffle with `samplers.Windowed`, which takes the
        rows of a window from few groups: ``sampler=samplers.Windowed(block=1000, window=16)`` for groups of 1000 rows. A
        shuffle of the whole data set suits data whose groups fit into `cache_bytes`. Numbers are read into memory when the
        pipeline is built.

        Args:
            columns: Names of the columns to read, such as ["image", "label"].
            paths: Parquet file or its address, or a list of files with the same columns.
            label: Column of class labels among `columns`: int32, and samplers balance by it.
            cache_bytes: Memory for decoded row groups, in bytes.
            random_shuffle: Another order every epoch: a permutation of the whole data set.
            shuffle_after_epoch: Like random_shuffle, over the whole data set: contiguous shards too have other
                samples every epoch.
            seed: Seed of the order; by default the pipeline's.
            sampler: Samples of an epoch and their order: one of stoker.samplers, a sequence of numbers, or any
                iterable, such as a torch.utils.data.Sampler.
            num_shards: Number of parts that every epoch is divided into. By default 1, or with the pipeline's
                `shards="launcher"` the number of processes (WORLD_SIZE).
            shard_id: First part that this pipeline takes; see `stick_to_shard`. By default 0, or with the
                pipeline's `shards="launcher"` this process's number (RANK).
            sharding: strided: part k is the positions k, k + num_shards, ... of the epoch's order, so that a state
                restores with another num_shards too. contiguous: as DALI, from floor(k * size / num_shards) on. By
                default strided, unless parts are both shuffled and kept (random_shuffle with stick_to_shard).
            stick_to_shard: Take the same part in every epoch; by default the next one.
            pad_last_batch: Complete a part, and the last batch of an epoch, by repeating the part's last sample. By
                default the part is completed with the following samples, and the batch with the next epoch's first
                ones.
            on_error: In a pipeline: policy for a row that fails here: raise, replace or skip; by default what the
                pipeline's `on_error` says.
            initial_fill: No effect: a shuffle is over the whole data set, not over a buffer.
            prefetch_queue_depth: No effect: the pipeline's prefetch_queue_depth holds.
            read_ahead: No effect: rows are prefetched with their batches.
            skip_cached_images: No effect: there is no cache of decoded images.
            dont_use_mmap: No effect: files are always read, never mapped.
            lazy_init: No effect: the index is read when the pipeline is built.
            tensor_init_bytes: No effect: memory is planned.
            shuffle_after_epoch_seed: No effect: `seed` decides the order of shuffled epochs.
            name: Name of the node, shown in errors and by which outputs and readers are found.
            device: Where the operator runs.
            preserve: Run the operator also if its output is not used.
        """
        ...

    @staticmethod
    def partner(
        reader: Any,
        *,
        number: int = 0,
        on_error: Literal["raise", "replace", "skip"] | None = None,
        name: str | None = None,
        device: Literal["cpu", "gpu", "mixed"] | None = None,
        preserve: bool = False,
        bytes_per_sample_hint: int | Sequence[int] | npt.NDArray[np.generic] = 0,
    ) -> tuple[DataNode, DataNode]:
        """Read another sample for each row of a reader: the second image of `mixup`, `cutmix` and `mosaic`.

        Usage: ``others, other_labels = fn.readers.partner(files)`` with an output of ``fn.readers.file``, which returned
        ``files, labels``. Outputs: those of the reader, of the sample at another position of the epoch's order. The row key
        draws this position, among all others of the epoch and all shards. So a row has the same partner whatever the batch
        size and the number of shards. Different ``number`` give different partners. An epoch of one sample has itself as
        partner.

        The reader needs an order with random access and a length: no streams, no endless samplers, no data from Python.

        Args:
            reader: An output of the reader, one of them.
            number: Number of the partner, from 0; each is another draw.
            on_error: In a pipeline: policy for a row that fails here: raise, replace or skip; by default what the
                pipeline's `on_error` says.
            name: Name of the node, shown in errors and by which outputs and readers are found.
            device: Where the operator runs.
            preserve: Run the operator also if its output is not used.
        """
        ...

    @staticmethod
    def sequence(
        *,
        file_root: str | PathLike[str],
        sequence_length: int,
        step: int = 1,
        stride: int = 1,
        image_type: Any = "RGB",
        random_shuffle: bool = False,
        shuffle_after_epoch: bool = False,
        seed: int | None = None,
        sampler: Any = None,
        num_shards: int | None = None,
        shard_id: int | None = None,
        sharding: Literal["strided", "contiguous"] | None = None,
        stick_to_shard: bool = False,
        pad_last_batch: bool = False,
        on_error: Literal["raise", "replace", "skip"] | None = None,
        initial_fill: int = 1024,
        prefetch_queue_depth: int = 1,
        read_ahead: bool = False,
        skip_cached_images: bool = False,
        dont_use_mmap: bool = False,
        lazy_init: bool = False,
        tensor_init_bytes: int = 1048576,
        shuffle_after_epoch_seed: int | None = None,
        name: str | None = None,
        device: Literal["cpu", "gpu", "mixed"] | None = None,
        preserve: bool = False,
        bytes_per_sample_hint: int | Sequence[int] | npt.NDArray[np.generic] = 0,
    ) -> DataNode:
        """Read sequences of frames, each frame an image file. Output: uint8 FHWC.

        Every sub-folder of `file_root` is a stream, whose frames are its image files in lexicographic order. A sequence has
        `sequence_length` frames, `stride` frames apart; sequences of a stream begin `step` frames apart. Incomplete
        sequences are left out. The frames of a sequence must have one size.

        Args:
            file_root: Folder with one sub-folder per stream, or its address in a store.
            sequence_length: Number of frames of a sequence.
            step: Distance between the first frames of consecutive sequences.
            stride: Distance between consecutive frames of a sequence.
            image_type: Color space of the frames, as of `decoders.image`: types.RGB, types.GRAY.
            random_shuffle: Another order every epoch: a permutation of the whole data set.
            shuffle_after_epoch: Like random_shuffle, over the whole data set: contiguous shards too have other
                samples every epoch.
            seed: Seed of the order; by default the pipeline's.
            sampler: Samples of an epoch and their order: one of stoker.samplers, a sequence of numbers, or any
                iterable, such as a torch.utils.data.Sampler.
            num_shards: Number of parts that every epoch is divided into. By default 1, or with the pipeline's
                `shards="launcher"` the number of processes (WORLD_SIZE).
            shard_id: First part that this pipeline takes; see `stick_to_shard`. By default 0, or with the
                pipeline's `shards="launcher"` this process's number (RANK).
            sharding: strided: part k is the positions k, k + num_shards, ... of the epoch's order, so that a state
                restores with another num_shards too. contiguous: as DALI, from floor(k * size / num_shards) on. By
                default strided, unless parts are both shuffled and kept (random_shuffle with stick_to_shard).
            stick_to_shard: Take the same part in every epoch; by default the next one.
            pad_last_batch: Complete a part, and the last batch of an epoch, by repeating the part's last sample. By
                default the part is completed with the following samples, and the batch with the next epoch's first
                ones.
            on_error: In a pipeline: policy for a row that fails here: raise, replace or skip; by default what the
                pipeline's `on_error` says.
            initial_fill: No effect: a shuffle is over the whole data set, not over a buffer.
            prefetch_queue_depth: No effect: the pipeline's prefetch_queue_depth holds.
            read_ahead: No effect: rows are prefetched with their batches.
            skip_cached_images: No effect: there is no cache of decoded images.
            dont_use_mmap: No effect: files are always read, never mapped.
            lazy_init: No effect: the index is read when the pipeline is built.
            tensor_init_bytes: No effect: memory is planned.
            shuffle_after_epoch_seed: No effect: `seed` decides the order of shuffled epochs.
            name: Name of the node, shown in errors and by which outputs and readers are found.
            device: Where the operator runs.
            preserve: Run the operator also if its output is not used.
        """
        ...

    @staticmethod
    def tfrecord(
        path: Any,
        index_path: Any = None,
        features: Any = None,
        *,
        check_crc: bool = True,
        use_o_direct: bool = False,
        random_shuffle: bool = False,
        shuffle_after_epoch: bool = False,
        seed: int | None = None,
        sampler: Any = None,
        num_shards: int | None = None,
        shard_id: int | None = None,
        sharding: Literal["strided", "contiguous"] | None = None,
        stick_to_shard: bool = False,
        pad_last_batch: bool = False,
        on_error: Literal["raise", "replace", "skip"] | None = None,
        initial_fill: int = 1024,
        prefetch_queue_depth: int = 1,
        read_ahead: bool = False,
        skip_cached_images: bool = False,
        dont_use_mmap: bool = False,
        lazy_init: bool = False,
        tensor_init_bytes: int = 1048576,
        shuffle_after_epoch_seed: int | None = None,
        name: str | None = None,
        device: Literal["cpu", "gpu", "mixed"] | None = None,
        preserve: bool = False,
        bytes_per_sample_hint: int | Sequence[int] | npt.NDArray[np.generic] = 0,
    ) -> DataNode:
        """Read features of ``tf.train.Example`` records in TFRecord files. Output: a dict with a node per feature.

        A string is uint8 ``(N,)``: the bytes of an encoded image, for example. Numbers are float32 or int64, with the
        declared shape, or for a ``VarLenFeature`` with shape ``(N, *partial_shape)``.

        No index files are needed: the first pipeline over a file finds its records, in one pass over their lengths, and
        keeps the result in Stoker's cache folder. Records come in the order of the files. The checksums of records are
        compared. A record with a wrong checksum, a feature of another type, and a missing feature without a default value
        are errors of their rows, for which `on_error` holds.

        Args:
            path: TFRecord file, or a list of files; or addresses of objects (s3://, gs://, az://, https://); or a
                manifest (.manifest), which `stoker index --manifest` writes.
            index_path: Index file of each file, with "offset size" per line, as DALI's `tfrecord2idx` writes them.
                By default the records are found without one.
            features: Features by name: a dict of `stoker.tfrecord.FixedLenFeature` and `VarLenFeature`.
            check_crc: Compare the checksums of the data.
            use_o_direct: Only False: files are read through the page cache.
            random_shuffle: Another order every epoch: a permutation of the whole data set.
            shuffle_after_epoch: Like random_shuffle, over the whole data set: contiguous shards too have other
                samples every epoch.
            seed: Seed of the order; by default the pipeline's.
            sampler: Samples of an epoch and their order: one of stoker.samplers, a sequence of numbers, or any
                iterable, such as a torch.utils.data.Sampler.
            num_shards: Number of parts that every epoch is divided into. By default 1, or with the pipeline's
                `shards="launcher"` the number of processes (WORLD_SIZE).
            shard_id: First part that this pipeline takes; see `stick_to_shard`. By default 0, or with the
                pipeline's `shards="launcher"` this process's number (RANK).
            sharding: strided: part k is the positions k, k + num_shards, ... of the epoch's order, so that a state
                restores with another num_shards too. contiguous: as DALI, from floor(k * size / num_shards) on. By
                default strided, unless parts are both shuffled and kept (random_shuffle with stick_to_shard).
            stick_to_shard: Take the same part in every epoch; by default the next one.
            pad_last_batch: Complete a part, and the last batch of an epoch, by repeating the part's last sample. By
                default the part is completed with the following samples, and the batch with the next epoch's first
                ones.
            on_error: In a pipeline: policy for a row that fails here: raise, replace or skip; by default what the
                pipeline's `on_error` says.
            initial_fill: No effect: a shuffle is over the whole data set, not over a buffer.
            prefetch_queue_depth: No effect: the pipeline's prefetch_queue_depth holds.
            read_ahead: No effect: rows are prefetched with their batches.
            skip_cached_images: No effect: there is no cache of decoded images.
            dont_use_mmap: No effect: files are always read, never mapped.
            lazy_init: No effect: the index is read when the pipeline is built.
            tensor_init_bytes: No effect: memory is planned.
            shuffle_after_epoch_seed: No effect: `seed` decides the order of shuffled epochs.
            name: Name of the node, shown in errors and by which outputs and readers are found.
            device: Where the operator runs.
            preserve: Run the operator also if its output is not used.
        """
        ...

    @overload
    @staticmethod
    def video(
        *,
        sequence_length: int,
        filenames: Any = None,
        file_root: str | PathLike[str] | None = None,
        file_list: str | PathLike[str] | None = None,
        base: str | None = None,
        labels: Any = None,
        stride: int = 1,
        uniform_sample: bool = False,
        random_crop: bool = False,
        fps: float = 0.0,
        keyframes_only: bool = False,
        size_group: int = 0,
        enable_frame_num: Literal["none", "scalar", "sequence"] = "none",
        enable_timestamps: Literal[False] = False,
        with_audio: bool = False,
        sample_rate: float | None = None,
        downmix: bool = False,
        image_type: ImageType = ImageType.RGB,
        adjust_orientation: bool = True,
        reduction: int = 1,
        initial_fill: int = 1024,
        prefetch_queue_depth: int = 1,
        read_ahead: bool = False,
        skip_cached_images: bool = False,
        dont_use_mmap: bool = False,
        lazy_init: bool = False,
        tensor_init_bytes: int = 1048576,
        step: int = -1,
        pad_sequences: bool = False,
        pad_mode: Literal["none", "constant", "edge", "reflect_1001", "reflect_101", "repeat", "symmetric", "reflect"] = "none",
        file_list_frame_num: bool = False,
        file_list_include_preceding_frame: bool = False,
        dtype: DTypeLike = DType.UINT8,
        normalized: bool = False,
        channels: int = 3,
        additional_decode_surfaces: int = 2,
        skip_vfr_check: bool = False,
        random_shuffle: bool = False,
        shuffle_after_epoch: bool = False,
        seed: int | None = None,
        sampler: Any = None,
        num_shards: int | None = None,
        shard_id: int | None = None,
        sharding: Literal["strided", "contiguous"] | None = None,
        stick_to_shard: bool = False,
        pad_last_batch: bool = False,
        on_error: Literal["raise", "replace", "skip"] | None = None,
        name: str | None = None,
        device: Literal["cpu", "gpu", "mixed"] | None = None,
        preserve: bool = False,
        bytes_per_sample_hint: int | Sequence[int] | npt.NDArray[np.generic] = 0,
    ) -> tuple[DataNode, DataNode]:
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

        Args:
            filenames: Path of a video, or a list of paths.
            file_root: Folder with one sub-folder per class; with `file_list`, the folder of relative paths.
            file_list: Text file with one "path label [start [end]]" per line.
            base: Folder of relative paths in `file_list`; by default `file_root`, or that of the list. DALI's is
                the current folder.
            labels: One integer per path of `filenames`; an empty list: the index of the path.
            sequence_length: Number of frames of a clip.
            stride: Distance between consecutive frames of a clip.
            uniform_sample: One clip per file or range, of frames at equal distances from end to end.
            random_crop: One clip per file or range, at a random place, which is another one in every epoch.
            fps: Take the frames that are shown at this rate per second: `sequence_length`, `stride` and `step`
                count those; 0: all frames.
            keyframes_only: Take key frames only, which need no other frame: `sequence_length`, `stride` and `step`
                count those.
            size_group: Positions in the order whose clips have frames of one size, for batches of one size without
                resizing: the batch size times the number of shards. 0: clips of all sizes mix.
            enable_frame_num: Return the number of the first frame ("scalar"), or of all ("sequence").
            enable_timestamps: Return the seconds from the file's first frame to each frame.
            with_audio: Return the audio of each clip too, float32 `(samples, channels)`, and its sampling rate.
            sample_rate: Resample the audio to this rate in Hz; by default each file keeps its own.
            downmix: Return the mean over the audio's channels, without their axis.
            image_type: Channels: types.RGB, BGR, or YCbCr (as stored, in 8 bits).
            adjust_orientation: Turn the frames as the file says that players do.
            reduction: Decode at 1/2, 1/4 or 1/8 of the height and width, which is faster, with 2, 4 or 8, where the
                codec allows it: MPEG-1, -2 and -4, H.263, FLV, WMV and Motion JPEG.
            initial_fill: No effect: a shuffle is over the whole data set, not over a buffer.
            prefetch_queue_depth: No effect: the pipeline's prefetch_queue_depth holds.
            read_ahead: No effect: rows are prefetched with their batches.
            skip_cached_images: No effect: there is no cache of decoded frames.
            dont_use_mmap: No effect: files are always read, never mapped.
            lazy_init: No effect: the files are indexed when the pipeline is built.
            tensor_init_bytes: No effect: memory is planned.
            step: Distance between the first frames of consecutive clips; -1: `sequence_length`.
            pad_sequences: Complete clips at the end with frames of zeros, instead of leaving them out.
            pad_mode: Frames that complete clips at the end: constant zeros, the last frame, or mirrored ones.
            file_list_frame_num: Starts and ends in `file_list` are frames instead of seconds.
            file_list_include_preceding_frame: A start between two frames means the earlier one, and an end the
                later one.
            dtype: Element type: UINT8; UINT16 with all bits of the samples, 65535 for white; or FLOAT of the bytes.
            normalized: Values from 0 to 1, with `dtype` FLOAT.
            channels: Number of channels: 3.
            additional_decode_surfaces: No effect: decoders get the surfaces that they need.
            skip_vfr_check: No effect: frames are found by their times.
            random_shuffle: Another order every epoch: a permutation of the whole data set.
            shuffle_after_epoch: Like random_shuffle, over the whole data set: contiguous shards too have other
                samples every epoch.
            seed: Seed of the order; by default the pipeline's.
            sampler: Samples of an epoch and their order: one of stoker.samplers, a sequence of numbers, or any
                iterable, such as a torch.utils.data.Sampler.
            num_shards: Number of parts that every epoch is divided into. By default 1, or with the pipeline's
                `shards="launcher"` the number of processes (WORLD_SIZE).
            shard_id: First part that this pipeline takes; see `stick_to_shard`. By default 0, or with the
                pipeline's `shards="launcher"` this process's number (RANK).
            sharding: strided: part k is the positions k, k + num_shards, ... of the epoch's order, so that a state
                restores with another num_shards too. contiguous: as DALI, from floor(k * size / num_shards) on. By
                default strided, unless parts are both shuffled and kept (random_shuffle with stick_to_shard).
            stick_to_shard: Take the same part in every epoch; by default the next one.
            pad_last_batch: Complete a part, and the last batch of an epoch, by repeating the part's last sample. By
                default the part is completed with the following samples, and the batch with the next epoch's first
                ones.
            on_error: In a pipeline: policy for a row that fails here: raise, replace or skip; by default what the
                pipeline's `on_error` says.
            name: Name of the node, shown in errors and by which outputs and readers are found.
            device: Where the operator runs.
            preserve: Run the operator also if its output is not used.
        """
        ...

    @overload
    @staticmethod
    def video(
        *,
        sequence_length: int,
        filenames: Any = None,
        file_root: str | PathLike[str] | None = None,
        file_list: str | PathLike[str] | None = None,
        base: str | None = None,
        labels: Any = None,
        stride: int = 1,
        uniform_sample: bool = False,
        random_crop: bool = False,
        fps: float = 0.0,
        keyframes_only: bool = False,
        size_group: int = 0,
        enable_frame_num: Literal["none", "scalar", "sequence"] = "none",
        enable_timestamps: Literal[True],
        with_audio: bool = False,
        sample_rate: float | None = None,
        downmix: bool = False,
        image_type: ImageType = ImageType.RGB,
        adjust_orientation: bool = True,
        reduction: int = 1,
        initial_fill: int = 1024,
        prefetch_queue_depth: int = 1,
        read_ahead: bool = False,
        skip_cached_images: bool = False,
        dont_use_mmap: bool = False,
        lazy_init: bool = False,
        tensor_init_bytes: int = 1048576,
        step: int = -1,
        pad_sequences: bool = False,
        pad_mode: Literal["none", "constant", "edge", "reflect_1001", "reflect_101", "repeat", "symmetric", "reflect"] = "none",
        file_list_frame_num: bool = False,
        file_list_include_preceding_frame: bool = False,
        dtype: DTypeLike = DType.UINT8,
        normalized: bool = False,
        channels: int = 3,
        additional_decode_surfaces: int = 2,
        skip_vfr_check: bool = False,
        random_shuffle: bool = False,
        shuffle_after_epoch: bool = False,
        seed: int | None = None,
        sampler: Any = None,
        num_shards: int | None = None,
        shard_id: int | None = None,
        sharding: Literal["strided", "contiguous"] | None = None,
        stick_to_shard: bool = False,
        pad_last_batch: bool = False,
        on_error: Literal["raise", "replace", "skip"] | None = None,
        name: str | None = None,
        device: Literal["cpu", "gpu", "mixed"] | None = None,
        preserve: bool = False,
        bytes_per_sample_hint: int | Sequence[int] | npt.NDArray[np.generic] = 0,
    ) -> tuple[DataNode, DataNode, DataNode]:
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

        Args:
            filenames: Path of a video, or a list of paths.
            file_root: Folder with one sub-folder per class; with `file_list`, the folder of relative paths.
            file_list: Text file with one "path label [start [end]]" per line.
            base: Folder of relative paths in `file_list`; by default `file_root`, or that of the list. DALI's is
                the current folder.
            labels: One integer per path of `filenames`; an empty list: the index of the path.
            sequence_length: Number of frames of a clip.
            stride: Distance between consecutive frames of a clip.
            uniform_sample: One clip per file or range, of frames at equal distances from end to end.
            random_crop: One clip per file or range, at a random place, which is another one in every epoch.
            fps: Take the frames that are shown at this rate per second: `sequence_length`, `stride` and `step`
                count those; 0: all frames.
            keyframes_only: Take key frames only, which need no other frame: `sequence_length`, `stride` and `step`
                count those.
            size_group: Positions in the order whose clips have frames of one size, for batches of one size without
                resizing: the batch size times the number of shards. 0: clips of all sizes mix.
            enable_frame_num: Return the number of the first frame ("scalar"), or of all ("sequence").
            enable_timestamps: Return the seconds from the file's first frame to each frame.
            with_audio: Return the audio of each clip too, float32 `(samples, channels)`, and its sampling rate.
            sample_rate: Resample the audio to this rate in Hz; by default each file keeps its own.
            downmix: Return the mean over the audio's channels, without their axis.
            image_type: Channels: types.RGB, BGR, or YCbCr (as stored, in 8 bits).
            adjust_orientation: Turn the frames as the file says that players do.
            reduction: Decode at 1/2, 1/4 or 1/8 of the height and width, which is faster, with 2, 4 or 8, where the
                codec allows it: MPEG-1, -2 and -4, H.263, FLV, WMV and Motion JPEG.
            initial_fill: No effect: a shuffle is over the whole data set, not over a buffer.
            prefetch_queue_depth: No effect: the pipeline's prefetch_queue_depth holds.
            read_ahead: No effect: rows are prefetched with their batches.
            skip_cached_images: No effect: there is no cache of decoded frames.
            dont_use_mmap: No effect: files are always read, never mapped.
            lazy_init: No effect: the files are indexed when the pipeline is built.
            tensor_init_bytes: No effect: memory is planned.
            step: Distance between the first frames of consecutive clips; -1: `sequence_length`.
            pad_sequences: Complete clips at the end with frames of zeros, instead of leaving them out.
            pad_mode: Frames that complete clips at the end: constant zeros, the last frame, or mirrored ones.
            file_list_frame_num: Starts and ends in `file_list` are frames instead of seconds.
            file_list_include_preceding_frame: A start between two frames means the earlier one, and an end the
                later one.
            dtype: Element type: UINT8; UINT16 with all bits of the samples, 65535 for white; or FLOAT of the bytes.
            normalized: Values from 0 to 1, with `dtype` FLOAT.
            channels: Number of channels: 3.
            additional_decode_surfaces: No effect: decoders get the surfaces that they need.
            skip_vfr_check: No effect: frames are found by their times.
            random_shuffle: Another order every epoch: a permutation of the whole data set.
            shuffle_after_epoch: Like random_shuffle, over the whole data set: contiguous shards too have other
                samples every epoch.
            seed: Seed of the order; by default the pipeline's.
            sampler: Samples of an epoch and their order: one of stoker.samplers, a sequence of numbers, or any
                iterable, such as a torch.utils.data.Sampler.
            num_shards: Number of parts that every epoch is divided into. By default 1, or with the pipeline's
                `shards="launcher"` the number of processes (WORLD_SIZE).
            shard_id: First part that this pipeline takes; see `stick_to_shard`. By default 0, or with the
                pipeline's `shards="launcher"` this process's number (RANK).
            sharding: strided: part k is the positions k, k + num_shards, ... of the epoch's order, so that a state
                restores with another num_shards too. contiguous: as DALI, from floor(k * size / num_shards) on. By
                default strided, unless parts are both shuffled and kept (random_shuffle with stick_to_shard).
            stick_to_shard: Take the same part in every epoch; by default the next one.
            pad_last_batch: Complete a part, and the last batch of an epoch, by repeating the part's last sample. By
                default the part is completed with the following samples, and the batch with the next epoch's first
                ones.
            on_error: In a pipeline: policy for a row that fails here: raise, replace or skip; by default what the
                pipeline's `on_error` says.
            name: Name of the node, shown in errors and by which outputs and readers are found.
            device: Where the operator runs.
            preserve: Run the operator also if its output is not used.
        """
        ...

    @overload
    @staticmethod
    def video_resize(
        *,
        sequence_length: int,
        interp_type: InterpType | DataNode = InterpType.INTERP_LINEAR,
        min_filter: InterpType | DataNode | None = None,
        mag_filter: InterpType | DataNode | None = None,
        antialias: bool = True,
        minibatch_size: int = 32,
        temp_buffer_hint: int = 0,
        size: float | Sequence[float | DataNode] | npt.NDArray[np.generic] | DataNode | None = None,
        resize_x: float | DataNode | None = None,
        resize_y: float | DataNode | None = None,
        resize_shorter: float | DataNode | None = None,
        resize_longer: float | DataNode | None = None,
        resize_z: float | DataNode | None = None,
        max_size: float | Sequence[float] | npt.NDArray[np.generic] | None = None,
        mode: Literal["default", "stretch", "not_larger", "not_smaller"] = "default",
        subpixel_scale: bool = False,
        roi_start: float | Sequence[float | DataNode] | npt.NDArray[np.generic] | DataNode | None = None,
        roi_end: float | Sequence[float | DataNode] | npt.NDArray[np.generic] | DataNode | None = None,
        roi_relative: bool = False,
        filenames: Any = None,
        file_root: str | PathLike[str] | None = None,
        file_list: str | PathLike[str] | None = None,
        base: str | None = None,
        labels: Any = None,
        stride: int = 1,
        uniform_sample: bool = False,
        random_crop: bool = False,
        fps: float = 0.0,
        keyframes_only: bool = False,
        size_group: int = 0,
        enable_frame_num: Literal["none", "scalar", "sequence"] = "none",
        enable_timestamps: Literal[False] = False,
        with_audio: bool = False,
        sample_rate: float | None = None,
        downmix: bool = False,
        image_type: ImageType = ImageType.RGB,
        adjust_orientation: bool = True,
        reduction: int = 1,
        initial_fill: int = 1024,
        prefetch_queue_depth: int = 1,
        read_ahead: bool = False,
        skip_cached_images: bool = False,
        dont_use_mmap: bool = False,
        lazy_init: bool = False,
        tensor_init_bytes: int = 1048576,
        step: int = -1,
        pad_sequences: bool = False,
        pad_mode: Literal["none", "constant", "edge", "reflect_1001", "reflect_101", "repeat", "symmetric", "reflect"] = "none",
        file_list_frame_num: bool = False,
        file_list_include_preceding_frame: bool = False,
        dtype: DTypeLike = DType.UINT8,
        normalized: bool = False,
        channels: int = 3,
        additional_decode_surfaces: int = 2,
        skip_vfr_check: bool = False,
        random_shuffle: bool = False,
        shuffle_after_epoch: bool = False,
        seed: int | None = None,
        sampler: Any = None,
        num_shards: int | None = None,
        shard_id: int | None = None,
        sharding: Literal["strided", "contiguous"] | None = None,
        stick_to_shard: bool = False,
        pad_last_batch: bool = False,
        on_error: Literal["raise", "replace", "skip"] | None = None,
        name: str | None = None,
        device: Literal["cpu", "gpu", "mixed"] | None = None,
        preserve: bool = False,
        bytes_per_sample_hint: int | Sequence[int] | npt.NDArray[np.generic] = 0,
    ) -> tuple[DataNode, DataNode]:
        """Read clips of videos and resize their frames. Outputs: those of `readers.video`.

        The arguments are those of `readers.video` and of `resize`, whose filters and sizes these are: the frames are those
        that `resize` makes of the frames of `readers.video`. With `dtype` FLOAT they are computed in float32 and not
        rounded.

        Args:
            interp_type: Filter for shrinking and enlarging, one of `types.INTERP_*`.
            min_filter: Filter for shrinking.
            mag_filter: Filter for enlarging.
            antialias: Widen the filter when shrinking, as Pillow does.
            size: Output (height, width) in pixels, of a volume (depth, height, width), or one number for all; 0:
                not given.
            resize_x: Output width in pixels; 0: not given.
            resize_y: Output height in pixels; 0: not given.
            resize_shorter: Output length of the shorter side in pixels; keeps the aspect ratio.
            resize_longer: Output length of the longer side in pixels; keeps the aspect ratio.
            resize_z: Output depth of a volume in pixels; 0: not given.
            max_size: Limit of the output size in pixels, one or one per axis.
            mode: default: a size that is not given keeps the aspect ratio; stretch: it keeps its extent;
                not_larger, not_smaller: keep the aspect ratio within or around the size.
            subpixel_scale: True adapts the region, about its centre, so that the scale is that of the unrounded
                size.
            roi_start: Region's (y, x) or (z, y, x) start in the input, in pixels.
            roi_end: Region's (y, x) or (z, y, x) end, in pixels; before the start: mirrored.
            roi_relative: Whether the region is in shares of the input's extents (0 to 1) instead of pixels.
            filenames: Path of a video, or a list of paths.
            file_root: Folder with one sub-folder per class; with `file_list`, the folder of relative paths.
            file_list: Text file with one "path label [start [end]]" per line.
            base: Folder of relative paths in `file_list`; by default `file_root`, or that of the list. DALI's is
                the current folder.
            labels: One integer per path of `filenames`; an empty list: the index of the path.
            sequence_length: Number of frames of a clip.
            stride: Distance between consecutive frames of a clip.
            uniform_sample: One clip per file or range, of frames at equal distances from end to end.
            random_crop: One clip per file or range, at a random place, which is another one in every epoch.
            fps: Take the frames that are shown at this rate per second: `sequence_length`, `stride` and `step`
                count those; 0: all frames.
            keyframes_only: Take key frames only, which need no other frame: `sequence_length`, `stride` and `step`
                count those.
            size_group: Positions in the order whose clips have frames of one size, for batches of one size without
                resizing: the batch size times the number of shards. 0: clips of all sizes mix.
            enable_frame_num: Return the number of the first frame ("scalar"), or of all ("sequence").
            enable_timestamps: Return the seconds from the file's first frame to each frame.
            with_audio: Return the audio of each clip too, float32 `(samples, channels)`, and its sampling rate.
            sample_rate: Resample the audio to this rate in Hz; by default each file keeps its own.
            downmix: Return the mean over the audio's channels, without their axis.
            image_type: Channels: types.RGB, BGR, or YCbCr (as stored, in 8 bits).
            adjust_orientation: Turn the frames as the file says that players do.
            reduction: Decode at 1/2, 1/4 or 1/8 of the height and width, which is faster, with 2, 4 or 8, where the
                codec allows it: MPEG-1, -2 and -4, H.263, FLV, WMV and Motion JPEG.
            initial_fill: No effect: a shuffle is over the whole data set, not over a buffer.
            prefetch_queue_depth: No effect: the pipeline's prefetch_queue_depth holds.
            read_ahead: No effect: rows are prefetched with their batches.
            skip_cached_images: No effect: there is no cache of decoded frames.
            dont_use_mmap: No effect: files are always read, never mapped.
            lazy_init: No effect: the files are indexed when the pipeline is built.
            tensor_init_bytes: No effect: memory is planned.
            step: Distance between the first frames of consecutive clips; -1: `sequence_length`.
            pad_sequences: Complete clips at the end with frames of zeros, instead of leaving them out.
            pad_mode: Frames that complete clips at the end: constant zeros, the last frame, or mirrored ones.
            file_list_frame_num: Starts and ends in `file_list` are frames instead of seconds.
            file_list_include_preceding_frame: A start between two frames means the earlier one, and an end the
                later one.
            dtype: Element type: UINT8; UINT16 with all bits of the samples, 65535 for white; or FLOAT of the bytes.
            normalized: Values from 0 to 1, with `dtype` FLOAT.
            channels: Number of channels: 3.
            additional_decode_surfaces: No effect: decoders get the surfaces that they need.
            skip_vfr_check: No effect: frames are found by their times.
            random_shuffle: Another order every epoch: a permutation of the whole data set.
            shuffle_after_epoch: Like random_shuffle, over the whole data set: contiguous shards too have other
                samples every epoch.
            seed: Seed of the order; by default the pipeline's.
            sampler: Samples of an epoch and their order: one of stoker.samplers, a sequence of numbers, or any
                iterable, such as a torch.utils.data.Sampler.
            num_shards: Number of parts that every epoch is divided into. By default 1, or with the pipeline's
                `shards="launcher"` the number of processes (WORLD_SIZE).
            shard_id: First part that this pipeline takes; see `stick_to_shard`. By default 0, or with the
                pipeline's `shards="launcher"` this process's number (RANK).
            sharding: strided: part k is the positions k, k + num_shards, ... of the epoch's order, so that a state
                restores with another num_shards too. contiguous: as DALI, from floor(k * size / num_shards) on. By
                default strided, unless parts are both shuffled and kept (random_shuffle with stick_to_shard).
            stick_to_shard: Take the same part in every epoch; by default the next one.
            pad_last_batch: Complete a part, and the last batch of an epoch, by repeating the part's last sample. By
                default the part is completed with the following samples, and the batch with the next epoch's first
                ones.
            on_error: In a pipeline: policy for a row that fails here: raise, replace or skip; by default what the
                pipeline's `on_error` says.
            name: Name of the node, shown in errors and by which outputs and readers are found.
            device: Where the operator runs.
            preserve: Run the operator also if its output is not used.
        """
        ...

    @overload
    @staticmethod
    def video_resize(
        *,
        sequence_length: int,
        interp_type: InterpType | DataNode = InterpType.INTERP_LINEAR,
        min_filter: InterpType | DataNode | None = None,
        mag_filter: InterpType | DataNode | None = None,
        antialias: bool = True,
        minibatch_size: int = 32,
        temp_buffer_hint: int = 0,
        size: float | Sequence[float | DataNode] | npt.NDArray[np.generic] | DataNode | None = None,
        resize_x: float | DataNode | None = None,
        resize_y: float | DataNode | None = None,
        resize_shorter: float | DataNode | None = None,
        resize_longer: float | DataNode | None = None,
        resize_z: float | DataNode | None = None,
        max_size: float | Sequence[float] | npt.NDArray[np.generic] | None = None,
        mode: Literal["default", "stretch", "not_larger", "not_smaller"] = "default",
        subpixel_scale: bool = False,
        roi_start: float | Sequence[float | DataNode] | npt.NDArray[np.generic] | DataNode | None = None,
        roi_end: float | Sequence[float | DataNode] | npt.NDArray[np.generic] | DataNode | None = None,
        roi_relative: bool = False,
        filenames: Any = None,
        file_root: str | PathLike[str] | None = None,
        file_list: str | PathLike[str] | None = None,
        base: str | None = None,
        labels: Any = None,
        stride: int = 1,
        uniform_sample: bool = False,
        random_crop: bool = False,
        fps: float = 0.0,
        keyframes_only: bool = False,
        size_group: int = 0,
        enable_frame_num: Literal["none", "scalar", "sequence"] = "none",
        enable_timestamps: Literal[True],
        with_audio: bool = False,
        sample_rate: float | None = None,
        downmix: bool = False,
        image_type: ImageType = ImageType.RGB,
        adjust_orientation: bool = True,
        reduction: int = 1,
        initial_fill: int = 1024,
        prefetch_queue_depth: int = 1,
        read_ahead: bool = False,
        skip_cached_images: bool = False,
        dont_use_mmap: bool = False,
        lazy_init: bool = False,
        tensor_init_bytes: int = 1048576,
        step: int = -1,
        pad_sequences: bool = False,
        pad_mode: Literal["none", "constant", "edge", "reflect_1001", "reflect_101", "repeat", "symmetric", "reflect"] = "none",
        file_list_frame_num: bool = False,
        file_list_include_preceding_frame: bool = False,
        dtype: DTypeLike = DType.UINT8,
        normalized: bool = False,
        channels: int = 3,
        additional_decode_surfaces: int = 2,
        skip_vfr_check: bool = False,
        random_shuffle: bool = False,
        shuffle_after_epoch: bool = False,
        seed: int | None = None,
        sampler: Any = None,
        num_shards: int | None = None,
        shard_id: int | None = None,
        sharding: Literal["strided", "contiguous"] | None = None,
        stick_to_shard: bool = False,
        pad_last_batch: bool = False,
        on_error: Literal["raise", "replace", "skip"] | None = None,
        name: str | None = None,
        device: Literal["cpu", "gpu", "mixed"] | None = None,
        preserve: bool = False,
        bytes_per_sample_hint: int | Sequence[int] | npt.NDArray[np.generic] = 0,
    ) -> tuple[DataNode, DataNode, DataNode]:
        """Read clips of videos and resize their frames. Outputs: those of `readers.video`.

        The arguments are those of `readers.video` and of `resize`, whose filters and sizes these are: the frames are those
        that `resize` makes of the frames of `readers.video`. With `dtype` FLOAT they are computed in float32 and not
        rounded.

        Args:
            interp_type: Filter for shrinking and enlarging, one of `types.INTERP_*`.
            min_filter: Filter for shrinking.
            mag_filter: Filter for enlarging.
            antialias: Widen the filter when shrinking, as Pillow does.
            size: Output (height, width) in pixels, of a volume (depth, height, width), or one number for all; 0:
                not given.
            resize_x: Output width in pixels; 0: not given.
            resize_y: Output height in pixels; 0: not given.
            resize_shorter: Output length of the shorter side in pixels; keeps the aspect ratio.
            resize_longer: Output length of the longer side in pixels; keeps the aspect ratio.
            resize_z: Output depth of a volume in pixels; 0: not given.
            max_size: Limit of the output size in pixels, one or one per axis.
            mode: default: a size that is not given keeps the aspect ratio; stretch: it keeps its extent;
                not_larger, not_smaller: keep the aspect ratio within or around the size.
            subpixel_scale: True adapts the region, about its centre, so that the scale is that of the unrounded
                size.
            roi_start: Region's (y, x) or (z, y, x) start in the input, in pixels.
            roi_end: Region's (y, x) or (z, y, x) end, in pixels; before the start: mirrored.
            roi_relative: Whether the region is in shares of the input's extents (0 to 1) instead of pixels.
            filenames: Path of a video, or a list of paths.
            file_root: Folder with one sub-folder per class; with `file_list`, the folder of relative paths.
            file_list: Text file with one "path label [start [end]]" per line.
            base: Folder of relative paths in `file_list`; by default `file_root`, or that of the list. DALI's is
                the current folder.
            labels: One integer per path of `filenames`; an empty list: the index of the path.
            sequence_length: Number of frames of a clip.
            stride: Distance between consecutive frames of a clip.
            uniform_sample: One clip per file or range, of frames at equal distances from end to end.
            random_crop: One clip per file or range, at a random place, which is another one in every epoch.
            fps: Take the frames that are shown at this rate per second: `sequence_length`, `stride` and `step`
                count those; 0: all frames.
            keyframes_only: Take key frames only, which need no other frame: `sequence_length`, `stride` and `step`
                count those.
            size_group: Positions in the order whose clips have frames of one size, for batches of one size without
                resizing: the batch size times the number of shards. 0: clips of all sizes mix.
            enable_frame_num: Return the number of the first frame ("scalar"), or of all ("sequence").
            enable_timestamps: Return the seconds from the file's first frame to each frame.
            with_audio: Return the audio of each clip too, float32 `(samples, channels)`, and its sampling rate.
            sample_rate: Resample the audio to this rate in Hz; by default each file keeps its own.
            downmix: Return the mean over the audio's channels, without their axis.
            image_type: Channels: types.RGB, BGR, or YCbCr (as stored, in 8 bits).
            adjust_orientation: Turn the frames as the file says that players do.
            reduction: Decode at 1/2, 1/4 or 1/8 of the height and width, which is faster, with 2, 4 or 8, where the
                codec allows it: MPEG-1, -2 and -4, H.263, FLV, WMV and Motion JPEG.
            initial_fill: No effect: a shuffle is over the whole data set, not over a buffer.
            prefetch_queue_depth: No effect: the pipeline's prefetch_queue_depth holds.
            read_ahead: No effect: rows are prefetched with their batches.
            skip_cached_images: No effect: there is no cache of decoded frames.
            dont_use_mmap: No effect: files are always read, never mapped.
            lazy_init: No effect: the files are indexed when the pipeline is built.
            tensor_init_bytes: No effect: memory is planned.
            step: Distance between the first frames of consecutive clips; -1: `sequence_length`.
            pad_sequences: Complete clips at the end with frames of zeros, instead of leaving them out.
            pad_mode: Frames that complete clips at the end: constant zeros, the last frame, or mirrored ones.
            file_list_frame_num: Starts and ends in `file_list` are frames instead of seconds.
            file_list_include_preceding_frame: A start between two frames means the earlier one, and an end the
                later one.
            dtype: Element type: UINT8; UINT16 with all bits of the samples, 65535 for white; or FLOAT of the bytes.
            normalized: Values from 0 to 1, with `dtype` FLOAT.
            channels: Number of channels: 3.
            additional_decode_surfaces: No effect: decoders get the surfaces that they need.
            skip_vfr_check: No effect: frames are found by their times.
            random_shuffle: Another order every epoch: a permutation of the whole data set.
            shuffle_after_epoch: Like random_shuffle, over the whole data set: contiguous shards too have other
                samples every epoch.
            seed: Seed of the order; by default the pipeline's.
            sampler: Samples of an epoch and their order: one of stoker.samplers, a sequence of numbers, or any
                iterable, such as a torch.utils.data.Sampler.
            num_shards: Number of parts that every epoch is divided into. By default 1, or with the pipeline's
                `shards="launcher"` the number of processes (WORLD_SIZE).
            shard_id: First part that this pipeline takes; see `stick_to_shard`. By default 0, or with the
                pipeline's `shards="launcher"` this process's number (RANK).
            sharding: strided: part k is the positions k, k + num_shards, ... of the epoch's order, so that a state
                restores with another num_shards too. contiguous: as DALI, from floor(k * size / num_shards) on. By
                default strided, unless parts are both shuffled and kept (random_shuffle with stick_to_shard).
            stick_to_shard: Take the same part in every epoch; by default the next one.
            pad_last_batch: Complete a part, and the last batch of an epoch, by repeating the part's last sample. By
                default the part is completed with the following samples, and the batch with the next epoch's first
                ones.
            on_error: In a pipeline: policy for a row that fails here: raise, replace or skip; by default what the
                pipeline's `on_error` says.
            name: Name of the node, shown in errors and by which outputs and readers are found.
            device: Where the operator runs.
            preserve: Run the operator also if its output is not used.
        """
        ...

    @staticmethod
    def webdataset(
        paths: Any,
        *,
        ext: Any,
        index_paths: Any = None,
        dtypes: Any = None,
        missing_component_behavior: str = "",
        case_sensitive_extensions: bool = True,
        random_shuffle: bool = False,
        shuffle_after_epoch: bool = False,
        seed: int | None = None,
        sampler: Any = None,
        num_shards: int | None = None,
        shard_id: int | None = None,
        sharding: Literal["strided", "contiguous"] | None = None,
        stick_to_shard: bool = False,
        pad_last_batch: bool = False,
        on_error: Literal["raise", "replace", "skip"] | None = None,
        initial_fill: int = 1024,
        prefetch_queue_depth: int = 1,
        read_ahead: bool = False,
        skip_cached_images: bool = False,
        dont_use_mmap: bool = False,
        lazy_init: bool = False,
        tensor_init_bytes: int = 1048576,
        shuffle_after_epoch_seed: int | None = None,
        origin: bool = False,
        name: str | None = None,
        device: Literal["cpu", "gpu", "mixed"] | None = None,
        preserve: bool = False,
        bytes_per_sample_hint: int | Sequence[int] | npt.NDArray[np.generic] = 0,
    ) -> DataNode:
        """Read samples from tar files in the WebDataset form. Outputs: a component per entry of `ext`.

        Adjacent members of a tar file with one name up to the first dot of its last part are a sample; the rest of the name
        is the component's extension. A component is uint8 ``(N,)``, or with `dtypes` its elements, ``(N / size,)``. If a
        sample has several members with an extension of an output, the first one is taken. Hidden files belong to no sample.

        No index files are needed: the first pipeline over a tar file finds its members, in one pass over their headers, and
        keeps the result in Stoker's cache folder. Names of any length are read, in the forms of ustar, GNU tar and pax.

        Args:
            paths: Tar file, or a list of tar files; or a manifest (.manifest), which `stoker index --manifest`
                writes.
            ext: Extension of each output, such as ["jpg", "cls"]; an entry may have several, "jpg;png".
            index_paths: Index file of each tar file, as DALI's `wds2idx` writes them. By default the members are
                found without one.
            dtypes: Element type of each output, little-endian as stored; by default uint8.
            missing_component_behavior: Policy for samples without a component of an output: "empty" (the default)
                gives no elements, "skip" leaves the sample out, "error" refuses the data set.
            case_sensitive_extensions: Whether extensions distinguish upper and lower case.
            random_shuffle: Another order every epoch: a permutation of the whole data set.
            shuffle_after_epoch: Like random_shuffle, over the whole data set: contiguous shards too have other
                samples every epoch.
            seed: Seed of the order; by default the pipeline's.
            sampler: Samples of an epoch and their order: one of stoker.samplers, a sequence of numbers, or any
                iterable, such as a torch.utils.data.Sampler.
            num_shards: Number of parts that every epoch is divided into. By default 1, or with the pipeline's
                `shards="launcher"` the number of processes (WORLD_SIZE).
            shard_id: First part that this pipeline takes; see `stick_to_shard`. By default 0, or with the
                pipeline's `shards="launcher"` this process's number (RANK).
            sharding: strided: part k is the positions k, k + num_shards, ... of the epoch's order, so that a state
                restores with another num_shards too. contiguous: as DALI, from floor(k * size / num_shards) on. By
                default strided, unless parts are both shuffled and kept (random_shuffle with stick_to_shard).
            stick_to_shard: Take the same part in every epoch; by default the next one.
            pad_last_batch: Complete a part, and the last batch of an epoch, by repeating the part's last sample. By
                default the part is completed with the following samples, and the batch with the next epoch's first
                ones.
            on_error: In a pipeline: policy for a row that fails here: raise, replace or skip; by default what the
                pipeline's `on_error` says.
            initial_fill: No effect: a shuffle is over the whole data set, not over a buffer.
            prefetch_queue_depth: No effect: the pipeline's prefetch_queue_depth holds.
            read_ahead: No effect: rows are prefetched with their batches.
            skip_cached_images: No effect: there is no cache of decoded images.
            dont_use_mmap: No effect: files are always read, never mapped.
            lazy_init: No effect: the index is read when the pipeline is built.
            tensor_init_bytes: No effect: memory is planned.
            shuffle_after_epoch_seed: No effect: `seed` decides the order of shuffled epochs.
            origin: Add a last output: the path of the sample's file as UTF-8, uint8 `(N,)`, in a container followed
                by ` at byte N`. `fn.get_property(x, key="source_info")` does so too.
            name: Name of the node, shown in errors and by which outputs and readers are found.
            device: Where the operator runs.
            preserve: Run the operator also if its output is not used.
        """
        ...

    @staticmethod
    def zip(
        paths: Any,
        *,
        extensions: Any = None,
        random_shuffle: bool = False,
        shuffle_after_epoch: bool = False,
        seed: int | None = None,
        sampler: Any = None,
        num_shards: int | None = None,
        shard_id: int | None = None,
        sharding: Literal["strided", "contiguous"] | None = None,
        stick_to_shard: bool = False,
        pad_last_batch: bool = False,
        on_error: Literal["raise", "replace", "skip"] | None = None,
        initial_fill: int = 1024,
        prefetch_queue_depth: int = 1,
        read_ahead: bool = False,
        skip_cached_images: bool = False,
        dont_use_mmap: bool = False,
        lazy_init: bool = False,
        tensor_init_bytes: int = 1048576,
        shuffle_after_epoch_seed: int | None = None,
        name: str | None = None,
        device: Literal["cpu", "gpu", "mixed"] | None = None,
        preserve: bool = False,
        bytes_per_sample_hint: int | Sequence[int] | npt.NDArray[np.generic] = 0,
    ) -> tuple[DataNode, DataNode]:
        """Read files in zip archives. Outputs: the bytes, uint8 ``(N,)``, and the label, int32 ``(1,)``.

        The archives form one tree of folders. The label is the number of a file's folder among the folders with files, in
        lexicographic order of their paths; files come in lexicographic order of their paths, as those of ``readers.file``.
        Archives must store their files without compression (``zip -0``), because parts of compressed ones cannot be read.
        Archives of more than 4 GiB (Zip64) are read too.

        Args:
            paths: Zip archive, or a list of archives.
            extensions: Extensions of the files to take, with their dot ("" for none), such as [".jpg", ".png"]. By
                default those of images: .jpg, .jpeg, .jpe, .jfif, .png, .bmp, .dib, .tif, .tiff, .pnm, .ppm, .pgm,
                .pbm, .jp2, .j2k, .webp, .gif, .avif, .heic, .heif, .jxl, .qoi.
            random_shuffle: Another order every epoch: a permutation of the whole data set.
            shuffle_after_epoch: Like random_shuffle, over the whole data set: contiguous shards too have other
                samples every epoch.
            seed: Seed of the order; by default the pipeline's.
            sampler: Samples of an epoch and their order: one of stoker.samplers, a sequence of numbers, or any
                iterable, such as a torch.utils.data.Sampler.
            num_shards: Number of parts that every epoch is divided into. By default 1, or with the pipeline's
                `shards="launcher"` the number of processes (WORLD_SIZE).
            shard_id: First part that this pipeline takes; see `stick_to_shard`. By default 0, or with the
                pipeline's `shards="launcher"` this process's number (RANK).
            sharding: strided: part k is the positions k, k + num_shards, ... of the epoch's order, so that a state
                restores with another num_shards too. contiguous: as DALI, from floor(k * size / num_shards) on. By
                default strided, unless parts are both shuffled and kept (random_shuffle with stick_to_shard).
            stick_to_shard: Take the same part in every epoch; by default the next one.
            pad_last_batch: Complete a part, and the last batch of an epoch, by repeating the part's last sample. By
                default the part is completed with the following samples, and the batch with the next epoch's first
                ones.
            on_error: In a pipeline: policy for a row that fails here: raise, replace or skip; by default what the
                pipeline's `on_error` says.
            initial_fill: No effect: a shuffle is over the whole data set, not over a buffer.
            prefetch_queue_depth: No effect: the pipeline's prefetch_queue_depth holds.
            read_ahead: No effect: rows are prefetched with their batches.
            skip_cached_images: No effect: there is no cache of decoded images.
            dont_use_mmap: No effect: files are always read, never mapped.
            lazy_init: No effect: the index is read when the pipeline is built.
            tensor_init_bytes: No effect: memory is planned.
            shuffle_after_epoch_seed: No effect: `seed` decides the order of shuffled epochs.
            name: Name of the node, shown in errors and by which outputs and readers are found.
            device: Where the operator runs.
            preserve: Run the operator also if its output is not used.
        """
        ...

class reductions:
    @staticmethod
    def max(
        x: Input,
        /,
        *,
        axes: int | Sequence[int] | npt.NDArray[np.generic] | None = None,
        axis_names: str | None = None,
        keep_dims: bool = False,
        name: str | None = None,
        device: Literal["cpu", "gpu", "mixed"] | None = None,
        preserve: bool = False,
        bytes_per_sample_hint: int | Sequence[int] | npt.NDArray[np.generic] = 0,
    ) -> DataNode:
        """Return the largest element along some axes. Input: any shape and type. Output: the same type.

        Exact. -0 is below 0. If there is a NaN, the result is NaN. That of no elements is the type's smallest value, for
        floats minus infinity.

        Args:
            axes: Axes that are reduced, negative ones from the last; by default all.
            axis_names: Names of the axes to reduce, such as HW, instead of `axes`.
            keep_dims: Keep these axes, with one element.
            name: Name of the node, shown in errors and by which outputs and readers are found.
            device: Where the operator runs.
            preserve: Run the operator also if its output is not used.
        """
        ...

    @staticmethod
    def mean(
        x: Input,
        /,
        *,
        axes: int | Sequence[int] | npt.NDArray[np.generic] | None = None,
        axis_names: str | None = None,
        keep_dims: bool = False,
        dtype: DTypeLike | None = None,
        name: str | None = None,
        device: Literal["cpu", "gpu", "mixed"] | None = None,
        preserve: bool = False,
        bytes_per_sample_hint: int | Sequence[int] | npt.NDArray[np.generic] = 0,
    ) -> DataNode:
        """Compute the mean along some axes. Input: any shape and type. Output: float32, or ``dtype``.

        The sum is in double, in a fixed order (in 32 lanes).

        Args:
            axes: Axes that are reduced, negative ones from the last; by default all.
            axis_names: Names of the axes to reduce, such as HW, instead of `axes`.
            keep_dims: Keep these axes, with one element.
            dtype: Element type of the output; by default float32.
            name: Name of the node, shown in errors and by which outputs and readers are found.
            device: Where the operator runs.
            preserve: Run the operator also if its output is not used.
        """
        ...

    @staticmethod
    def mean_square(
        x: Input,
        /,
        *,
        axes: int | Sequence[int] | npt.NDArray[np.generic] | None = None,
        axis_names: str | None = None,
        keep_dims: bool = False,
        dtype: DTypeLike | None = None,
        name: str | None = None,
        device: Literal["cpu", "gpu", "mixed"] | None = None,
        preserve: bool = False,
        bytes_per_sample_hint: int | Sequence[int] | npt.NDArray[np.generic] = 0,
    ) -> DataNode:
        """Compute the mean of the squares along some axes. Input: any shape and type. Output: float32, or ``dtype``.

        The sum is in double, in a fixed order (in 32 lanes).

        Args:
            axes: Axes that are reduced, negative ones from the last; by default all.
            axis_names: Names of the axes to reduce, such as HW, instead of `axes`.
            keep_dims: Keep these axes, with one element.
            dtype: Element type of the output; by default float32.
            name: Name of the node, shown in errors and by which outputs and readers are found.
            device: Where the operator runs.
            preserve: Run the operator also if its output is not used.
        """
        ...

    @staticmethod
    def min(
        x: Input,
        /,
        *,
        axes: int | Sequence[int] | npt.NDArray[np.generic] | None = None,
        axis_names: str | None = None,
        keep_dims: bool = False,
        name: str | None = None,
        device: Literal["cpu", "gpu", "mixed"] | None = None,
        preserve: bool = False,
        bytes_per_sample_hint: int | Sequence[int] | npt.NDArray[np.generic] = 0,
    ) -> DataNode:
        """Return the smallest element along some axes. Input: any shape and type. Output: the same type.

        Exact. -0 is below 0. If there is a NaN, the result is NaN. That of no elements is the type's largest value, for
        floats infinity.

        Args:
            axes: Axes that are reduced, negative ones from the last; by default all.
            axis_names: Names of the axes to reduce, such as HW, instead of `axes`.
            keep_dims: Keep these axes, with one element.
            name: Name of the node, shown in errors and by which outputs and readers are found.
            device: Where the operator runs.
            preserve: Run the operator also if its output is not used.
        """
        ...

    @staticmethod
    def rms(
        x: Input,
        /,
        *,
        axes: int | Sequence[int] | npt.NDArray[np.generic] | None = None,
        axis_names: str | None = None,
        keep_dims: bool = False,
        dtype: DTypeLike | None = None,
        name: str | None = None,
        device: Literal["cpu", "gpu", "mixed"] | None = None,
        preserve: bool = False,
        bytes_per_sample_hint: int | Sequence[int] | npt.NDArray[np.generic] = 0,
    ) -> DataNode:
        """Compute the root of the mean of the squares along some axes. Input: any shape and type. Output: float32.

        The sum is in double, in a fixed order (in 32 lanes).

        Args:
            axes: Axes that are reduced, negative ones from the last; by default all.
            axis_names: Names of the axes to reduce, such as HW, instead of `axes`.
            keep_dims: Keep these axes, with one element.
            dtype: Element type of the output; by default float32.
            name: Name of the node, shown in errors and by which outputs and readers are found.
            device: Where the operator runs.
            preserve: Run the operator also if its output is not used.
        """
        ...

    @staticmethod
    def std_dev(
        x: Input,
        mean: Input = ...,
        /,
        *,
        axes: int | Sequence[int] | npt.NDArray[np.generic] | None = None,
        axis_names: str | None = None,
        keep_dims: bool = False,
        ddof: int = 0,
        name: str | None = None,
        device: Literal["cpu", "gpu", "mixed"] | None = None,
        preserve: bool = False,
        bytes_per_sample_hint: int | Sequence[int] | npt.NDArray[np.generic] = 0,
    ) -> DataNode:
        """Compute the standard deviation from a given mean along some axes. Inputs: data of any type; the mean.

        The mean is one number, or one per element of the output. Output: float32. The sum is in double, in a fixed order
        (in 32 lanes).

        Args:
            axes: Axes that are reduced, negative ones from the last; by default all.
            axis_names: Names of the axes to reduce, such as HW, instead of `axes`.
            keep_dims: Keep these axes, with one element.
            ddof: Delta degrees of freedom: the sum is divided by the number of elements minus `ddof`, or by 0 if
                that is negative; a division by 0 gives infinity, or NaN if the sum is 0.
            name: Name of the node, shown in errors and by which outputs and readers are found.
            device: Where the operator runs.
            preserve: Run the operator also if its output is not used.
        """
        ...

    @staticmethod
    def sum(
        x: Input,
        /,
        *,
        axes: int | Sequence[int] | npt.NDArray[np.generic] | None = None,
        axis_names: str | None = None,
        keep_dims: bool = False,
        dtype: DTypeLike | None = None,
        name: str | None = None,
        device: Literal["cpu", "gpu", "mixed"] | None = None,
        preserve: bool = False,
        bytes_per_sample_hint: int | Sequence[int] | npt.NDArray[np.generic] = 0,
    ) -> DataNode:
        """Compute the sum along some axes. Input: any shape and type. Output: uint64, int64, float32 or ``dtype``.

        Integers are summed exactly, modulo 2**64. Floats are summed in double, in a fixed order (in 32 lanes). Sums of
        float64 are float64.

        Args:
            axes: Axes that are reduced, negative ones from the last; by default all.
            axis_names: Names of the axes to reduce, such as HW, instead of `axes`.
            keep_dims: Keep these axes, with one element.
            dtype: Element type of the output; by default 64 bits of the input's kind, float32 for floats.
            name: Name of the node, shown in errors and by which outputs and readers are found.
            device: Where the operator runs.
            preserve: Run the operator also if its output is not used.
        """
        ...

    @staticmethod
    def variance(
        x: Input,
        mean: Input = ...,
        /,
        *,
        axes: int | Sequence[int] | npt.NDArray[np.generic] | None = None,
        axis_names: str | None = None,
        keep_dims: bool = False,
        ddof: int = 0,
        name: str | None = None,
        device: Literal["cpu", "gpu", "mixed"] | None = None,
        preserve: bool = False,
        bytes_per_sample_hint: int | Sequence[int] | npt.NDArray[np.generic] = 0,
    ) -> DataNode:
        """Compute the variance from a given mean along some axes. Inputs: data of any type; the mean.

        The mean is one number, or one per element of the output. Output: float32. The sum is in double, in a fixed order
        (in 32 lanes).

        Args:
            axes: Axes that are reduced, negative ones from the last; by default all.
            axis_names: Names of the axes to reduce, such as HW, instead of `axes`.
            keep_dims: Keep these axes, with one element.
            ddof: Delta degrees of freedom: the sum is divided by the number of elements minus `ddof`, or by 0 if
                that is negative; a division by 0 gives infinity, or NaN if the sum is 0.
            name: Name of the node, shown in errors and by which outputs and readers are found.
            device: Where the operator runs.
            preserve: Run the operator also if its output is not used.
        """
        ...

class segmentation:
    @staticmethod
    def polygon_masks(
        polygons: Input,
        vertices: Input,
        objects: Input,
        image: Input,
        /,
        *,
        name: str | None = None,
        device: Literal["cpu", "gpu", "mixed"] | None = None,
        preserve: bool = False,
        bytes_per_sample_hint: int | Sequence[int] | npt.NDArray[np.generic] = 0,
    ) -> DataNode:
        """Paint a mask for each object from its polygons, as models for instance segmentation take them.

        Inputs: polygons, int32 (P, 3): object, first vertex, end; vertices in pixels, float32 (V, 2); the objects, anything
        with an element for each along the first axis, such as boxes or labels; an image, whose height and width the masks
        get. Output: masks (N, H, W), uint8, 1 within an object's polygons, else 0. Objects without polygons have a mask of
        zeros. Polygons must not share vertices.

        `readers.coco` with `polygon_masks` reads polygons in this form, and `geometry` moves them. The pixels are those of
        pycocotools: corners are rounded to fifths of a pixel; a pixel belongs to a polygon by the number of edges above its
        centre. The operator runs on the CPU, which reads the polygons; the masks can feed operators on a GPU.

        Args:
            name: Name of the node, shown in errors and by which outputs and readers are found.
            device: Where the operator runs.
            preserve: Run the operator also if its output is not used.
        """
        ...

    @staticmethod
    def random_mask_pixel(
        mask: Input,
        /,
        *,
        foreground: int | DataNode = 0,
        threshold: float | DataNode = 0.0,
        value: int | DataNode | None = None,
        seed: int | None = None,
        name: str | None = None,
        device: Literal["cpu", "gpu", "mixed"] | None = None,
        preserve: bool = False,
        bytes_per_sample_hint: int | Sequence[int] | npt.NDArray[np.generic] = 0,
    ) -> DataNode:
        """Draw the coordinates of a pixel of a mask. Input: a mask of any type, one to eight axes. Output: a coordinate
        along each axis, int64.

        With ``foreground`` the pixel is one above ``threshold``, or equal to ``value``; all of these are equally likely. If
        there are none, and without ``foreground``, it is any pixel. A mask without pixels is an error; DALI returns numbers
        without meaning.

        The operator runs on the CPU, as in DALI: windows and shapes are computed from the coordinates before a GPU starts.

        Args:
            foreground: Take only pixels of the foreground where not 0.
            threshold: Pixels above it are the foreground.
            value: Pixels equal to it are the foreground, instead of `threshold`.
            seed: Seed of this operator's draws; by default it follows from the pipeline's.
            name: Name of the node, shown in errors and by which outputs and readers are found.
            device: Where the operator runs.
            preserve: Run the operator also if its output is not used.
        """
        ...

    @overload
    @staticmethod
    def random_object_bbox(
        mask: Input,
        /,
        *,
        background: int | DataNode = 0,
        cache_objects: bool = False,
        class_weights: float | Sequence[float | DataNode] | npt.NDArray[np.generic] | DataNode | None = None,
        classes: int | Sequence[int | DataNode] | npt.NDArray[np.generic] | DataNode | None = None,
        foreground_prob: float | DataNode = 1.0,
        format: Literal["anchor_shape", "start_end", "box"] = "anchor_shape",
        ignore_class: bool = False,
        k_largest: int | None = None,
        output_class: Literal[False] = False,
        threshold: int | Sequence[int | DataNode] | npt.NDArray[np.generic] | DataNode | None = None,
        seed: int | None = None,
        name: str | None = None,
        device: Literal["cpu", "gpu", "mixed"] | None = None,
        preserve: bool = False,
        bytes_per_sample_hint: int | Sequence[int] | npt.NDArray[np.generic] = 0,
    ) -> tuple[DataNode, DataNode]:
        """Draw an object of a label mask and return its bounding box. Input: labels of up to 32 bits, any number of axes.
        Outputs, int32: anchor and shape, start and end, or one box of both; with ``output_class`` the object's label.

        With the probability ``foreground_prob`` a class is drawn, all equally likely or by ``class_weights``, then one of
        its objects. An object is a set of pixels of one label that are joined through faces, not corners. Objects smaller
        than ``threshold`` do not count, nor those that are not among the ``k_largest`` boxes. A class without objects is
        drawn again; if there is none left, the box is the whole mask and the label the background.

        The operator runs on the CPU, as in DALI: windows and shapes are computed from the box before a GPU starts.

        Args:
            background: Label of the background; if not given and 0 is one of `classes`, the least number from 0
                that is not.
            class_weights: Weights of `classes`, or of the labels 1, 2, ... Not negative.
            classes: Labels of the foreground; by default all but `background`.
            foreground_prob: Probability of an object instead of the whole mask.
            format: Outputs: anchor_shape, start_end or box.
            ignore_class: All objects are equally likely, of whatever class.
            k_largest: Number of objects with the largest boxes that count.
            output_class: Also return the object's label.
            threshold: Least extents of a box, one for all axes or one each.
            seed: Seed of this operator's draws; by default it follows from the pipeline's.
            name: Name of the node, shown in errors and by which outputs and readers are found.
            device: Where the operator runs.
            preserve: Run the operator also if its output is not used.
        """
        ...

    @overload
    @staticmethod
    def random_object_bbox(
        mask: Input,
        /,
        *,
        background: int | DataNode = 0,
        cache_objects: bool = False,
        class_weights: float | Sequence[float | DataNode] | npt.NDArray[np.generic] | DataNode | None = None,
        classes: int | Sequence[int | DataNode] | npt.NDArray[np.generic] | DataNode | None = None,
        foreground_prob: float | DataNode = 1.0,
        format: Literal["anchor_shape", "start_end", "box"] = "anchor_shape",
        ignore_class: bool = False,
        k_largest: int | None = None,
        output_class: Literal[True],
        threshold: int | Sequence[int | DataNode] | npt.NDArray[np.generic] | DataNode | None = None,
        seed: int | None = None,
        name: str | None = None,
        device: Literal["cpu", "gpu", "mixed"] | None = None,
        preserve: bool = False,
        bytes_per_sample_hint: int | Sequence[int] | npt.NDArray[np.generic] = 0,
    ) -> tuple[DataNode, DataNode, DataNode]:
        """Draw an object of a label mask and return its bounding box. Input: labels of up to 32 bits, any number of axes.
        Outputs, int32: anchor and shape, start and end, or one box of both; with ``output_class`` the object's label.

        With the probability ``foreground_prob`` a class is drawn, all equally likely or by ``class_weights``, then one of
        its objects. An object is a set of pixels of one label that are joined through faces, not corners. Objects smaller
        than ``threshold`` do not count, nor those that are not among the ``k_largest`` boxes. A class without objects is
        drawn again; if there is none left, the box is the whole mask and the label the background.

        The operator runs on the CPU, as in DALI: windows and shapes are computed from the box before a GPU starts.

        Args:
            background: Label of the background; if not given and 0 is one of `classes`, the least number from 0
                that is not.
            class_weights: Weights of `classes`, or of the labels 1, 2, ... Not negative.
            classes: Labels of the foreground; by default all but `background`.
            foreground_prob: Probability of an object instead of the whole mask.
            format: Outputs: anchor_shape, start_end or box.
            ignore_class: All objects are equally likely, of whatever class.
            k_largest: Number of objects with the largest boxes that count.
            output_class: Also return the object's label.
            threshold: Least extents of a box, one for all axes or one each.
            seed: Seed of this operator's draws; by default it follows from the pipeline's.
            name: Name of the node, shown in errors and by which outputs and readers are found.
            device: Where the operator runs.
            preserve: Run the operator also if its output is not used.
        """
        ...

    @staticmethod
    def select_masks(
        mask_ids: Input,
        polygons: Input,
        vertices: Input,
        /,
        *,
        reindex_masks: bool = False,
        name: str | None = None,
        device: Literal["cpu", "gpu", "mixed"] | None = None,
        preserve: bool = False,
        bytes_per_sample_hint: int | Sequence[int] | npt.NDArray[np.generic] = 0,
    ) -> tuple[DataNode, DataNode]:
        """Select the polygons of some masks, in the form of `readers.coco`. Inputs: the numbers of the masks, int32 (N,),
        each once; polygons, int32 (P, 3): mask, first vertex, end; vertices, any type (V, coordinates). Outputs: the
        polygons of these masks, in the order of the numbers, and their vertices.

        A mask keeps all of its polygons; DALI keeps only the last one. The numbers must be those of masks with polygons.
        Polygons must not share vertices. The operator runs on the CPU, as in DALI: its tables are small.

        Args:
            reindex_masks: Masks get the numbers of their places in the first input.
            name: Name of the node, shown in errors and by which outputs and readers are found.
            device: Where the operator runs.
            preserve: Run the operator also if its output is not used.
        """
        ...

class transforms:
    @staticmethod
    def combine(
        *matrices: Input,
        reverse_order: bool = False,
        name: str | None = None,
        device: Literal["cpu", "gpu", "mixed"] | None = None,
        preserve: bool = False,
        bytes_per_sample_hint: int | Sequence[int] | npt.NDArray[np.generic] = 0,
    ) -> DataNode:
        """Combine two or more affine matrices into one. Inputs: matrices ``(n, n + 1)``. Output: float32 ``(n, n + 1)``.

        The first is applied first. Products are in double.

        Args:
            reverse_order: Apply the last matrix first.
            name: Name of the node, shown in errors and by which outputs and readers are found.
            device: Where the operator runs.
            preserve: Run the operator also if its output is not used.
        """
        ...

    @staticmethod
    def crop(
        previous: Input = ...,
        /,
        *,
        reverse_order: bool = False,
        from_start: float | Sequence[float | DataNode] | npt.NDArray[np.generic] | DataNode = 0.0,
        from_end: float | Sequence[float | DataNode] | npt.NDArray[np.generic] | DataNode = 1.0,
        to_start: float | Sequence[float | DataNode] | npt.NDArray[np.generic] | DataNode = 0.0,
        to_end: float | Sequence[float | DataNode] | npt.NDArray[np.generic] | DataNode = 1.0,
        absolute: bool = False,
        name: str | None = None,
        device: Literal["cpu", "gpu", "mixed"] | None = None,
        preserve: bool = False,
        bytes_per_sample_hint: int | Sequence[int] | npt.NDArray[np.generic] = 0,
    ) -> DataNode:
        """Create a matrix that maps one box to another. Input: a matrix to apply before, if any. Output: float32.

        Args:
            reverse_order: Apply this transform before the input's, not after it.
            from_start: Lower corner of the box that points are in.
            from_end: Upper corner of that box.
            to_start: Lower corner of the box that they are taken to.
            to_end: Upper corner of that box.
            absolute: Exchange the corners of a box where the lower one is above the upper one.
            name: Name of the node, shown in errors and by which outputs and readers are found.
            device: Where the operator runs.
            preserve: Run the operator also if its output is not used.
        """
        ...

    @staticmethod
    def rotation(
        previous: Input = ...,
        /,
        *,
        angle: float | DataNode,
        reverse_order: bool = False,
        axis: float | Sequence[float | DataNode] | npt.NDArray[np.generic] | DataNode | None = None,
        center: float | Sequence[float | DataNode] | npt.NDArray[np.generic] | DataNode | None = None,
        name: str | None = None,
        device: Literal["cpu", "gpu", "mixed"] | None = None,
        preserve: bool = False,
        bytes_per_sample_hint: int | Sequence[int] | npt.NDArray[np.generic] = 0,
    ) -> DataNode:
        """Create a matrix that rotates points. Input: a matrix to apply before, if any. Output: float32, 2x3, or 3x4.

        The rotation is from the first axis towards the second; in space, about ``axis``.

        Args:
            reverse_order: Apply this transform before the input's, not after it.
            angle: Angle in degrees, from the first axis towards the second.
            axis: Axis of a rotation in space; three numbers, not all zero.
            center: Fixed point, in the points' units; by default the origin.
            name: Name of the node, shown in errors and by which outputs and readers are found.
            device: Where the operator runs.
            preserve: Run the operator also if its output is not used.
        """
        ...

    @staticmethod
    def scale(
        previous: Input = ...,
        /,
        *,
        scale: float | Sequence[float | DataNode] | npt.NDArray[np.generic] | DataNode,
        reverse_order: bool = False,
        center: float | Sequence[float | DataNode] | npt.NDArray[np.generic] | DataNode | None = None,
        ndim: int | None = None,
        name: str | None = None,
        device: Literal["cpu", "gpu", "mixed"] | None = None,
        preserve: bool = False,
        bytes_per_sample_hint: int | Sequence[int] | npt.NDArray[np.generic] = 0,
    ) -> DataNode:
        """Create a matrix that scales points. Input: a matrix to apply before, if any. Output: float32 ``(n, n + 1)``.

        Args:
            reverse_order: Apply this transform before the input's, not after it.
            scale: Factors, one per dimension, or one for all.
            center: Fixed point, in the points' units; by default the origin.
            ndim: Number of dimensions, if `scale` is one factor for all.
            name: Name of the node, shown in errors and by which outputs and readers are found.
            device: Where the operator runs.
            preserve: Run the operator also if its output is not used.
        """
        ...

    @staticmethod
    def shear(
        previous: Input = ...,
        /,
        *,
        reverse_order: bool = False,
        shear: float | Sequence[float | DataNode] | npt.NDArray[np.generic] | DataNode | None = None,
        angles: float | Sequence[float | DataNode] | npt.NDArray[np.generic] | DataNode | None = None,
        center: float | Sequence[float | DataNode] | npt.NDArray[np.generic] | DataNode | None = None,
        name: str | None = None,
        device: Literal["cpu", "gpu", "mixed"] | None = None,
        preserve: bool = False,
        bytes_per_sample_hint: int | Sequence[int] | npt.NDArray[np.generic] = 0,
    ) -> DataNode:
        """Create a matrix that shears points. Input: a matrix to apply before, if any. Output: float32, 2x3, or 3x4.

        Args:
            reverse_order: Apply this transform before the input's, not after it.
            shear: Shift of an axis along each other one: (x, y), in space (xy, xz, yx, yz, zx, zy).
            angles: `shear` as angles in degrees, between -90 and 90.
            center: Fixed point, in the points' units; by default the origin.
            name: Name of the node, shown in errors and by which outputs and readers are found.
            device: Where the operator runs.
            preserve: Run the operator also if its output is not used.
        """
        ...

    @staticmethod
    def translation(
        previous: Input = ...,
        /,
        *,
        offset: float | Sequence[float | DataNode] | npt.NDArray[np.generic] | DataNode,
        reverse_order: bool = False,
        name: str | None = None,
        device: Literal["cpu", "gpu", "mixed"] | None = None,
        preserve: bool = False,
        bytes_per_sample_hint: int | Sequence[int] | npt.NDArray[np.generic] = 0,
    ) -> DataNode:
        """Create a matrix that translates points. Input: a matrix to apply before, if any.

        Output: float32 ``(n, n + 1)``.

        Args:
            reverse_order: Apply this transform before the input's, not after it.
            offset: The shift; its length is the number of dimensions.
            name: Name of the node, shown in errors and by which outputs and readers are found.
            device: Where the operator runs.
            preserve: Run the operator also if its output is not used.
        """
        ...

def __getattr__(name: str) -> Any: ...
