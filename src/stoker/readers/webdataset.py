# SPDX-License-Identifier: Apache-2.0
"""``readers.webdataset``: samples whose components are adjacent members of tar files."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
import numpy.typing as npt

from ..contract.argument import arg
from ..contract.columns import DataSet
from ..contract.errors import ArgumentError
from ..contract.storage import RecordForm
from ..contract.text import brief, printable
from ..contract.types import DType
from ..native import _native
from ..remote.store import RemoteStore, open_store
from ._columns import Bytes, fingerprint
from ._containers import ContainerReader, check_begin, index_paths_of, paths_of, ranges_of
from ._fetching import AsyncStorage
from ._index_files import ContainerIndex, index_files
from ._manifest import manifest_of, refuse_index, storages_of
from ._manifest_file import OpenManifest
from ._origins import OriginReader
from ._storages import RangeStorage
from ._tar_index import read_tar_index

_BEHAVIORS = ("empty", "skip", "error")


class WebDatasetReader(OriginReader, ContainerReader, name="readers.webdataset"):
    """Read samples from tar files in the WebDataset form. Outputs: a component per entry of `ext`.

    Adjacent members of a tar file with one name up to the first dot of its last part are a sample; the rest of the name
    is the component's extension. A component is uint8 ``(N,)``, or with `dtypes` its elements, ``(N / size,)``. If a
    sample has several members with an extension of an output, the first one is taken. Hidden files belong to no sample.

    No index files are needed: the first pipeline over a tar file finds its members, in one pass over their headers, and
    keeps the result in Stoker's cache folder. Names of any length are read, in the forms of ustar, GNU tar and pax.
    """

    positional = ("paths",)
    result_neutral = (*ContainerReader.result_neutral, "origin", "paths", "index_paths")
    paths = arg(
        "object",
        doc="Tar file, or a list of tar files; or a manifest (.manifest), which `stoker index --manifest` writes.",
    )
    ext = arg(
        "object", doc='Extension of each output, such as ["jpg", "cls"]; an entry may have several, "jpg;png".',
    )  # fmt: skip
    index_paths = arg(
        "object", None, doc="Index file of each tar file, as DALI's `wds2idx` writes them. By default the members are "
        "found without one.",
    )  # fmt: skip
    dtypes = arg("object", None, doc="Element type of each output, little-endian as stored; by default uint8.")
    missing_component_behavior = arg(
        "str", "", doc='Policy for samples without a component of an output: "empty" (the default) gives no elements, '
        '"skip" leaves the sample out, "error" refuses the data set.',
    )  # fmt: skip
    case_sensitive_extensions = arg("bool", True, doc="Whether extensions distinguish upper and lower case.")

    def validate(self, args: Mapping[str, Any]) -> None:
        """Check everything that does not depend on the disk."""
        super().validate(args)
        index_paths_of("index_paths", args["index_paths"], paths_of("paths", args["paths"], may_be_remote=True))
        count = len(_extensions(args))
        _dtypes(args, count)
        _behavior(args)

    def count_outputs(self, args: Mapping[str, Any]) -> int:
        return 1 if args["ext"] is None else len(_extensions(args))

    @classmethod
    def dataset(cls, args: Mapping[str, Any]) -> DataSet:
        """Find the samples.

        Raises:
            ArgumentError: there are no samples, a tar file or an index file is damaged, or a component is missing.
            OSError: the operating system fails.
        """
        paths, extensions = paths_of("paths", args["paths"], may_be_remote=True), _extensions(args)
        manifest = manifest_of("paths", paths, "tar")
        if manifest is not None:
            return _dataset_of(manifest, args, extensions)
        store = open_store(paths)
        given = index_paths_of("index_paths", args["index_paths"], paths)
        indexes = index_files("tar", paths, store) if given is None else [read_tar_index(path) for path in given]
        if given is None:
            _require_intact(paths, indexes)
        fold = not args["case_sensitive_extensions"]
        samples = [_samples(index, extensions, fold) for index in indexes]
        keep = _keep(paths, indexes, samples, _behavior(args), args["ext"])
        columns, decides = [], []
        for output, (entry, dtype) in enumerate(zip(extensions, _dtypes(args, len(extensions)), strict=True)):
            chosen = [s[k, output] for s, k in zip(samples, keep, strict=True)]
            storage = _storage(paths, indexes, chosen, store)
            columns.append(Bytes(f"{output}: {';'.join(entry)}", storage, dtype, optional=True))
        if not len(columns[0]):
            raise ArgumentError(f"expected samples in {len(paths)} tar files such as '{printable(paths[0])}', got none")
        for index, found, k in zip(indexes, samples, keep, strict=True):
            decides += [index.names or index.offset, index.length, found, k]
        return DataSet(tuple(columns), fingerprint(*decides))


def _dataset_of(manifest: OpenManifest, args: Mapping[str, Any], extensions: list[list[str]]) -> DataSet:
    """Return the data set of a manifest.

    Raises:
        ArgumentError: samples without a component would have to be found in advance.
    """
    refuse_index("index_paths", args["index_paths"])
    fold = not args["case_sensitive_extensions"]
    names = [name.lower() if fold else name for name in manifest.columns]
    columns = [[number for number, name in enumerate(names) if name in entry] for entry in extensions]
    count, behavior = len(manifest.native), _behavior(args)
    for entry, numbers in zip(extensions, columns, strict=True):
        if not numbers:
            raise ArgumentError(
                f"expected components of {', '.join(map(repr, names[:10]))} in '{printable(manifest.path)}', got "
                f"{';'.join(entry)!r}"
            )
        if behavior != "empty" and all(manifest.present[number] < count for number in numbers):
            most = max(manifest.present[number] for number in numbers)
            raise ArgumentError(
                f"expected {';'.join(entry)!r} in all {count} samples of '{printable(manifest.path)}', as "
                f'`missing_component_behavior="{behavior}"` needs with a manifest, got it in {most}. "empty" gives no '
                "elements there"
            )
    storages = storages_of(manifest, columns, RecordForm.STORED)
    dtypes = _dtypes(args, len(extensions))
    found = tuple(
        Bytes(f"{output}: {';'.join(entry)}", storage, dtype, optional=True)
        for output, (entry, storage, dtype) in enumerate(zip(extensions, storages, dtypes, strict=True))
    )
    return DataSet(found, fingerprint(manifest.digest, repr(extensions), str(fold)))


def _extensions(args: Mapping[str, Any]) -> list[list[str]]:
    """Return the extensions of each output."""
    given = args["ext"]
    listed = [given] if isinstance(given, str) else given
    if not isinstance(listed, (list, tuple)) or not listed or not all(isinstance(e, str) for e in listed):
        raise ArgumentError(f'expected an extension or a list of extensions as `ext`, such as ["jpg", "cls"], got '
                            f"{brief(given)}")  # fmt: skip
    found = [[part for part in entry.split(";") if part] for entry in listed]
    if not all(found):
        raise ArgumentError(f"expected at least one extension in every entry of `ext`, got {brief(given)}")
    dotted = next((part for entry in found for part in entry if part.startswith(".")), None)
    if dotted is not None:
        raise ArgumentError(f"expected extensions without their dot as `ext`, got {dotted!r}: {dotted[1:]!r}")
    return found if args["case_sensitive_extensions"] else [[part.lower() for part in entry] for entry in found]


def _dtypes(args: Mapping[str, Any], count: int) -> list[DType]:
    given = args["dtypes"]
    if given is None:
        return [DType.UINT8] * count
    listed = list(given) if isinstance(given, (list, tuple)) else [given]
    try:
        found = [DType.of(d) for d in listed]
    except TypeError as error:
        raise ArgumentError(f"argument `dtypes`: {error}") from None
    if DType.BFLOAT16 in found:
        raise ArgumentError("expected `dtypes` of integers or floats, got bfloat16")
    if len(found) != count:
        raise ArgumentError(f"expected a type in `dtypes` for each of {count} outputs, got {len(found)}")
    return found


def _behavior(args: Mapping[str, Any]) -> str:
    asked = args["missing_component_behavior"].lower() or "empty"
    if asked not in _BEHAVIORS:
        raise ArgumentError(
            f"expected one of {', '.join(map(repr, _BEHAVIORS))} as `missing_component_behavior`, got {brief(asked)}"
        )
    return str(asked)


def _require_intact(paths: list[str], indexes: list[ContainerIndex]) -> None:
    """Raise ArgumentError for a tar file whose members cannot all be found."""
    for path, index in zip(paths, indexes, strict=True):
        check_begin(path, index, "tar")
        if index.damage:
            raise ArgumentError(
                f"'{printable(path)}' is damaged at byte {index.damage_offset}: {index.damage}. Later samples cannot "
                "be found; write the file again"
            )


def _samples(index: ContainerIndex, extensions: list[list[str]], fold: bool) -> npt.NDArray[np.int64]:
    """Return per sample and output the number of the member, or -1."""
    _, chosen = _native.group_members(index.names, extensions, fold)
    return chosen.reshape(-1, len(extensions))


def _keep(
    paths: list[str], indexes: list[ContainerIndex], samples: list[npt.NDArray[np.int64]], behavior: str, ext: Any
) -> list[npt.NDArray[np.bool_]]:
    """Return masks of the samples to take."""
    complete = [np.asarray((s >= 0).all(axis=1), bool) for s in samples]
    if behavior == "error":
        for path, found, full in zip(paths, samples, complete, strict=True):
            if not full.all():
                number = int(np.argmin(full))
                missing = [_extension_of(ext, int(o)) for o in np.flatnonzero(found[number] < 0)]
                raise ArgumentError(
                    f"expected {', '.join(map(repr, missing))} in every sample, got none in sample {number} of "
                    f"'{printable(path)}', and in {int((~full).sum())} samples of it. "
                    '`missing_component_behavior="empty"` or "skip" accept such samples'
                )
    return complete if behavior == "skip" else [np.ones(len(s), bool) for s in samples]


def _extension_of(ext: Any, output: int) -> str:
    return str(ext if isinstance(ext, str) else ext[output])


def _storage(
    paths: list[str], indexes: list[ContainerIndex], chosen: list[npt.NDArray[np.int64]], store: RemoteStore | None
) -> RangeStorage | AsyncStorage:  # fmt: skip
    file = np.repeat(np.arange(len(paths), dtype=np.uint32), [len(c) for c in chosen])
    member = [np.maximum(c, 0) for c in chosen]
    offset = [index.offset[m] if len(index) else m for index, m in zip(indexes, member, strict=True)]
    length = [index.length[m] if len(index) else m for index, m in zip(indexes, member, strict=True)]
    absent = np.concatenate([c < 0 for c in chosen])
    begins, sizes = np.concatenate(offset).astype(np.uint64), np.concatenate(length).astype(np.uint64)
    return ranges_of(paths, file, begins, sizes, absent, RecordForm.STORED, store, indexes)
