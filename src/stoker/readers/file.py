# SPDX-License-Identifier: Apache-2.0
"""``readers.file``: files of a folder, a list file or a given list, with integer labels."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from ..contract.argument import ON_ERROR, arg
from ..contract.errors import ArgumentError
from ..contract.lowering import Lowering
from ..contract.operator import Operator
from ..contract.reader import OpenSource
from ..contract.step import Value
from ..contract.types import DType
from ._listing import PARTIAL, Listing, list_files
from ._samplers import Sampler, Sequential, Shuffled, as_sampler
from ._sharding import NUM_SHARDS, PAD_LAST_BATCH, SHARD_ID, SHARDING, STICK_TO_SHARD, check_shards, shards_of


class FileReader(Operator, name="readers.file"):
    """Read whole files. Outputs: the bytes, uint8 ``(N,)``, and the label, int32 ``(1,)``.

    Without ``files`` or ``file_list``, every sub-folder of ``file_root`` is a class; classes are numbered in
    lexicographic order, and files come in lexicographic order within their class, as in DALI.
    """

    devices = ("cpu",)
    inputs = (0, 0)
    outputs = 2
    kind = "source"
    # Which files there are is told by the data set's own fingerprint.
    incidental = (
        "file_root", "file_list", "files", "labels", "file_filters", "dir_filters", "case_sensitive_filter",
        "num_shards", "shard_id", "sharding", "stick_to_shard", "pad_last_batch", "initial_fill",
        "prefetch_queue_depth", "read_ahead", "skip_cached_images", "dont_use_mmap", "lazy_init", "tensor_init_bytes",
        "on_error",
    )  # fmt: skip
    file_root = arg("str", None, doc="Folder with one sub-folder per class; the base of relative paths otherwise.")
    file_list = arg("str", None, doc='Text file with one "path label" per line.')
    files = arg("object", None, doc="Paths, absolute or relative to file_root.")
    labels = arg("object", None, doc="One integer per path of `files`; the index of the path if not given.")
    file_filters = arg("object", None, doc="Patterns of the names to take; by default the usual image and audio ones.")
    dir_filters = arg("object", None, doc="Patterns of the class folders to take; by default all.")
    case_sensitive_filter = arg("bool", False, doc="Whether the patterns tell upper from lower case.")
    random_shuffle = arg("bool", False, doc="Another order every epoch: a permutation of the whole data set.")
    shuffle_after_epoch = arg("bool", False, doc="As random_shuffle, but the first epoch is in order.")
    seed = arg("int", None, doc="Seed of the order; by default the pipeline's.")
    sampler = arg(
        "object", None, doc="Which samples an epoch takes, in which order: one of stoker.samplers, a sequence of "
        "numbers, or anything that can be iterated, such as a torch.utils.data.Sampler.",
    )  # fmt: skip
    num_shards = NUM_SHARDS
    shard_id = SHARD_ID
    sharding = SHARDING
    stick_to_shard = STICK_TO_SHARD
    pad_last_batch = PAD_LAST_BATCH
    initial_fill = arg("int", 1024, doc="No effect: a shuffle is over the whole data set, not over a buffer.")
    prefetch_queue_depth = arg("int", 1, doc="No effect: the pipeline's prefetch_queue_depth holds.")
    read_ahead = arg("bool", False, doc="No effect: rows are read ahead as far as batches are.")
    skip_cached_images = arg("bool", False, doc="No effect: there is no cache of decoded images.")
    dont_use_mmap = arg("bool", False, doc="No effect: files are always read, never mapped.")
    lazy_init = arg("bool", False, doc="No effect: the files are listed when the pipeline is built.")
    tensor_init_bytes = arg("int", 1048576, doc="No effect: memory is planned.")
    on_error = ON_ERROR

    def validate(self, args: Mapping[str, Any]) -> None:
        """Check what does not depend on the disk."""
        check_shards(args)
        if args["shuffle_after_epoch"] and (args["random_shuffle"] or args["stick_to_shard"]):
            raise ArgumentError(
                "`shuffle_after_epoch` shuffles the whole data set: expected neither `random_shuffle` nor "
                "`stick_to_shard` beside it"
            )
        if args["sampler"] is not None and (args["random_shuffle"] or args["shuffle_after_epoch"]):
            raise ArgumentError(
                "`sampler` says the order: expected no `random_shuffle` or `shuffle_after_epoch` beside it"
            )

    @staticmethod
    def listed(args: Mapping[str, Any]) -> tuple[Listing, Sampler]:
        """The files and their order. ArgumentError for contradictory arguments or no files, OSError for the disk's."""
        return list_files(args), _sampler(args)

    @classmethod
    def open(cls, args: Mapping[str, Any]) -> OpenSource:
        """List the files; raises as :meth:`listed`."""
        shards = shards_of(args, shuffled=args["random_shuffle"])
        listing, sampler = cls.listed(args)
        table, labels, digest = listing.finish()
        order = sampler.bind(len(labels), labels, shards, args["seed"])
        return OpenSource(order, table, labels, digest, shards, repr(sampler))

    def lower(self, c: Lowering) -> tuple[Value, Value]:
        reader, source = c.reader(), c.source
        data = c.opaque(DType.UINT8, 1)
        c.emit("read", [], [data], attrs=(source.storage, reader), allocates=True, partial=PARTIAL)
        label = c.native("lookup", [], [(DType.INT32, (1,), "")], attrs=(source.labels, reader))[0]
        return data, label


def _sampler(args: Mapping[str, Any]) -> Sampler:
    if args["sampler"] is not None:
        return as_sampler(args["sampler"])
    if args["random_shuffle"] or args["shuffle_after_epoch"]:
        return Shuffled(first_epoch=1 if args["shuffle_after_epoch"] else 0)
    return Sequential()
