# SPDX-License-Identifier: Apache-2.0
"""Constructors of the kernels of plans. Written by tools/kernel_stubs.py."""

from collections.abc import Sequence
from typing import Any, overload

import numpy.typing as npt

from stoker.native._native import FileTable, KeptBlocks, Kernel, Records

def affine_boxes(numbers: Sequence[int], extents: bool, /) -> Kernel:
    """Boxes that move with an image.

    Args:
        numbers: places of x, y and the second x, y in a box
        extents: the second numbers are extents
    """

def affine_keypoints(mirrored: Sequence[int], /) -> Kernel:
    """Key points that move with an image.

    Args:
        mirrored: order of the points of a mirrored object; empty: as they are
    """

def affine_polygons(selects: bool, /) -> Kernel:
    """Polygons that move with an image.

    Args:
        selects: only polygons of the objects that are left
    """

def affine_rotated_boxes(filters: bool, /) -> Kernel:
    """Rotated boxes that move with an image.

    Args:
        filters: drop boxes of which too little is left
    """

def affine_vertices(selects: bool, /) -> Kernel:
    """Vertices of polygons that move with an image.

    Args:
        selects: only polygons of the objects that are left
    """

def audio_header() -> Kernel:
    """Frames, channels and sampling rate of an audio file."""

def audio_resample(quality: float, aliasing: bool, given: bool, /) -> Kernel:
    """A signal at another sampling rate.

    Args:
        quality: 0 to 100
        aliasing: DALI's filter, without an anti-aliasing band
        given: whether the weights are an input
    """

def bbox_rotate(extent: int, numbers: Sequence[int], extents: bool, normalized: bool, /) -> Kernel:
    """Boxes of a rotated image.

    Args:
        extent: an Extent
        numbers: places of x, y and the second x, y in a box
        extents: the second numbers are extents
        normalized: numbers are relative to the image
    """

def block_spans(has_offsets: bool, has_sizes: bool, /) -> Kernel:
    """Begin and end of blocks in an input, checked.

    Args:
        has_offsets: the first input has the offsets of blocks
        has_sizes: the last input has the sizes of blocks
    """

def blur(frame: int, height: int, width: int, channel: int, /) -> Kernel:
    """Gaussian blur.

    Args:
        frame: the axis, -1: none
        height: the axis, -1: none
        width: the axis, -1: none
        channel: the axis, -1: none
    """

def boolean_mask() -> Kernel:
    """The elements of the first axis where a mask is true, and their count."""

def box_encoder(offsets: bool, /) -> Kernel:
    """Targets of anchors from boxes.

    Args:
        offsets: boxes are offsets from their anchors
    """

def box_iou(kind: int, rotated: bool, /) -> Kernel:
    """Overlaps of all pairs of boxes.

    Args:
        kind: 0: intersection over union, 1: generalized, 2: distance, 3: complete
        rotated: boxes have an angle
    """

def choice(draw: int, own_seed: bool, seed: int, weights: bool, /) -> Kernel:
    """Random elements of the first input, with the weights of the second.

    Args:
        draw: which of the graph's random calls
        own_seed: whether `seed` replaces the pipeline's
        weights: whether there are weights
    """

def clahe(frame: int, height: int, width: int, channel: int, lightness: bool, /) -> Kernel:
    """Contrast-limited adaptive histogram equalization.

    Args:
        frame: the axis, -1: none
        height: the axis, -1: none
        width: the axis, -1: none
        channel: the axis, -1: none
        lightness: equalize the lightness of images of three channels
    """

def constant(data: bytes, shape: Sequence[int], /) -> Kernel:
    """A tensor that is the same for every row.

    Args:
        data: its elements
    """

def convolve() -> Kernel:
    """Convolution of two signals."""

def counted_bytes() -> Kernel:
    """The bytes after their number. The input is given twice."""

def crop_window(draw: int, own_seed: bool, seed: int, attempts: int, /) -> Kernel:
    """A random window of some area and aspect ratio.

    Args:
        draw: which of the graph's random calls
        own_seed: whether `seed` replaces the pipeline's
        attempts: draws before the fallback
    """

def dct_weights(coefficients: int, type: int, normalize: bool, lifter: float, bins: int, /) -> Kernel:
    """Rows of a discrete cosine transform.

    Args:
        coefficients: number of rows
        type: 1 to 4
        normalize: orthonormal
        lifter: liftering coefficient, 0: none
        bins: values of a column; 0: the step's parameter says it
    """

def debayer(algorithm: int, /) -> Kernel:
    """Colours from a mosaic of one colour per pixel.

    Args:
        algorithm: an Algorithm of shared/debayer.hpp
    """

def decibels() -> Kernel:
    """Logarithm of the ratio to a reference."""

def decode(adjust: bool, format: int, scale_log2: int, max_scan_pixels: int, /) -> Kernel:
    """A window of an encoded image. The twin handles everything but JPEG, PNG, BMP, PNM, TIFF, WebP and JPEG 2000 files
    of a usual kind.

    Args:
        adjust: whether Exif's orientation is applied
        format: a jpeg::Format
        scale_log2: images are 1 / 2^scale_log2 as wide and high
        max_scan_pixels: the most pixels times scans of many scans; 0: no limit
    """

def decode_audio(downmix: bool, libopus: bytes, /) -> Kernel:
    """Samples of an audio file.

    Args:
        downmix: the mean over the channels
        libopus: path of the library that decodes Opus; empty: none
    """

def draw(distribution: int, draw: int, own_seed: bool, seed: int, /) -> Kernel:
    """Random numbers.

    Args:
        distribution: a Distribution
        draw: which of the graph's random calls
        own_seed: whether `seed` replaces the pipeline's
    """

def draw_stream(draw: int, own_seed: bool, seed: int, /) -> Kernel:
    """Name of a row's random stream, for draws on a GPU.

    Args:
        draw: which of the graph's random calls
        own_seed: whether `seed` replaces the pipeline's
    """

def draw_words(draw: int, own_seed: bool, seed: int, /) -> Kernel:
    """Random bits, from which stages draw a number for each element.

    Args:
        draw: which of the graph's random calls
        own_seed: whether `seed` replaces the pipeline's
    """

def element_numbers(argument: bytes, from_end: bool, /) -> Kernel:
    """Numbers of elements, checked, as int64.

    Args:
        argument: its name in messages
        from_end: negative numbers count from the end
    """

def equalize(frame: int, height: int, width: int, channel: int, /) -> Kernel:
    """Histogram equalization of every channel.

    Args:
        frame: the axis, -1: none
        height: the axis, -1: none
        width: the axis, -1: none
        channel: the axis, -1: none
    """

def example_bytes(name: bytes, missing: bytes | None, /) -> Kernel:
    """The bytes of a feature of a tf.train.Example. The record is given twice.

    Args:
        name: of the feature
        missing: the bytes of records that lack the feature; None: an error
    """

def example_list(name: bytes, item: Sequence[int], /) -> Kernel:
    """All numbers of a feature of a tf.train.Example.

    Args:
        name: of the feature
        item: extents of an item
    """

def example_numbers(name: bytes, missing: npt.NDArray[Any], /) -> Kernel:
    """The numbers of a feature of a tf.train.Example, as many as the output has elements.

    Args:
        name: of the feature
        missing: elements that replace missing ones; empty: missing ones are an error
    """

def extremes(frame: int, height: int, width: int, channel: int, border: int, largest: bool, /) -> Kernel:
    """Minima or maxima of windows.

    Args:
        frame: the axis, -1: none
        height: the axis, -1: none
        width: the axis, -1: none
        channel: the axis, -1: none
        border: a Border of shared/border.hpp
        largest: maxima, not minima
    """

def fft_sizes() -> Kernel:
    """Complex points of a transform, and floats of its table."""

def fft_table(nfft: int, /) -> Kernel:
    """Factors of a transform.

    Args:
        nfft: points of the transform
    """

def field_bytes(sizes: Sequence[int], field: int, /) -> Kernel:
    """The bytes of a field of a record. The record is given twice.

    Args:
        sizes: of the fields; -1: the record says
        field: its number
    """

def field_numbers(sizes: Sequence[int], field: int, /) -> Kernel:
    """The elements of a field of a record, as many as the output has.

    Args:
        sizes: of the fields; -1: the record says
        field: its number
    """

def fill_regions() -> Kernel:
    """Tensor with filled regions."""

def filter(frame: int, height: int, width: int, channel: int, border: int, /) -> Kernel:
    """Correlation with a window of weights.

    Args:
        frame: the axis, -1: none
        height: the axis, -1: none
        width: the axis, -1: none
        channel: the axis, -1: none
        border: a Border of filter/correlate.hpp
    """

def gather() -> Kernel:
    """Elements of the first axis by their numbers."""

def image_of_datum() -> Kernel:
    """The image in a record of Caffe. The record is given twice."""

def image_of_record() -> Kernel:
    """The image in a record of MXNet. The record is given twice."""

def index(reader: int, /) -> Kernel:
    """The index of the row's sample.

    Args:
        reader: the column of the batch's indices
    """

def inflate_lz4(has_spans: bool, /) -> Kernel:
    """Contents of LZ4 blocks.

    Args:
        has_spans: the second input has the begin and end of each block
    """

def istft(nfft: int, step: int, /) -> Kernel:
    """Signal from complex spectra of its frames.

    Args:
        nfft: points of the transform
        step: samples from one frame to the next
    """

def join(count: int, axis: int, /) -> Kernel:
    """Tensors, one after another along an axis.

    Args:
        count: number of tensors
        axis: the axis
    """

def jpeg_distortion(frame: int, height: int, width: int, channel: int, /) -> Kernel:
    """Pixels after JPEG compression and decompression.

    Args:
        frame: the axis, -1: none
        height: the axis, -1: none
        width: the axis, -1: none
        channel: the axis, -1: none
    """

def kept_bytes(kept: KeptBlocks, reader: int, /) -> Kernel:
    """The number of bytes that read_kept fills.

    Args:
        kept: the records and the blocks
        reader: the column of the batch's indices
    """

def label_of_datum() -> Kernel:
    """The label in a record of Caffe; none if the record lacks it."""

def labels_of_record() -> Kernel:
    """The labels in a record of MXNet."""

def laplacian(frame: int, height: int, width: int, channel: int, /) -> Kernel:
    """The sum of the second derivatives of an image.

    Args:
        frame: the axis, -1: none
        height: the axis, -1: none
        width: the axis, -1: none
        channel: the axis, -1: none
    """

def lookup(table: npt.NDArray[Any], rows: int, reader: int, /) -> Kernel:
    """The row of a table that the row's sample has.

    Args:
        table: the rows one after the other
        rows: how many
        reader: the column of the batch's indices
    """

def loudness() -> Kernel:
    """Integrated loudness of a signal in LUFS."""

def map(frame: int, height: int, width: int, channel: int, sampling: int, border: int, /) -> Kernel:
    """The image at the coordinates of the other two inputs.

    Args:
        frame: the axis, -1: none
        height: the axis, -1: none
        width: the axis, -1: none
        channel: the axis, -1: none
        sampling: 0: the element at the whole parts; 1: linear; 2: cubic
        border: elements beyond the edges, numbered as Border
    """

def median(frame: int, height: int, width: int, channel: int, /) -> Kernel:
    """Medians of windows.

    Args:
        frame: the axis, -1: none
        height: the axis, -1: none
        width: the axis, -1: none
        channel: the axis, -1: none
    """

def mel_weights(
    filters: int, sample_rate: float, low: float, high: float, htk: bool, normalize: bool, bins: int, /
) -> Kernel:
    """Triangular filters over the bins of a spectrum.

    Args:
        filters: number of filters
        sample_rate: of the signal, in Hz
        low: lowest frequency in Hz
        high: highest frequency in Hz
        htk: HTK's mel scale, else Slaney's
        normalize: divide by half the width of the filter
        bins: of the spectrum; 0: the step's parameter says it
    """

def multi_paste(regions: int, /) -> Kernel:
    """Regions of images, pasted onto a canvas in turn.

    Args:
        regions: as many as images
    """

def nms(labelled: bool, rotated: bool, /) -> Kernel:
    """Numbers of the boxes that no better box of their label overlaps, and their count.

    Args:
        labelled: the third input has labels
        rotated: boxes have an angle
    """

def nonsilent_region() -> Kernel:
    """First and last loud sample of a signal."""

def normalize_floats(first: int, count: int, /) -> Kernel:
    """Floats with a mean and a standard deviation of their own, along neighbouring axes.

    Args:
        first: the first axis
        count: number of axes
    """

def other_row(value: int, /) -> Kernel:
    """A value of another row of the batch, whose number is the input.

    Args:
        value: the value's number in the plan
    """

def pad() -> Kernel:
    """A tensor at the start of a larger one that is filled with a number."""

def paste_objects(draw: int, own_seed: bool, seed: int, /) -> Kernel:
    """Objects of another image, pasted by their masks.

    Args:
        draw: which of the graph's random calls
        own_seed: whether `seed` replaces the pipeline's
    """

def peek(adjust: bool, format: int, scale_log2: int, max_pixels: int, /) -> Kernel:
    """The shape of an encoded image. The twin handles everything but JPEG, PNG, BMP, PNM, TIFF, WebP and JPEG 2000
    files of a usual kind.

    Args:
        adjust: whether Exif's orientation is applied
        format: a jpeg::Format
        scale_log2: images are 1 / 2^scale_log2 as wide and high
        max_pixels: the most pixels as stored; 0: no limit
    """

def phase_vocoder() -> Kernel:
    """Complex spectra at another tempo."""

def phased(share: float, zero: bool, root: bool, /) -> Kernel:
    """Complex spectra with given magnitudes and the phases of others.

    Args:
        share: factor of the spectra that are subtracted
        zero: phases are 0
        root: the magnitudes are squared
    """

def polygon_masks() -> Kernel:
    """A mask for each object, painted from its polygons."""

def pool_rows() -> Kernel:
    """The averages of a batch, from those of its rows."""

def power_spectrum(axis: int, magnitude: bool, given: bool, /) -> Kernel:
    """Power of the spectrum along an axis.

    Args:
        axis: the axis
        magnitude: the root of the power
        given: whether the table of the transform is an input
    """

def preemphasis(before: int, /) -> Kernel:
    """Differences of a signal and its delayed form.

    Args:
        before: the sample before the first one: the first one, zero, the second one
    """

def project(axis: int, /) -> Kernel:
    """Weighted sums over the elements of an axis, in their order.

    Args:
        axis: the axis
    """

def python() -> Kernel:
    """A step whose Python twin makes every row."""

def random_bbox_crop(
    draw: int,
    own_seed: bool,
    seed: int,
    axes: int,
    low: Sequence[int],
    high: Sequence[int],
    extents: bool,
    thresholds: Sequence[float],
    overlap: bool,
    all: bool,
    may_keep_all: bool,
    ratios: Sequence[float],
    scaling: Sequence[float],
    attempts: int,
    total: int,
    prune: float,
    has_crop: bool,
    has_input: bool,
    /,
) -> Kernel:
    """A random window that keeps boxes, and these boxes in the window.

    Args:
        draw: which of the graph's random calls
        own_seed: whether `seed` replaces the pipeline's
        axes: 2 or 3
        low: per axis, the number of a box that is its start
        high: per axis, the number of a box that is its end or extent
        extents: whether a box has extents instead of ends
        overlap: the metric is the share of the box instead of IoU
        all: all boxes must reach the threshold
        may_keep_all: one outcome is no crop
        ratios: ranges
        scaling: range
        attempts: per threshold
        total: 0: no maximum
        prune: below 0: boxes are kept by their centre
        has_crop: fixed extents
        has_input: the image's extents
    """

def random_mask_pixel(draw: int, own_seed: bool, seed: int, equal: bool, /) -> Kernel:
    """Coordinates of a random pixel of a mask.

    Args:
        draw: which of the graph's random calls
        own_seed: whether `seed` replaces the pipeline's
        equal: foreground has a value
    """

def random_object(
    draw: int, own_seed: bool, seed: int, classes: int, weights: int, ignore_class: bool, largest: int, /
) -> Kernel:
    """Start, end and class of a random connected object.

    Args:
        draw: which of the graph's random calls
        own_seed: whether `seed` replaces the pipeline's
        classes: number of classes, 0: all labels
        weights: number of weights
        ignore_class: all objects are equally likely
        largest: number of objects that count, 0: all
    """

def random_start(draw: int, own_seed: bool, seed: int, /) -> Kernel:
    """A random place in each of some ranges.

    Args:
        draw: which of the graph's random calls
        own_seed: whether `seed` replaces the pipeline's
    """

def read_audio_part(files: FileTable, reader: int, /) -> Kernel:
    """The bytes of an audio file, or of a part of it.

    Args:
        files: the files
        reader: the column of the batch's indices
    """

def read_file_ref() -> Kernel:
    """The bytes of a file that the input refers to (io/file_ref.hpp)."""

def read_kept(kept: KeptBlocks, reader: int, /) -> Kernel:
    """The bytes of a record of an object, from the cache of its blocks.

    Args:
        kept: the records and the blocks
        reader: the column of the batch's indices
    """

def read_numpy(
    files: FileTable, reader: int, axes: Sequence[int], start: int, end: int, policy: int, fill: npt.NDArray[Any], /
) -> Kernel:
    """An array in an .npy file, or a region of it.

    Args:
        files: where the arrays are
        reader: the column of the batch's indices
        axes: axes that the region limits
        start: 0: none, 1: an index, 2: a share of the extent
        end: 0: none, 1: an index, 2: a share, 3: a number of elements, 4: a share of them
        policy: outside of the array: 0: an error, 1: `fill`, 2: the region ends there
        fill: one element
    """

@overload
def read_range(records: Records, reader: int, /) -> Kernel:
    """The bytes of a record.

    Args:
        records: where the bytes are
        reader: the column of the batch's indices
    """

@overload
def read_range(records: Records, reader: int, item: Sequence[int], /) -> Kernel:
    """The items of a record.

    Args:
        records: where the bytes are
        reader: the column of the batch's indices
        item: extents of an item
    """

def recipe(outputs: int, /) -> Kernel:
    """A row by the steps of its own recipe.

    Args:
        outputs: how many
    """

def reduce(op: int, axes: int, /) -> Kernel:
    """Reduction over some axes. Sums have the order of shared/reduce_fold.hpp, floats are double.

    Args:
        op: a fold::Reduction
        axes: a bit for each axis that goes
    """

def region_of_npy(axes: Sequence[int], start: int, end: int, policy: int, fill: npt.NDArray[Any], /) -> Kernel:
    """An array, or a region of it, of the bytes of an .npy file.

    Args:
        axes: axes that the region limits
        start: 0: none, 1: an index, 2: a share of the extent
        end: 0: none, 1: an index, 2: a share, 3: a number of elements, 4: a share of them
        policy: outside of the array: 0: an error, 1: `fill`, 2: the region ends there
        fill: one element
    """

def region_table(
    axes: Sequence[int], form: tuple[bool, bool, bool, bool], by_frame: tuple[bool, bool, bool], /
) -> Kernel:
    """Bounds of regions along each axis of a tensor, and their fill values.

    Args:
        axes: axes of the anchors and shapes
        form: anchors are shares, shapes are shares, anchors are centres, all numbers are whole
        by_frame: whether anchors, shapes and fill values are for each frame
    """

def resample_filter(quality: float, aliasing: bool, /) -> Kernel:
    """Numbers of the filter between two rates.

    Args:
        quality: 0 to 100
        aliasing: DALI's filter, without an anti-aliasing band
    """

def resample_weights(up: float, down: float, quality: float, aliasing: bool, /) -> Kernel:
    """Weights of the filters of `audio_resample`.

    Args:
        up: rate of the output
        down: rate of the input
        quality: 0 to 100
        aliasing: DALI's filter, without an anti-aliasing band
    """

def retype() -> Kernel:
    """The bytes of a tensor as elements of another type."""

def roi_align(
    height: int, width: int, samples: int, aligned: bool, maximum: bool, channels_last: bool, writes_chosen: bool, /
) -> Kernel:
    """Average or maximum of samples in the bins of regions.

    Args:
        height: bins
        width: bins
        samples: per bin and axis; 0: by the size of the bin
        aligned: shift the samples by half a pixel
        maximum: take the maximum of the samples
        channels_last: the output is [N,h,w,C]
        writes_chosen: a second output has the number of the sample that is the maximum
    """

def roi_pool(height: int, width: int, channels_last: bool, /) -> Kernel:
    """Maximum of the pixels in the bins of regions.

    Args:
        height: bins
        width: bins
        channels_last: the output is [N,h,w,C]
    """

def row_number(numbers: Sequence[int], /) -> Kernel:
    """The element of a list at the row's position in its batch.

    Args:
        numbers: one for each row of the batch
    """

def scalars() -> Kernel:
    """A tensor of the row's parameters."""

def segmentation_masks() -> Kernel:
    """An image of the labels of polygons and run lengths. Later ones are painted over earlier ones."""

def select() -> Kernel:
    """The second or the third input, by the first."""

def select_polygons(renumber: bool, /) -> Kernel:
    """Polygons of some masks.

    Args:
        renumber: masks get the numbers of their places
    """

def select_vertices() -> Kernel:
    """Numbers of the vertices of selected polygons."""

def shot() -> Kernel:
    """Shot noise: events of a factor's size, from the Poisson distribution."""

def soft_nms(labelled: bool, decay: int, /) -> Kernel:
    """Numbers and scores of boxes, with scores that decay by the overlap with better boxes.

    Args:
        labelled: the third input has labels
        decay: 0: linear, 1: Gaussian
    """

def spectrogram(nfft: int, step: int, reflect: bool, magnitude: bool, by_time: bool, /) -> Kernel:
    """Power of the spectrum of frames of a signal.

    Args:
        nfft: points of the transform
        step: samples from one frame to the next
        reflect: mirror the signal at its ends, else zeros follow
        magnitude: the root of the power
        by_time: frames are the first axis of the output
    """

def stage(
    interpolator: int,
    interpolator_params: Sequence[int],
    code: Sequence[tuple[int, int, int, int, int, int, int, int, int, int, int]],
    channels: int,
    in_dtypes: Sequence[int],
    out_dtypes: Sequence[int],
    uniforms: Sequence[int],
    inputs: Sequence[Sequence[tuple[int, int, int, int, int, Sequence[int]]]],
    outputs: Sequence[Sequence[tuple[int, int, int, int, int, Sequence[int]]]],
    coordinates: Sequence[int],
    /,
) -> Kernel:
    """Views, at most one interpolating sample, a pixel program.

    Args:
        interpolator: kind of interpolator
        interpolator_params: numbers of parameters
        code: the pixel program's instructions
        channels: of the program; 0: it is flat
        in_dtypes: element types of the inputs
        out_dtypes: element types of the outputs
        uniforms: numbers of parameters
        inputs: per input, the view that takes it to the iteration space
        outputs: per output, the view that takes its memory there
        coordinates: axes of the iteration space, whose coordinates are the program's last inputs
    """

def stft(nfft: int, step: int, reflect: bool, /) -> Kernel:
    """Complex spectra of the frames of a signal.

    Args:
        nfft: points of the transform
        step: samples from one frame to the next
        reflect: mirror the signal at its ends, else zeros follow
    """

def tiled(axis: int, links: Sequence[tuple[bytes, Sequence[Any], int, int]], /) -> Kernel:
    """Kernels that run one after the other on a few columns of a matrix at a time.

    Args:
        axis: the axis of the columns' positions in the output
        links: name, constants, number of further inputs, number of parameters of each kernel
    """

def trim() -> Kernel:
    """The samples of a region, and their number."""

def user_code(
    path: bytes,
    inputs: Sequence[tuple[int, int, int, int]],
    outputs: Sequence[tuple[int, int, int, int]],
    arguments: int,
    counted: bool,
    draw: int,
    own_seed: bool,
    seed: int,
    /,
) -> Kernel:
    """Operator of a user's compiled library.

    Args:
        path: of the library
        inputs: per input: element types as bits, least rank, most rank, -1
        outputs: the same, with the number of the input whose extents they have, or -1
        arguments: numbers per row
        counted: the library sets the first extent of the outputs
        draw: draw id
        own_seed: whether the operator has its own seed
        seed: this seed
    """

def user_function(
    address: int, inputs: Sequence[tuple[int, int, int, int]], outputs: Sequence[tuple[int, int, int, int]], /
) -> Kernel:
    """Function that a compiler of this process has made.

    Args:
        address: of the function, which stays
        inputs: per input: element types as bits, least rank, most rank, -1
        outputs: the same, with the number of the input whose extents they have, or -1
    """

def view(ops: Sequence[tuple[int, int, int, int, int, Sequence[int]]], may_copy: bool, /) -> Kernel:
    """Other extents and strides over the same memory.

    Args:
        ops: (kind, axis, start, step, extent, list), applied in this order
        may_copy: a reshape of data that are not contiguous copies them
    """

def warp_volume(
    frame: int, depth: int, height: int, width: int, channel: int, linear: bool, has_fill: bool, /
) -> Kernel:
    """A volume through an affine matrix, from the output's elements to the input's.

    Args:
        frame: the axis, -1: none
        depth: the axis
        height: the axis
        width: the axis
        channel: the axis, -1: none
        linear: interpolate; else the nearest element
        has_fill: elements outside have the value; else that of the nearest element
    """

def check_constants(name: str, constants: Sequence[object], /) -> None:
    """Raise TypeError unless the kernel `name` accepts `constants`."""

def list_constructors() -> list[tuple[str, str, str, tuple[tuple[str, str, str], ...]]]:
    """List (name, doc, class, ((parameter, type, doc), ...)) of every constructor."""
