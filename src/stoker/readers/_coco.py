# SPDX-License-Identifier: Apache-2.0
"""Annotation files in COCO's form as arrays, parsed once and kept in the cache of indexes."""

from __future__ import annotations

import json
import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, fields
from typing import Any

import numpy as np
import numpy.typing as npt

from ..contract.errors import ArgumentError
from ..contract.text import brief, printable
from ..remote.addresses import is_remote
from ..remote.copies import local_copy
from ._index_files import cached_arrays

_MOST = 1 << 20  # of a coordinate or an extent
_KIND = "coco"


@dataclass(frozen=True)
class Annotations:
    """Contents of an annotation file. Images are in the order of their numbers, annotations in that of the file.

    Attributes:
        image: number of each image, int64.
        size: height and width of each image, int32 ``(images, 2)``; 0 if the file does not have them.
        names: file names of the images in UTF-8, each followed by a zero byte.
        category: numbers of the categories, int64, in the order of the file.
        owner: position of each annotation's image in ``image``, int64.
        label: number of each annotation's category, int64.
        box: x, y, width and height, float32 ``(annotations, 4)``.
        crowd: whether the annotation is a crowd.
        parts: number of polygons of each annotation; -1: it has run lengths.
        ends: end of every polygon or list of run lengths in ``shape``, int64.
        shape: coordinates of the polygons as bits of float32, and run lengths, int32.
        strays: number of annotations that belong to no image, which are left out.
        faulty: positions of the annotations whose `segmentation` is faulty, int64.
        faults: texts about these in UTF-8, each followed by a zero byte.
    """

    image: npt.NDArray[np.int64]
    size: npt.NDArray[np.int32]
    names: npt.NDArray[np.uint8]
    category: npt.NDArray[np.int64]
    owner: npt.NDArray[np.int64]
    label: npt.NDArray[np.int64]
    box: npt.NDArray[np.float32]
    crowd: npt.NDArray[np.bool_]
    parts: npt.NDArray[np.int64]
    ends: npt.NDArray[np.int64]
    shape: npt.NDArray[np.int32]
    strays: npt.NDArray[np.int64]
    faulty: npt.NDArray[np.int64]
    faults: npt.NDArray[np.uint8]

    def file_names(self) -> list[str]:
        """Return the file names of the images."""
        return _texts(self.names)

    def first_fault(self, used: npt.NDArray[np.int64]) -> str | None:
        """Return the text about the first of the ``used`` annotations whose `segmentation` is faulty; None: all are
        good."""
        wrong = np.flatnonzero(np.isin(self.faulty, used))
        return _texts(self.faults)[wrong[0]] if len(wrong) else None


def _packed(texts: Sequence[str]) -> npt.NDArray[np.uint8]:
    return np.frombuffer(b"".join(os.fsencode(text) + b"\0" for text in texts), np.uint8)


def _texts(packed: npt.NDArray[np.uint8]) -> list[str]:
    return [text.decode("utf-8", "surrogateescape") for text in packed.tobytes().split(b"\0")[:-1]]


def read_annotations(path: str) -> Annotations:
    """Return the contents of an annotation file, from the cache if the file has not changed.

    Raises:
        ArgumentError: there is no such file, or it is not in COCO's form.
        OSError: the operating system fails.
    """
    if not is_remote(path) and not os.path.isfile(path):
        raise ArgumentError(f"expected a file of annotations, there is none at '{printable(path)}'")
    file = local_copy("annotations_file", path)
    names = [f.name for f in fields(Annotations)]
    arrays = cached_arrays(_KIND, file, names, lambda: vars(_parse(file, path)))
    return Annotations(**arrays)


def _parse(file: str, path: str) -> Annotations:
    """Return the contents of a file, which messages call ``path``."""
    try:
        with open(file, "rb") as stream:
            content = json.load(stream)
    except ValueError as error:
        raise ArgumentError(f"expected JSON in '{printable(path)}', got other text: {error}") from None
    try:
        return _Parser(content).finish()
    except _Fault as fault:
        raise ArgumentError(f"{fault} in '{printable(path)}'") from None


class _Fault(Exception):
    """Deviation from COCO's form."""


class _Parser:
    """Parser of the objects of an annotation file."""

    def __init__(self, content: Any) -> None:
        if not isinstance(content, dict):
            raise _Fault(f"expected an object with `images` and `annotations`, got {brief(content)}")
        images = self._list(content, "images")
        self._sizes = [(_extent(i, "height"), _extent(i, "width")) for i in images]
        self._numbers = np.asarray([_number(i, "id") for i in images], np.int64)
        self._order = np.argsort(self._numbers, kind="stable")
        self._names = [_text(i, "file_name") for i in images]
        ranked = self._numbers[self._order]
        if (np.diff(ranked) == 0).any():
            twice = int(ranked[1:][np.diff(ranked) == 0][0])
            raise _Fault(f"expected images of different `id`, got {twice} twice")
        # Files about images for tests have no annotations.
        self._annotations = self._list(content, "annotations") if "annotations" in content else ()
        self._categories = [_number(c, "id") for c in content.get("categories") or ()]
        if len(set(self._categories)) < len(self._categories):
            raise _Fault("expected categories of different `id`, got one twice")

    @staticmethod
    def _list(content: Mapping[str, Any], key: str) -> Sequence[Mapping[str, Any]]:
        found = content.get(key)
        if not isinstance(found, list) or not all(isinstance(x, dict) for x in found):
            raise _Fault(f"expected a list of objects as `{key}`, got {brief(found)}")
        return found

    def finish(self) -> Annotations:
        position = {int(n): at for at, n in enumerate(self._numbers[self._order])}
        sizes = np.asarray(self._sizes, np.int32).reshape(-1, 2)[self._order]
        owner, label, box, crowd, parts = [], [], [], [], []
        ends: list[int] = []
        shapes: list[npt.NDArray[np.int32]] = []
        faulty: list[int] = []
        faults: list[str] = []
        strays = total = 0
        for one in self._annotations:
            at = position.get(_number(one, "image_id"))
            if at is None:
                strays += 1
                continue
            owner.append(at)
            label.append(_number(one, "category_id"))
            box.append(_box(one))
            crowd.append(bool(one.get("iscrowd") or 0))
            try:
                found, count = _shape(one, sizes[at])
            except _Fault as fault:  # of interest only to readers that return the shape
                found, count = ([np.empty(0, np.int32)], -1) if _has_run_lengths(one) else ([], 0)
                faulty.append(len(owner) - 1)
                faults.append(str(fault))
            parts.append(count)
            for part in found:
                total += len(part)
                ends.append(total)
                shapes.append(part)
        names = _packed([self._names[i] for i in self._order])
        return Annotations(
            self._numbers[self._order], sizes, names, np.asarray(self._categories, np.int64),
            np.asarray(owner, np.int64), np.asarray(label, np.int64), np.asarray(box, np.float32).reshape(-1, 4),
            np.asarray(crowd, bool), np.asarray(parts, np.int64), np.asarray(ends, np.int64),
            np.concatenate(shapes) if shapes else np.empty(0, np.int32), np.asarray(strays, np.int64),
            np.asarray(faulty, np.int64), _packed(faults),
        )  # fmt: skip


def _number(one: Mapping[str, Any], key: str) -> int:
    found = one.get(key)
    if type(found) is not int or not -(1 << 62) < found < 1 << 62:
        raise _Fault(f"expected a whole number as `{key}`, got {brief(found)}")
    return found


def _extent(one: Mapping[str, Any], key: str) -> int:
    found = one.get(key, 0)
    if type(found) is not int or not 0 <= found <= _MOST:
        raise _Fault(f"expected a number of pixels from 0 to {_MOST} as `{key}`, got {brief(found)}")
    return found


def _text(one: Mapping[str, Any], key: str) -> str:
    found = one.get(key)
    if not isinstance(found, str) or not found or "\0" in found:
        raise _Fault(f"expected a name of a file as `{key}`, got {brief(found)}")
    return found


def _floats(found: Any, name: str) -> npt.NDArray[np.float32]:
    try:
        values = np.asarray(found, np.float32)
    except (TypeError, ValueError, OverflowError):
        values = np.empty((0, 0), np.float32)
    if values.ndim != 1 or not (np.abs(values) <= _MOST).all():
        raise _Fault(f"expected a list of numbers of at most {_MOST} as `{name}`, got {brief(found)}")
    return values


def _box(one: Mapping[str, Any]) -> npt.NDArray[np.float32]:
    values = _floats(one.get("bbox"), "bbox")
    if len(values) != 4:
        raise _Fault(f"expected x, y, width and height as `bbox`, got {brief(one.get('bbox'))}")
    return values


def _has_run_lengths(one: Mapping[str, Any]) -> bool:
    return isinstance(one.get("segmentation"), dict)


def _shape(one: Mapping[str, Any], size: npt.NDArray[np.int32]) -> tuple[list[npt.NDArray[np.int32]], int]:
    """Return the polygons of an annotation and their number, or its run lengths and -1."""
    found = one.get("segmentation")
    if found is None:
        return [], 0
    if _has_run_lengths(one):
        counts = found.get("counts")
        runs = _uncompressed(counts) if isinstance(counts, str) else _run_lengths(counts)
        if not size.all():  # readers of masks refuse the image itself
            return [runs.astype(np.int32)], -1
        if list(found.get("size") or ()) != size.tolist():
            raise _Fault(f"expected the image's height and width, {size.tolist()}, as `size` of run lengths, "
                         f"got {brief(found.get('size'))}")  # fmt: skip
        if (runs < 0).any() or runs.sum() != int(size[0]) * int(size[1]):
            raise _Fault(f"expected run lengths of {int(size[0]) * int(size[1])} pixels, got {int(runs.sum())}")
        return [runs.astype(np.int32)], -1
    if not isinstance(found, list):
        raise _Fault(f"expected polygons or run lengths as `segmentation`, got {brief(found)}")
    polygons = [_floats(p, "segmentation") for p in found]
    if any(len(p) % 2 for p in polygons):
        raise _Fault(f"expected pairs of coordinates in `segmentation`, got {brief(found)}")
    return [p.view(np.int32) for p in polygons], len(polygons)


def _run_lengths(counts: Any) -> npt.NDArray[np.int64]:
    good = isinstance(counts, list) and all(type(n) is int and 0 <= n < 1 << 31 for n in counts)
    if not good:
        raise _Fault(f"expected a list of run lengths as `counts`, got {brief(counts)}")
    return np.asarray(counts, np.int64)


def _uncompressed(text: str) -> npt.NDArray[np.int64]:
    """Return the run lengths in a text: five bits per character, lowest first, and a sixth if more follow. From the
    third number on, the difference to the number before the last one is stored."""
    found: list[int] = []
    number = shift = 0
    for character in text:
        bits = ord(character) - 48
        if not 0 <= bits < 64 or shift > 40:
            raise _Fault(f"expected compressed run lengths as `counts`, got {brief(text)}")
        number |= (bits & 31) << shift
        shift += 5
        if bits & 32:
            continue
        if bits & 16:
            number -= 1 << shift
        found.append(number + (found[-2] if len(found) > 2 else 0))
        number = shift = 0
    if shift:
        raise _Fault(f"expected compressed run lengths as `counts`, got an incomplete number in {brief(text)}")
    return np.asarray(found, np.int64)
