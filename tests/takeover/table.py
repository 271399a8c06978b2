# SPDX-License-Identifier: Apache-2.0
"""Writes ``docs/torchvision.md``: for each of torchvision's transforms, whether the take-over covers it, by trying it.

Run as ``.venv/bin/python -m tests.takeover.table``; a test compares. Every row is measured: the transform runs on
the same file with the same random state, untouched and taken over, and the results are compared bit for bit. What the
GPU makes is made by its kernels on an emulation of threads, so that the page can be written anywhere; on a GPU, a test
compares the same.
"""

from __future__ import annotations

import contextlib
import io
import sys
import tempfile
import warnings
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any, NamedTuple

ROOT = Path(__file__).resolve().parents[2]
# Where `photographs` and what emulates a GPU are, when this runs by itself.
sys.path += [str(ROOT / "tests"), str(ROOT / "tests" / "cuda"), str(ROOT / "tests" / "native")]

import emulated_stages  # noqa: E402
import numpy as np  # noqa: E402
import torch  # noqa: E402
from photographs import photograph  # noqa: E402
from PIL import Image  # noqa: E402

import tests.takeover.declared  # noqa: E402, F401
from tests.takeover import transforms  # noqa: E402
from tests.takeover.transforms import Make  # noqa: E402

from torchvision.transforms import v2  # noqa: E402  # isort: skip
import torchvision  # noqa: E402  # isort: skip
import torchvision.transforms as v1  # noqa: E402  # isort: skip

import stoker.torchvision  # noqa: E402
from stoker.device.gpu import Gpu  # noqa: E402
from stoker.frontends.torchvision import counts, grouping, plans  # noqa: E402
from stoker.frontends.torchvision.image import LazyImage  # noqa: E402
from stoker.frontends.torchvision.place import Place, PlacedMaking  # noqa: E402
from stoker.frontends.torchvision.tensor import LazyTensor, image_tensor, real  # noqa: E402
from stoker.native import _native  # noqa: E402

PAGE = ROOT / "docs" / "torchvision.md"
TEXT = Path(__file__).with_name("page.md")  # what stands above the tables
_MARK = "<!-- written by tests/takeover/table.py; the text above its tables is tests/takeover/page.md -->\n"
RELEASE = "torchvision " + ".".join(torchvision.__version__.split(".")[:2]) + ";"
_DRAWS = 4  # random transforms run so often, each time from another state


class Column(NamedTuple):
    """What is transformed: by which generation, and behind which steps."""

    title: str
    library: Any
    before: Callable[[Any], list[Any]] = lambda t: []

    def made(self, make: Make) -> Make:
        """A transform behind these steps."""
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


def page(place: Place) -> str:
    """The page's text. ``place``: what makes the GPU's columns."""
    return "\n".join([
        _MARK + TEXT.read_text(encoding="utf-8"),
        *_table("Images", transforms.IMAGES, _OF_IMAGES, place),
        *_table("From images to tensors", transforms.TO_TENSOR, _TO_TENSOR, place),
        *_table("Floats", transforms.FLOATS, _OF_FLOATS, place),
    ])  # fmt: skip


def _table(title: str, rows: dict[str, Make], columns: Sequence[Column], place: Place) -> list[str]:
    titles = ["transform", *(title for column in columns for title in (column.title, "GPU"))]
    lines = [f"### {title}\n", f"| {' | '.join(titles)} |", "|---" * len(titles) + "|"]
    for name, make in rows.items():
        found = [text for column in columns for text in cells(column.made(make), column.library, place)]
        lines.append(f"| {name} | {' | '.join(found)} |")
    return [*lines, ""]


@contextlib.contextmanager
def emulated_place(folder: Path) -> Iterator[Place]:
    """A GPU's kernels on an emulation of threads; they are kept in ``folder``."""
    kept = Gpu.open, plans.GPU_LOAD, plans.LINES
    with few_rows():
        try:
            Gpu.open = staticmethod(lambda number, limit=None: emulated_stages.EmulatedStages(folder))  # type: ignore[assignment, method-assign]
            plans.GPU_LOAD, plans.LINES = 0.0, 1  # an emulated kernel runs one launch at a time
            place = Place(torch.device("cpu"), 0, 1)
            yield place
            place.close()
        finally:
            Gpu.open, plans.GPU_LOAD, plans.LINES = kept  # type: ignore[method-assign]


@contextlib.contextmanager
def few_rows() -> Iterator[None]:
    """Plans for single rows."""
    few, grouping._FEW = grouping._FEW, 1
    try:
        yield
    finally:
        grouping._FEW = few


def cell(make: Make, library: Any) -> str:
    """What the table says about a transform on the CPU."""
    return cells(make, library, None)[0]


def cells(make: Make, library: Any, place: Place | None) -> tuple[str, str]:
    """What the table says about a transform, on the CPU and by ``place``."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        try:
            transform = make(library)
            _outputs(transform, 0)
        except (AttributeError, NotImplementedError, TypeError, ValueError):
            return "—", "—"
        expected = [_outputs(transform, seed) for seed in range(_DRAWS)]
        counts.reset()
        with stoker.torchvision.enabled():
            ours = [x for seed in range(_DRAWS) for x in _outputs(transform, seed)]
            recorded = all(_is_lazy(x) for x in ours)
            there = _placed(ours, place) if recorded and place is not None else None
            found = [_array(x) for x in ours]
    wanted = [_array(x) for outputs in expected for x in outputs]
    difference = max(_difference(a, b) for a, b in zip(wanted, found, strict=True))
    on_gpu = "—" if there is None else _on_gpu(wanted, *there)
    if difference:
        return f"differs by {difference:g}", on_gpu
    return "covered" if recorded else "as before", on_gpu


def _placed(lazies: list[Any], place: Place) -> tuple[list[Any], int]:
    """What the GPU makes of lazy images and tensors, and how many it made itself."""
    tensors = [LazyTensor(x._rows, x._lead) if isinstance(x, LazyTensor) else image_tensor(x._node) for x in lazies]
    before = counts.total()[counts.PLACED]
    making = PlacedMaking(tensors, place)
    if making.order is not None:
        _native.recipe.make(making.order)
    making.finish()
    made = []
    for x, tensor in zip(lazies, tensors, strict=True):
        array = tensor._real.cpu().numpy()
        if isinstance(x, LazyImage):
            array = array.transpose(1, 2, 0) if array.shape[0] > 1 else array[0]
        made.append(np.ascontiguousarray(array))
    return made, int(counts.total()[counts.PLACED] - before)


def _on_gpu(wanted: list[Any], made: list[Any], by_itself: int) -> str:
    difference = max(_difference(a, b) for a, b in zip(wanted, made, strict=True))
    if difference:
        return f"differs by {difference:g}"
    return "equal" if by_itself == len(made) else "by the CPU"


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
    if isinstance(x, LazyTensor):
        return x._real is None
    return isinstance(x, LazyImage) and x._node is not None


def _array(x: Any) -> np.ndarray[Any, Any]:
    return np.asarray(real(x) if isinstance(x, LazyTensor) else x)


def _difference(a: np.ndarray[Any, Any], b: np.ndarray[Any, Any]) -> float:
    if a.shape != b.shape or a.dtype != b.dtype:
        return float("inf")
    return 0.0 if a.tobytes() == b.tobytes() else float(np.abs(a.astype(np.float64) - b.astype(np.float64)).max())


if __name__ == "__main__":
    with tempfile.TemporaryDirectory() as made, emulated_place(Path(made)) as emulated:
        PAGE.write_text(page(emulated), encoding="utf-8")
