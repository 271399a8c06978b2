# SPDX-License-Identifier: Apache-2.0
"""Synthetic data set in class sub-folders, made from a few freely licensed photographs.

The same (count, seed) gives the same files under the same releases of Pillow and scikit-image. A manifest records the
settings. A complete set is used again. An incomplete set is never visible: it is written under a temporary name and
renamed when it is complete.
"""

from __future__ import annotations

import json
import multiprocessing
import os
import shutil
import tempfile
from collections.abc import Callable, Iterator
from concurrent.futures import ProcessPoolExecutor, as_completed
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from PIL import Image
from PIL import __version__ as pillow_version

from .._image_formats import open_image
from . import photos, recipe

DEFAULT_COUNT = 2048
MANIFEST = "manifest.json"
_FORMAT_FAMILY = "stoker synthetic photographs"
FORMAT = f"{_FORMAT_FAMILY}, 1"

_CHUNK = 32
_NOTE = """SYNTHETIC DATA

These files were made by `stoker demo`: cropped, turned, recoloured and re-encoded copies of a few freely licensed
photographs that scikit-image ships. They are good for measuring speed and checking bits, and useless for training.
"""


@dataclass(frozen=True)
class DataSet:
    """Folder of JPEG files in class sub-folders.

    Attributes:
        root: The folder.
        count: Number of files.
        size_bytes: Their total size.
        is_new: False if an earlier set was used again.
    """

    root: Path
    count: int
    size_bytes: int
    is_new: bool


class FolderTaken(RuntimeError):
    """The requested folder holds files that this module did not create, and therefore will not touch."""


def make(
    root: Path,
    count: int = DEFAULT_COUNT,
    *,
    seed: int = 0,
    workers: int | None = None,
    progress: Callable[[int], object] | None = None,
) -> DataSet:
    """Create the data set at `root`, or use the existing one.

    Args:
        root: Folder to create. An earlier set with other settings is replaced; other content is left alone.
        count: Number of images.
        seed: The same seed gives the same images.
        workers: Number of processes; default: the processors that this process may use.
        progress: Called with the number of images finished since the last call.

    Raises:
        FolderTaken: `root` exists and was not created by this function.
        PhotosMissing: The source photographs are not installed.
    """
    if count < 1:
        raise ValueError(f"`make`: expected `count` >= 1, got {count}.")
    earlier = find(root, count, seed=seed)
    if earlier is not None:
        return earlier
    if _read(root) is None and root.exists() and (not root.is_dir() or any(root.iterdir())):
        raise FolderTaken(f"{root} exists and was not made by this demonstration. Choose another folder with --out.")
    root.parent.mkdir(parents=True, exist_ok=True)
    unfinished = Path(tempfile.mkdtemp(prefix=f".{root.name}-", dir=root.parent))
    try:
        files = _write_images(unfinished, count, seed, workers or available_cpus(), progress)
        (unfinished / "README.txt").write_text(_NOTE)
        made_with = {"pillow": pillow_version, photos.DISTRIBUTION: photos.version()}
        manifest = {"key": _key(count, seed), "made_with": made_with, "files": files}
        (unfinished / MANIFEST).write_text(json.dumps(manifest, indent=0))
        unfinished.chmod(0o755)
        if root.exists():
            shutil.rmtree(root)
        unfinished.rename(root)
    finally:
        shutil.rmtree(unfinished, ignore_errors=True)
    return DataSet(root, count, sum(files.values()), is_new=True)


def available_cpus() -> int:
    """Return the number of processors that this process may use."""
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


def find(root: Path, count: int = DEFAULT_COUNT, *, seed: int = 0) -> DataSet | None:
    """Return the set that `make` would use again; None if it would create one."""
    manifest = _read(root)
    if manifest is None or manifest["key"] != _key(count, seed) or not _complete(root, manifest["files"]):
        return None
    return DataSet(root, count, sum(manifest["files"].values()), is_new=False)


def _key(count: int, seed: int) -> dict[str, str | int]:
    return {"format": FORMAT, "count": count, "seed": seed}


def _read(root: Path) -> dict[str, Any] | None:
    """Return the manifest of an earlier set; None if this module wrote none."""
    try:
        manifest = json.loads((root / MANIFEST).read_text())
    except (OSError, ValueError):
        return None
    key = manifest.get("key") if isinstance(manifest, dict) else None
    ours = isinstance(key, dict) and str(key.get("format")).startswith(_FORMAT_FAMILY)
    return manifest if ours else None


def _complete(root: Path, files: dict[str, int]) -> bool:
    try:
        return all((root / name).stat().st_size == size for name, size in files.items())
    except OSError:
        return False


def _write_images(
    root: Path, count: int, seed: int, workers: int, progress: Callable[[int], object] | None
) -> dict[str, int]:
    """Write all images in parallel. Return their paths below `root` with their sizes in bytes."""
    sources = photos.find_photos()
    for photo in sources:
        (root / photo.label).mkdir()
    files: dict[str, int] = {}
    context = multiprocessing.get_context("spawn")
    with ProcessPoolExecutor(workers, mp_context=context, initializer=_load, initargs=(sources,)) as pool:
        chunks = [pool.submit(_write_chunk, root, seed, chunk) for chunk in _chunks(count)]
        for done in as_completed(chunks):
            files.update(done.result())
            if progress is not None:
                progress(len(done.result()))
    for folder in root.iterdir():
        if not any(folder.iterdir()):
            folder.rmdir()
    return dict(sorted(files.items()))


def _chunks(count: int) -> Iterator[range]:
    return (range(first, min(first + _CHUNK, count)) for first in range(0, count, _CHUNK))


_sources: list[photos.Photo] = []
_pixels: list[Image.Image] = []


def _load(sources: list[photos.Photo]) -> None:
    """Decode the photographs once in each worker process."""
    _sources.extend(sources)
    for photo in sources:
        with open_image(photo.path) as image:
            _pixels.append(image.convert("L" if photo.gray else "RGB"))


def _write_chunk(root: Path, seed: int, indices: range) -> dict[str, int]:
    written = {}
    for index in indices:
        drawn = recipe.draw(seed, index, _sources)
        label = _sources[drawn.photo].label
        name = f"{label}/{label}_{index:05d}.jpg"
        written[name] = (root / name).write_bytes(recipe.render(drawn, _pixels[drawn.photo]))
    return written
