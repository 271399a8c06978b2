# SPDX-License-Identifier: Apache-2.0
"""``readers.file``: files of a folder, a list file or a given list, with integer labels."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from .._image_formats import EXTENSIONS
from ..contract.argument import arg
from ..contract.columns import DataSet
from ..contract.errors import ArgumentError
from ..contract.text import brief
from ._listing import list_files
from ._origins import OriginReader
from ._sampled import SampledReader


class FileReader(OriginReader, name="readers.file"):
    """Read whole files. Outputs: the bytes, uint8 ``(N,)``, and the label, int32 ``(1,)``.

    Without ``files`` or ``file_list``, every sub-folder of ``file_root`` is a class; classes are numbered in
    lexicographic order, and files come in lexicographic order within their class, as in DALI.
    """

    outputs = 2
    # The data set's own fingerprint covers the list of files.
    result_neutral = (
        *SampledReader.result_neutral, "file_root", "file_list", "files", "labels", "extensions", "file_filters",
        "origin", "dir_filters", "case_sensitive_filter", "initial_fill", "prefetch_queue_depth", "read_ahead",
        "shuffle_after_epoch_seed", "skip_cached_images", "dont_use_mmap", "lazy_init", "tensor_init_bytes",
    )  # fmt: skip
    file_root = arg("str", None, doc="Folder with one sub-folder per class; the base of relative paths otherwise.")
    file_list = arg("str", None, doc='Text file with one "path label" per line, separated by spaces or tabs.')
    files = arg(
        "object",
        None,
        doc="Path or list of paths, absolute or relative to file_root; or addresses of objects (s3://, gs://, az://, "
        "https://).",
    )
    labels = arg("object", None, doc="One integer per path of `files`; the index of the path if not given.")
    extensions = arg(
        "object", None, doc='Extensions of the files to take, with their dot ("" for none), such as [".jpg", ".png"]. '
        "By default the images: files with the extension "
        + ", ".join(EXTENSIONS) + ", and other files whose content begins like an image.",
    )  # fmt: skip
    file_filters = arg("object", None, doc="Patterns of the names to take, in place of `extensions`.")
    dir_filters = arg("object", None, doc="Patterns of the class folders to take; by default all.")
    case_sensitive_filter = arg("bool", False, doc="Whether the patterns distinguish upper and lower case.")
    shuffle_after_epoch_seed = arg("int", None, doc="No effect: `seed` decides the order of shuffled epochs.")
    initial_fill = arg("int", 1024, doc="No effect: a shuffle is over the whole data set, not over a buffer.")
    prefetch_queue_depth = arg("int", 1, doc="No effect: the pipeline's prefetch_queue_depth holds.")
    read_ahead = arg("bool", False, doc="No effect: rows are prefetched with their batches.")
    skip_cached_images = arg("bool", False, doc="No effect: there is no cache of decoded images.")
    dont_use_mmap = arg("bool", False, doc="No effect: files are always read, never mapped.")
    lazy_init = arg("bool", False, doc="No effect: the files are listed when the pipeline is built.")
    tensor_init_bytes = arg("int", 1048576, doc="No effect: memory is planned.")

    def validate(self, args: Mapping[str, Any]) -> None:
        """Check everything that does not depend on the disk."""
        super().validate(args)
        if args["extensions"] is None:
            return
        if args["file_filters"] is not None:
            raise ArgumentError("expected one of `extensions` and `file_filters`, got both")
        given = args["extensions"]
        listed = isinstance(given, (list, tuple, set, frozenset))
        if not listed or not all(isinstance(x, str) and x[:1] in ("", ".") for x in given):
            raise ArgumentError(
                f'expected `extensions` to be a list of extensions with their dot, such as [".jpg", ".png"], '
                f"got {brief(given)}"
            )

    @classmethod
    def dataset(cls, args: Mapping[str, Any]) -> DataSet:
        """List the files.

        Raises:
            ArgumentError: the arguments contradict each other, or there are no files.
            OSError: the operating system fails.
        """
        return list_files(args).finish()
