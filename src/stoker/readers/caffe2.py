# SPDX-License-Identifier: Apache-2.0
"""``readers.caffe2``: tensors in LMDB environments of Caffe2."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from ..contract.argument import arg
from ..contract.columns import Column, DataSet
from ..contract.errors import ArgumentError, DataError
from ..contract.storage import Storage
from ..contract.types import DType
from ._caffe2_tensors import NONE, SINGLE, WEIGHTED, TensorColumn, TensorForm
from ._containers import ContainerReader, paths_of
from .caffe import open_environments

_MOST_LABELS = 1 << 24  # a row of as many labels takes 64 MiB


class Caffe2Reader(ContainerReader, name="readers.caffe2"):
    """Read tensors of LMDB environments that Caffe2's tools have written. Outputs: image, label, other tensors.

    A record is a list of tensors: the image, the label (with weights for `label_type` 3), `additional_inputs` others,
    and a box. An encoded image is uint8 ``(N,)``; pixels are uint8 ``(H, W, C)``. The first record decides which of the
    two all are, and the types and axes of the other tensors.

    The label is ``(1,)`` for `label_type` 0. For 1 it is ``(num_labels,)`` in the type of the stored indices, with ones
    at the indices. For 2 it is the tensor as stored. For 3 it is float32 ``(num_labels,)``, with the weights at the
    indices. For 4 there is none. Records come in the order of their keys as bytes, one environment after the other.
    """

    positional = ("path",)
    outputs = 2
    result_neutral = (*ContainerReader.result_neutral, "path")
    path = arg("object", doc="Folder of an LMDB environment, or its data file (.mdb), or a list of them; or addresses.")
    num_labels = arg("int", 1, doc="Number of classes, at most 16777216, for `label_type` 1 and 3.")
    label_type = arg(
        "int", SINGLE, doc="0: one label; 1: indices of labels; 2: a tensor; 3: indices and weights; 4: none."
    )
    image_available = arg("bool", True, doc="Whether records begin with an image.")
    additional_inputs = arg("int", 0, doc="Number of other tensors after the label.")
    bbox = arg("bool", False, doc="Whether records end with a box, int32 ``(4,)``.")

    def validate(self, args: Mapping[str, Any]) -> None:
        """Check everything that does not depend on the disk."""
        super().validate(args)
        paths_of("path", args["path"], may_be_remote=True)
        if not SINGLE <= args["label_type"] <= NONE:
            raise ArgumentError(f"expected `label_type` from 0 to 4, got {args['label_type']}")
        if not 1 <= args["num_labels"] <= _MOST_LABELS or args["additional_inputs"] < 0:
            raise ArgumentError(
                f"expected `num_labels` >= 1 and at most {_MOST_LABELS}, and `additional_inputs` >= 0, got "
                f"{args['num_labels']} and {args['additional_inputs']}"
            )
        if not self.count_outputs(args):
            raise ArgumentError("expected an image, a label, other tensors or a box, got none of them")

    def count_outputs(self, args: Mapping[str, Any]) -> int:
        return sum(_parts(args).values())

    @classmethod
    def dataset(cls, args: Mapping[str, Any]) -> DataSet:
        """Find the records, and read the first one.

        Raises:
            ArgumentError: there are no records, an environment is damaged, or the first record lacks a tensor.
            OSError: the operating system fails.
        """
        storage, digest = open_environments(paths_of("path", args["path"], may_be_remote=True))
        try:
            columns = tuple(_columns(args, storage))
        except DataError as error:
            raise ArgumentError(
                f"expected tensors as the arguments say, the first record has others: {error}"
            ) from None
        return DataSet(columns, digest)


def _parts(args: Mapping[str, Any]) -> dict[str, int]:
    """Return the numbers of outputs of each kind."""
    label = int(args["label_type"] != NONE)
    return {"image": int(args["image_available"]), "label": label, "other": args["additional_inputs"],
            "box": int(args["bbox"])}  # fmt: skip


def _columns(args: Mapping[str, Any], storage: Storage) -> list[Column]:
    first, parts = storage.content(0), _parts(args)
    names = [("data", "image")] if parts["image"] else []
    names += [("label", "label")] if parts["label"] else []
    names += [(f"input {k}", "tensor") for k in range(parts["other"])]
    names += [("bbox", "box")] if parts["box"] else []
    columns: list[Column] = []
    number = 0
    for name, kind in names:
        form = TensorForm(kind, number, args["label_type"], args["num_labels"])
        number += 2 if kind == "label" and args["label_type"] == WEIGHTED else 1
        value = form.read(first)
        columns.append(TensorColumn(name, storage, form, DType.of(value.dtype), value.ndim))
    return columns
