# SPDX-License-Identifier: Apache-2.0
"""``readers.coco``: images with boxes, labels and segmentations of annotation files in COCO's form."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

from ..contract.argument import arg
from ..contract.columns import Column, DataSet
from ..contract.errors import ArgumentError
from ..contract.lowering import Lowering
from ..contract.painting import paint_parts
from ..contract.step import Value
from ..contract.storage import Bools
from ..contract.text import brief, printable
from ..contract.types import DType
from ._coco import Annotations, read_annotations
from ._columns import Bytes, Values, fingerprint, ragged
from ._containers import ContainerReader, is_missing
from ._folders import whole_files
from ._origins import OriginReader

_OLD_NAMES = {"save_img_ids": "image_ids", "meta_files_path": "preprocessed_annotations",
              "dump_meta_files": "save_preprocessed_annotations",
              "dump_meta_files_path": "save_preprocessed_annotations_dir"}  # fmt: skip
_CACHES = ("preprocessed_annotations", "save_preprocessed_annotations", "save_preprocessed_annotations_dir")


class COCOReader(OriginReader, ContainerReader, name="readers.coco"):
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
    """

    positional = ("file_root", "annotations_file")
    outputs = 3
    result_neutral = (*ContainerReader.result_neutral, "origin", "file_root", "annotations_file", *_CACHES, *_OLD_NAMES)
    file_root = arg("str", None, doc="Folder of the images, or its address in a store or on a server.")
    annotations_file = arg("str", "", doc="Annotation file, JSON, or its address.")
    images = arg(
        "object", None, doc="Names of the images to take, as in the annotation file, in this order. By default all, in "
        "the order of their numbers.",
    )  # fmt: skip
    ltrb = arg("bool", False, doc="Boxes as left, top, right, bottom.")
    ratio = arg("bool", False, doc="Boxes and vertices as shares of the image's width and height.")
    avoid_class_remapping = arg("bool", False, doc="Labels are the numbers of the categories.")
    include_iscrowd = arg("bool", True, doc="Whether annotations with `iscrowd` are taken.")
    size_threshold = arg("float", 0.1, doc="Annotations whose box is narrower or lower, in pixels, are left out.")
    skip_empty = arg("bool", False, doc="Leave out images without annotations.")
    polygon_masks = arg("bool", False, doc="Outputs for polygons and their vertices.")
    masks = arg(
        "bool", False, doc="As `polygon_masks`, but with positions of coordinates instead of vertices, also with both."
    )
    pixelwise_masks = arg("bool", False, doc="Output for a mask of labels.")
    image_ids = arg("bool", False, doc="Output for the number of the image.")
    save_img_ids = arg("bool", False, doc="Old name of `image_ids`.")
    preprocessed_annotations = arg("str", "", doc="Refused: parsed annotations are kept in Stoker's cache folder.")
    save_preprocessed_annotations = arg("bool", False, doc="No effect: parsed annotations are kept automatically.")
    save_preprocessed_annotations_dir = arg("str", "", doc="No effect: STOKER_INDEX_CACHE names the folder.")
    meta_files_path = arg("str", "", doc="Old name of `preprocessed_annotations`.")
    dump_meta_files = arg("bool", False, doc="Old name of `save_preprocessed_annotations`.")
    dump_meta_files_path = arg("str", "", doc="Old name of `save_preprocessed_annotations_dir`.")

    def validate(self, args: Mapping[str, Any]) -> None:
        """Check everything that does not depend on the disk."""
        super().validate(args)
        if args["preprocessed_annotations"] or args["meta_files_path"]:
            raise ArgumentError(
                "expected `annotations_file`, got `preprocessed_annotations`: Stoker keeps parsed annotations in its "
                "cache folder and does not read other ones"
            )
        if not args["annotations_file"] or args["file_root"] is None:
            raise ArgumentError(
                "expected `file_root`, the folder of the images, and `annotations_file`, got only one or none"
            )
        if args["pixelwise_masks"] and (args["polygon_masks"] or args["masks"]):
            raise ArgumentError("expected polygons or `pixelwise_masks`, got both")
        _chosen_names(args["images"])

    def count_outputs(self, args: Mapping[str, Any]) -> int:
        polygons, ids = args["polygon_masks"] or args["masks"], args["image_ids"] or args["save_img_ids"]
        return 3 + 2 * bool(polygons) + bool(args["pixelwise_masks"]) + bool(ids)

    @classmethod
    def dataset(cls, args: Mapping[str, Any]) -> DataSet:
        """Read the annotations.

        Raises:
            ArgumentError: there are no images, or the annotations are not in COCO's form.
            OSError: the operating system fails.
        """
        path = args["annotations_file"]
        found = read_annotations(path)
        samples = _Samples(found, args, path)
        names = found.file_names()
        storage = whole_files([names[i] for i in samples.image], args["file_root"])
        columns: list[Column] = [Bytes("data", storage), samples.boxes(), samples.labels()]
        if args["polygon_masks"] or args["masks"]:
            columns += samples.polygons(2 if args["masks"] else 1)
        if args["pixelwise_masks"]:
            columns.append(samples.masks())
        if args["image_ids"] or args["save_img_ids"]:
            columns.append(samples.numbers())
        notes = []
        if found.strays:
            notes.append(f"{int(found.strays)} annotations of '{printable(path)}' belong to none of its images")
        decides = [samples.image, samples.pick, *(np.asarray(v) for v in vars(found).values())]
        return DataSet(tuple(columns), fingerprint(*decides), notes=tuple(notes))


def _chosen_names(value: Any) -> list[str] | None:
    """Return the argument `images` as a list; None: all images."""
    if is_missing(value):
        return None
    listed = [value] if isinstance(value, str) else value
    if not isinstance(listed, (list, tuple)) or not all(isinstance(n, str) for n in listed):
        raise ArgumentError(f"expected a list of names as `images`, got {brief(value)}")
    return list(listed)


def _spans(first: npt.NDArray[np.int64], count: npt.NDArray[np.int64]) -> npt.NDArray[np.int64]:
    """Return the numbers ``first[i] ... first[i] + count[i] - 1`` for all ``i``, one after the other."""
    ends = np.cumsum(count)
    total = int(ends[-1]) if len(ends) else 0
    return np.asarray(np.arange(total) + np.repeat(first - (ends - count), count), np.int64)


class _Samples:
    """Samples of a reader: which images, which annotations of each, in which form.

    Attributes:
        image: positions of the samples' images.
        pick: positions of the annotations, those of the first sample first.
    """

    def __init__(self, found: Annotations, args: Mapping[str, Any], path: str) -> None:
        self._found, self._args, self._path = found, args, path
        box = found.box
        with np.errstate(over="ignore"):  # beyond float32 it is infinite, and no box is left
            least = np.float32(args["size_threshold"])
        keep = (box[:, 2] >= least) & (box[:, 3] >= least)
        if not args["include_iscrowd"]:
            keep &= ~found.crowd
        kept = np.flatnonzero(keep)
        by_image = kept[np.argsort(found.owner[kept], kind="stable")]
        count = np.bincount(found.owner[kept], minlength=len(found.image)).astype(np.int64)
        first = np.cumsum(count) - count
        self.image = self._chosen_images()
        if args["skip_empty"]:
            self.image = self.image[count[self.image] > 0]
        if not len(self.image):
            raise ArgumentError(f"expected images in '{printable(path)}', got none")
        self.count = count[self.image]
        self.pick = by_image[_spans(first[self.image], self.count)]
        self._ends = np.cumsum(self.count)
        self._label = self._mapped_labels()
        self._size = found.size[self.image].astype(np.float32)
        if args["ratio"] or args["pixelwise_masks"]:
            self._require_sizes()

    def _chosen_images(self) -> npt.NDArray[np.int64]:
        names = _chosen_names(self._args["images"])
        if names is None:
            return np.arange(len(self._found.image))
        position = {name: at for at, name in enumerate(self._found.file_names())}
        lacking = next((n for n in names if n not in position), None)
        if lacking is not None:
            raise ArgumentError(
                f"expected names of images in '{printable(self._path)}' as `images`, got {brief(lacking)}"
            )
        return np.asarray([position[n] for n in names], np.int64)

    def _mapped_labels(self) -> npt.NDArray[np.int64]:
        """Return the labels of all annotations."""
        category, label = self._found.category, self._found.label
        order = np.argsort(category, kind="stable")
        at = np.searchsorted(category[order], label) if len(category) else np.zeros(len(label), np.int64)
        known = order[np.minimum(at, max(len(category) - 1, 0))] if len(category) else at
        unknown = np.ones(len(label), bool) if not len(category) else category[known] != label
        used = np.zeros(len(label), bool)
        used[self.pick] = True
        if self._args["avoid_class_remapping"]:
            self._require_int32(label[used], "`category_id`")
            return label
        if (unknown & used).any():
            raise ArgumentError(
                f"expected a category in `categories` for each annotation of '{printable(self._path)}', got none for "
                f"{int(label[unknown & used][0])}. `avoid_class_remapping=True` takes the numbers as they are"
            )
        return known + 1

    def _require_int32(self, numbers: npt.NDArray[np.int64], name: str) -> None:
        if len(numbers) and not -(1 << 31) <= numbers.min() <= numbers.max() < 1 << 31:
            raise ArgumentError(
                f"expected numbers of 32 bits as {name} in '{printable(self._path)}', got up to "
                f"{int(np.abs(numbers).max())}"
            )

    def _require_sizes(self) -> None:
        wrong = np.flatnonzero((self._size <= 0).any(axis=1))
        if len(wrong):
            name = self._found.file_names()[self.image[wrong[0]]]
            raise ArgumentError(
                f"expected `height` and `width` of every image in '{printable(self._path)}', got none for {brief(name)}"
            )

    def _require_shapes(self, used: npt.NDArray[np.int64]) -> None:
        fault = self._found.first_fault(used)
        if fault is not None:
            raise ArgumentError(f"{fault} in '{printable(self._path)}'")

    def _of_annotations(self, values: npt.NDArray[Any]) -> npt.NDArray[Any]:
        """Return values of the samples' images, one for each annotation."""
        return np.repeat(values, self.count, axis=0)

    def boxes(self) -> Column:
        box = self._found.box[self.pick].copy()
        if self._args["ltrb"]:
            box[:, 2:] += box[:, :2]
        if self._args["ratio"]:
            box /= self._of_annotations(self._size[:, [1, 0, 1, 0]])
        return ragged("boxes", box, self._ends)

    def labels(self) -> Column:
        return ragged("labels", self._label[self.pick].astype(np.int32), self._ends)

    def numbers(self) -> Column:
        numbers = self._found.image[self.image]
        self._require_int32(numbers, "`id` of images")
        return Values("image_ids", numbers.astype(np.int32)[:, None])

    def polygons(self, unit: int) -> list[Column]:
        """Return the columns of polygons and vertices; ``unit``: numbers per vertex in the polygons' positions."""
        found = self._found
        self._require_shapes(self.pick[found.parts[self.pick] >= 0])
        starts, count = self._parts()
        count = np.where(found.parts[self.pick] > 0, count, 0)  # run lengths are no polygons
        part = _spans(starts, count)
        first = found.ends[part - 1] * (part > 0) if len(part) else np.zeros(0, np.int64)
        size = (found.ends[part] - first) // 2
        words = _spans(first, 2 * size)
        vertices = found.shape[words].view(np.float32).reshape(-1, 2).copy()
        per_sample = _sums(count, self._ends)
        if self._args["ratio"]:
            of_annotation = self._of_annotations(self._size[:, [1, 0]])
            vertices /= np.repeat(np.repeat(of_annotation, count, axis=0), size, axis=0)
        polygon_ends = np.cumsum(per_sample)
        vertex_ends = np.cumsum(_sums(size, polygon_ends))
        in_sample = np.arange(len(self.pick)) - np.repeat(self._ends - self.count, self.count)
        last = np.cumsum(size) - np.repeat(vertex_ends - _sums(size, polygon_ends), per_sample)
        table = np.stack([np.repeat(in_sample, count), (last - size) * unit, last * unit], axis=1).astype(np.int32)
        return [ragged("polygons", table, polygon_ends), ragged("vertices", vertices, vertex_ends)]

    def _parts(self) -> tuple[npt.NDArray[np.int64], npt.NDArray[np.int64]]:
        """Return the first part, and the number of parts, of each annotation of the samples."""
        count = np.where(self._found.parts < 0, 1, self._found.parts)
        ends = np.cumsum(count)
        return (ends - count)[self.pick], count[self.pick]

    def masks(self) -> Column:
        """Return the column of masks: per sample its parts in the order of labels, for the kernel that paints them."""
        found = self._found
        self._require_shapes(self.pick)
        label = self._label[self.pick]
        sample = np.repeat(np.arange(len(self.image)), self.count)
        order = np.lexsort((np.arange(len(label)), label, sample))
        starts, count = (x[order] for x in self._parts())
        part = _spans(starts, count)
        first = found.ends[part - 1] * (part > 0) if len(part) else np.zeros(0, np.int64)
        size = found.ends[part] - first
        kind = np.repeat(found.parts[self.pick][order] < 0, count)
        head = np.stack([np.repeat(label[order], count), kind, size], axis=1).astype(np.int32)
        words = np.empty(int((size + 3).sum()), np.int32)
        begin = np.cumsum(size + 3) - (size + 3)
        words[_spans(begin, np.full(len(begin), 3, np.int64))] = head.reshape(-1)
        words[_spans(begin + 3, size)] = found.shape[_spans(first, size)]
        per_sample = _sums(_sums(size + 3, np.cumsum(count)), self._ends)
        parts = ragged("parts", words, np.cumsum(per_sample))
        return MaskColumn(parts, Values("size", found.size[self.image]))


def _sums(values: npt.NDArray[np.int64], ends: npt.NDArray[np.int64]) -> npt.NDArray[np.int64]:
    """Return the sums of consecutive groups of values that end at ``ends``."""
    total = np.concatenate([np.zeros(1, np.int64), np.cumsum(values)])
    at = total[ends]
    return np.diff(at, prepend=0)


class MaskColumn(Column):
    """Masks of labels, which a kernel paints.

    Args:
        parts: polygons and run lengths of the samples, in the kernel's form.
        size: height and width of the samples.
    """

    name, dtype, rank, layout, optional = "masks", DType.INT32, 3, "HWC", False

    def __init__(self, parts: Column, size: Column) -> None:
        self._parts, self._size = parts, size

    def __len__(self) -> int:
        return len(self._size)

    def absent(self) -> Bools | None:
        return None

    def lower(self, c: Lowering, reader: int) -> Value:
        parts, size = self._parts.lower(c, reader), self._size.lower(c, reader)
        shape = (c.element(size, 0), c.element(size, 1), 1)
        return c.native("segmentation_masks", [parts], [(DType.INT32, shape, "HWC")])[0]

    def row(self, index: int) -> npt.NDArray[Any]:
        height, width = (int(n) for n in self._size.row(index))
        return paint_parts(self._parts.row(index), height, width)

    def joined(self, others: Sequence[Column]) -> MaskColumn:
        same = [o for o in others if isinstance(o, MaskColumn)]
        if len(same) < len(others):
            raise ArgumentError("expected parts with the same columns, got readers of different kinds")
        return MaskColumn(self._parts.joined([o._parts for o in same]), self._size.joined([o._size for o in same]))
