# SPDX-License-Identifier: Apache-2.0
"""Generator of ``docs/torchvision.md``: which of torchvision's transforms the take-over records, found by running them.

Run as ``.venv/bin/python -m tests.takeover.table``; a test compares the page. Every row is measured: the transform runs
on the same file with the same random state, untouched and taken over, and the results are compared bit for bit. An
emulation of threads runs the GPU's kernels, so that every machine can write the page. A test on a GPU compares it with
the real ones.
"""

from __future__ import annotations

import contextlib
import io
import re
import sys
import tempfile
import warnings
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any, NamedTuple

ROOT = Path(__file__).resolve().parents[2]
# The folders of `photographs` and of the GPU's emulation, for runs outside of pytest.
sys.path += [str(ROOT / "tests"), str(ROOT / "tests" / "cuda"), str(ROOT / "tests" / "native")]

import emulated_stages  # noqa: E402
import numpy as np  # noqa: E402
import torch  # noqa: E402
from photographs import photograph  # noqa: E402
from PIL import Image  # noqa: E402

import tests.takeover.declared  # noqa: E402, F401
from tests.takeover import transforms, trials  # noqa: E402
from tests.takeover.lazily import lazily  # noqa: E402
from tests.takeover.transforms import Make  # noqa: E402

from torchvision.transforms import v2  # noqa: E402  # isort: skip
import torchvision  # noqa: E402  # isort: skip
import torchvision.transforms as v1  # noqa: E402  # isort: skip

from stoker.device.gpu import Gpu  # noqa: E402
from stoker.frontends.torchvision import counts  # noqa: E402
from stoker.frontends.torchvision.gpu import grouping, plans  # noqa: E402
from stoker.frontends.torchvision.gpu.destination import Destination, GpuMaterialization  # noqa: E402
from stoker.frontends.torchvision.pillow.image import LazyImage  # noqa: E402
from stoker.frontends.torchvision.tensors.tensor import LazyTensor, image_tensor, materialize  # noqa: E402
from stoker.native import _native  # noqa: E402

PAGE = ROOT / "docs" / "torchvision.md"
TEXT = Path(__file__).with_name("page.md")  # text above the tables
_MARK = "<!-- written by tests/takeover/table.py; the text above its tables is tests/takeover/page.md -->\n"
RELEASE = ".".join(torchvision.__version__.split(".")[:2])
TRIED = "*"  # marks a cell that depends on the processor's order of additions in torch
_DRAWS = 4  # runs of random transforms, each from another state


class Column(NamedTuple):
    """Input of a transform: its generation, and the preceding steps."""

    title: str
    library: Any
    before: Callable[[Any], list[Any]] = lambda t: []

    def after_steps(self, make: Make) -> Make:
        """Return the result of a transform after these steps."""
        return lambda t: t.Compose([*self.before(t), make(t)]) if self.before(t) else make(t)


_OF_IMAGES = (
    Column("v1, Pillow image", v1),
    Column("v1, PILToTensor", v1, lambda t: [t.PILToTensor()]),
    Column("v2, Pillow image", v2),
    Column("v2, ToImage", v2, lambda t: [t.ToImage()]),
)
_TO_TENSOR = (Column("v1", v1), Column("v2", v2))
_OF_FLOATS = (
    Column("v1, after ToTensor", v1, lambda t: [t.ToTensor()]),
    Column("v2, after ToTensor", v2, lambda t: [t.ToTensor()]),
    Column("v2, after ToDtype", v2, lambda t: [t.ToImage(), t.ToDtype(torch.float32, scale=True)]),
)


def page(destination: Destination | None) -> str:
    """Return the page's text.

    Args:
        destination: computes the GPU's columns; None leaves them empty.
    """
    return "\n".join([
        _MARK + TEXT.read_text(encoding="utf-8"),
        *_table("Images", transforms.IMAGES, _OF_IMAGES, destination),
        *_table("From images to tensors", transforms.TO_TENSOR, _TO_TENSOR, destination),
        *_table("Floats", transforms.FLOATS, _OF_FLOATS, destination),
    ])  # fmt: skip


def release_of(text: str) -> str:
    """Return the release of torchvision that a page was measured with."""
    (release,) = re.findall(r"with torchvision (\d+\.\d+)\.", text)
    return release


def rows_of(text: str) -> dict[str, list[str]]:
    """Return the cells of each row of a page, by the row's table and name."""
    rows, table = {}, ""
    for line in text.splitlines():
        if line.startswith("### "):
            table = line[4:]
        elif table and line.startswith("| ") and not line.startswith("| transform |"):
            name, *cells = line.strip("| ").split(" | ")
            rows[f"{table}: {name}"] = cells
    return rows


def may_both_be(one: list[str], other: list[str]) -> bool:
    """Return whether two machines may have such cells in one row: they may differ only in the marks of trials."""
    found = {f"covered{TRIED}", f"fallback{TRIED}"}
    by_whom = {"equal", "by the CPU", "—"}  # a GPU supports some orders, not all
    pairs = [zip(cells[::2], cells[1::2], strict=True) for cells in (one, other)]
    return all(a == b or ({a[0], b[0]} <= found and {a[1], b[1]} <= by_whom) for a, b in zip(*pairs, strict=True))


def _table(title: str, rows: dict[str, Make], columns: Sequence[Column], destination: Destination | None) -> list[str]:
    titles = ["transform", *(title for column in columns for title in (column.title, "GPU"))]
    lines = [f"### {title}\n", f"| {' | '.join(titles)} |", "|---" * len(titles) + "|"]
    for name, make in rows.items():
        found = [text for column in columns for text in cells(column.after_steps(make), column.library, destination)]
        lines.append(f"| {name} | {' | '.join(found)} |")
    return [*lines, ""]


@contextlib.contextmanager
def emulated_place(folder: Path) -> Iterator[Destination]:
    """Return a destination whose kernels run on an emulation of threads; ``folder`` caches them."""
    before_emulation = Gpu.open, plans.GPU_LOAD, plans.JOBS_IN_FLIGHT
    with few_rows():
        try:
            Gpu.open = staticmethod(lambda number, limit=None: emulated_stages.EmulatedStages(folder))  # type: ignore[assignment, method-assign]
            plans.GPU_LOAD, plans.JOBS_IN_FLIGHT = 0.0, 1  # an emulated kernel runs one launch at a time
            destination = Destination(torch.device("cpu"), 0, 1)
            yield destination
            destination.close()
        finally:
            Gpu.open, plans.GPU_LOAD, plans.JOBS_IN_FLIGHT = before_emulation  # type: ignore[method-assign]


@contextlib.contextmanager
def few_rows() -> Iterator[None]:
    """Use plans for single rows."""
    few, grouping._MIN_FILES = grouping._MIN_FILES, 1
    try:
        yield
    finally:
        grouping._MIN_FILES = few


def cell(make: Make, library: Any) -> str:
    """Return the table's cell for a transform on the CPU."""
    return cells(make, library, None)[0]


def cells(make: Make, library: Any, destination: Destination | None) -> tuple[str, str]:
    """Return the table's cells for a transform, on the CPU and on the destination."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        try:
            transform = make(library)
            _outputs(transform, 0)
        except (AttributeError, NotImplementedError, TypeError, ValueError):
            return "—", "—"
        expected = [_outputs(transform, seed) for seed in range(_DRAWS)]
        counts.reset()
        with lazily(), trials.watched() as answered:
            ours = [x for seed in range(_DRAWS) for x in _outputs(transform, seed)]
            recorded = all(_is_lazy(x) for x in ours)
            placed = _placed(ours, destination) if recorded and destination is not None else None
            found = [_array(x) for x in ours]
    wanted = [_array(x) for outputs in expected for x in outputs]
    difference = max(_difference(a, b) for a, b in zip(wanted, found, strict=True))
    on_gpu = "—" if placed is None else _on_gpu(wanted, *placed)
    if difference:
        return f"differs by {difference:g}", on_gpu
    if recorded:
        return "covered" + TRIED * bool(answered), on_gpu
    return "fallback" + TRIED * (not all(answered)), on_gpu


def _placed(lazies: list[Any], destination: Destination) -> tuple[list[Any], int]:
    """Return the GPU's results for lazy images and tensors, and the number of images that it computed itself."""
    tensors = [
        LazyTensor(x._rows, x._lead) if issubclass(type(x), LazyTensor) else image_tensor(x._node) for x in lazies
    ]
    before = counts.totals()[counts.ON_GPU]
    materialization = GpuMaterialization(tensors, destination)
    if materialization.native_batch is not None:
        _native.recipe.materialize(materialization.native_batch)
    materialization.finish()
    results = []
    for x, tensor in zip(lazies, tensors, strict=True):
        array = tensor._materialized.cpu().numpy()
        if issubclass(type(x), LazyImage):
            array = array.transpose(1, 2, 0) if array.shape[0] > 1 else array[0]
        results.append(np.ascontiguousarray(array))
    return results, int(counts.totals()[counts.ON_GPU] - before)


def _on_gpu(wanted: list[Any], results: list[Any], by_itself: int) -> str:
    difference = max(_difference(a, b) for a, b in zip(wanted, results, strict=True))
    if difference:
        return f"differs by {difference:g}"
    return "equal" if by_itself == len(results) else "by the CPU"


def _file() -> bytes:
    out = io.BytesIO()
    Image.fromarray(photograph(5, 90, 120)).save(out, "JPEG", quality=92)
    return out.getvalue()


_DATA = _file()


def _outputs(transform: Any, seed: int) -> list[Any]:
    torch.manual_seed(seed)
    np.random.seed(seed)
    import random

    random.seed(seed)
    result = transform(Image.open(io.BytesIO(_DATA)).convert("RGB"))
    return list(result) if isinstance(result, (list, tuple)) else [result]


def _is_lazy(x: Any) -> bool:
    if issubclass(type(x), LazyTensor):
        return x._materialized is None
    return issubclass(type(x), LazyImage) and x._node is not None


def _array(x: Any) -> np.ndarray[Any, Any]:
    return np.asarray(materialize(x) if issubclass(type(x), LazyTensor) else x)


def _difference(a: np.ndarray[Any, Any], b: np.ndarray[Any, Any]) -> float:
    if a.shape != b.shape or a.dtype != b.dtype:
        return float("inf")
    return 0.0 if a.tobytes() == b.tobytes() else float(np.abs(a.astype(np.float64) - b.astype(np.float64)).max())


if __name__ == "__main__":
    with tempfile.TemporaryDirectory() as cache, emulated_place(Path(cache)) as emulated:
        PAGE.write_text(page(emulated), encoding="utf-8")
