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
import threading
import warnings
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parents[2]
# Where `photographs` and what emulates a GPU are, when this runs by itself.
sys.path += [str(ROOT / "tests"), str(ROOT / "tests" / "cuda"), str(ROOT / "tests" / "native")]

import emulated_stages  # noqa: E402
import numpy as np  # noqa: E402
import torch  # noqa: E402
from photographs import photograph  # noqa: E402
from PIL import Image, ImageFilter  # noqa: E402

import tests.takeover.declared  # noqa: E402, F401

from torchvision.transforms import InterpolationMode as Mode  # noqa: E402  # isort: skip
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
RELEASE = "torchvision " + ".".join(torchvision.__version__.split(".")[:2]) + ";"
_DRAWS = 4  # random transforms run so often, each time from another state

Make = Callable[[Any], Any]
_FILTERS = (Mode.NEAREST, Mode.BILINEAR, Mode.BICUBIC, Mode.LANCZOS, Mode.BOX, Mode.HAMMING)
CASES: dict[str, Make] = {
    **{f"Resize, {f.name}": lambda t, f=f: t.Resize(40, interpolation=f, antialias=True) for f in _FILTERS},
    **{
        f"Resize, {f.name}, antialias=False": lambda t, f=f: t.Resize(40, interpolation=f, antialias=False)
        for f in _FILTERS[1:3]
    },
    "CenterCrop": lambda t: t.CenterCrop(48),
    "CenterCrop, larger than the image": lambda t: t.CenterCrop(150),
    "RandomCrop": lambda t: t.RandomCrop(48),
    "RandomCrop, padding 4": lambda t: t.RandomCrop(64, padding=4),
    **{
        f"RandomResizedCrop, {f.name}": lambda t, f=f: t.RandomResizedCrop(40, interpolation=f, antialias=True)
        for f in _FILTERS[:3]
    },
    "FiveCrop": lambda t: t.FiveCrop(30),
    "TenCrop": lambda t: t.TenCrop(30),
    "Pad, constant": lambda t: t.Pad((1, 2, 3, 4), fill=7),
    "Pad, edge": lambda t: t.Pad(3, padding_mode="edge"),
    "Pad, reflect": lambda t: t.Pad(3, padding_mode="reflect"),
    "RandomHorizontalFlip": lambda t: t.RandomHorizontalFlip(),
    "RandomVerticalFlip": lambda t: t.RandomVerticalFlip(),
    **{f"RandomRotation, {f.name}": lambda t, f=f: t.RandomRotation(30, interpolation=f) for f in _FILTERS[:3]},
    **{
        f"RandomAffine, {f.name}": lambda t, f=f: t.RandomAffine(20, (0.1, 0.1), (0.8, 1.2), 9, interpolation=f)
        for f in _FILTERS[:3]
    },
    "RandomRotation, BILINEAR, fill": lambda t: t.RandomRotation(30, Mode.BILINEAR, fill=(9, 80, 254)),
    "RandomRotation, BILINEAR, of 9x8 pixels": lambda t: t.Compose(
        [t.Resize((9, 8), antialias=True), t.RandomRotation(30, Mode.BILINEAR)]
    ),
    "RandomPerspective": lambda t: t.RandomPerspective(p=1.0),
    "ElasticTransform": lambda t: t.ElasticTransform(),
    "ColorJitter, brightness": lambda t: t.ColorJitter(brightness=0.4),
    "ColorJitter, contrast": lambda t: t.ColorJitter(contrast=0.4),
    "ColorJitter, contrast, of 90,000 pixels": lambda t: t.Compose(
        [t.Resize((300, 300), antialias=True), t.ColorJitter(contrast=0.4)]
    ),
    "ColorJitter, saturation": lambda t: t.ColorJitter(saturation=0.4),
    "ColorJitter, hue": lambda t: t.ColorJitter(hue=0.1),
    "ColorJitter, all": lambda t: t.ColorJitter(0.4, 0.4, 0.4, 0.1),
    "Grayscale": lambda t: t.Grayscale(),
    "Grayscale, 3 channels": lambda t: t.Grayscale(3),
    "RandomGrayscale": lambda t: t.RandomGrayscale(0.5),
    "GaussianBlur": lambda t: t.GaussianBlur(5),
    "GaussianBlur, one channel": lambda t: t.Compose([t.Grayscale(), t.GaussianBlur(5)]),
    "GaussianBlur, one channel, 3x3 window": lambda t: t.Compose([t.Grayscale(), t.GaussianBlur(3)]),
    "RandomInvert": lambda t: t.RandomInvert(),
    "RandomPosterize": lambda t: t.RandomPosterize(3),
    "RandomSolarize": lambda t: t.RandomSolarize(128),
    "RandomAdjustSharpness": lambda t: t.RandomAdjustSharpness(2),
    "RandomAdjustSharpness, one channel": lambda t: t.Compose([t.Grayscale(), t.RandomAdjustSharpness(2)]),
    "RandomAdjustSharpness, one channel of 90,000 pixels": lambda t: t.Compose(
        [t.Resize((300, 300), antialias=True), t.Grayscale(), t.RandomAdjustSharpness(2)]
    ),
    "RandomAutocontrast": lambda t: t.RandomAutocontrast(),
    "RandomEqualize": lambda t: t.RandomEqualize(),
    "AutoAugment": lambda t: t.AutoAugment(),
    "RandAugment": lambda t: t.RandAugment(),
    "TrivialAugmentWide": lambda t: t.TrivialAugmentWide(),
    "AugMix": lambda t: t.AugMix(),
    "RandomApply": lambda t: t.RandomApply([t.RandomRotation(20)], p=0.5),
    "RandomChoice": lambda t: t.RandomChoice([t.Resize(30), t.CenterCrop(30)]),
    "RandomOrder": lambda t: t.RandomOrder([t.Resize(30), t.CenterCrop(30)]),
    "RandomChannelPermutation": lambda t: t.RandomChannelPermutation(),
    "RandomPhotometricDistort": lambda t: t.RandomPhotometricDistort(),
    "RandomZoomOut": lambda t: t.RandomZoomOut(fill=(1, 2, 3)),
    "ScaleJitter": lambda t: t.ScaleJitter((60, 60)),
    "RandomShortestSize": lambda t: t.RandomShortestSize((40, 50, 60)),
    "RandomResize": lambda t: t.RandomResize(30, 60),
    "Lambda": lambda t: t.Lambda(lambda x: x),
    "Lambda, Pillow's GaussianBlur": lambda t: t.Lambda(lambda x: x.filter(ImageFilter.GaussianBlur(1.5))),
    "Lambda, Pillow's BoxBlur": lambda t: t.Lambda(lambda x: x.filter(ImageFilter.BoxBlur(2))),
}
TO_TENSOR: dict[str, Make] = {
    "ToTensor": lambda t: t.ToTensor(),
    "PILToTensor": lambda t: t.PILToTensor(),
    "ToImage (v2)": lambda t: v2.ToImage(),
    "ConvertImageDtype": lambda t: t.Compose([t.PILToTensor(), t.ConvertImageDtype(torch.float32)]),
    "ToDtype, scaled (v2)": lambda t: v2.Compose([v2.ToImage(), v2.ToDtype(torch.float32, scale=True)]),
    "Normalize": lambda t: t.Compose([t.ToTensor(), t.Normalize([0.4, 0.5, 0.6], [0.2, 0.3, 0.4])]),
    "Normalize after ToImage (v2)": lambda t: v2.Compose(
        [v2.ToImage(), v2.ToDtype(torch.float32, scale=True), v2.Normalize([0.4, 0.5, 0.6], [0.2, 0.3, 0.4])]
    ),
    "ToPureTensor (v2)": lambda t: v2.Compose([v2.ToImage(), v2.ToPureTensor()]),
    "RandomErasing": lambda t: t.Compose([t.ToTensor(), t.RandomErasing(p=1.0)]),
    "RandomErasing, random values": lambda t: t.Compose([t.ToTensor(), t.RandomErasing(p=1.0, value="random")]),
}


def _also(*names: str) -> dict[str, Make]:
    """Of what is done with bytes, what is done with floats as well."""
    return {name: CASES[name] for name in names}


# What scripts do with floats, behind ToTensor or v2's ToDtype.
FLOATS: dict[str, Make] = {
    **_also("RandomCrop", "RandomHorizontalFlip"),
    "Pad, constant": lambda t: t.Pad(3, fill=0),
    "Pad, constant, of no byte": lambda t: t.Pad(3, fill=0.123),
    **_also("Pad, reflect"),
    "Resize, BILINEAR": lambda t: t.Resize(40, antialias=True),
    "Resize, BICUBIC": lambda t: t.Resize(40, Mode.BICUBIC, antialias=True),
    "Resize, BILINEAR, antialias=False": lambda t: t.Resize(40, antialias=False),
    "Resize, BICUBIC, antialias=False": lambda t: t.Resize(40, Mode.BICUBIC, antialias=False),
    "Resize, NEAREST": lambda t: t.Resize(40, Mode.NEAREST),
    "Resize, BILINEAR, after Normalize": lambda t: t.Compose([_normalize(t), t.Resize(40, antialias=True)]),
    "Resize, BILINEAR, before Normalize": lambda t: t.Compose([t.Resize(40, antialias=True), _normalize(t)]),
    "RandomResizedCrop": lambda t: t.RandomResizedCrop(40, antialias=True),
    "RandomRotation, NEAREST": lambda t: t.RandomRotation(30),
    "RandomRotation, BILINEAR": lambda t: t.RandomRotation(30, Mode.BILINEAR),
    "RandomAffine, BILINEAR": lambda t: t.RandomAffine(20, (0.1, 0.1), (0.8, 1.2), 9, interpolation=Mode.BILINEAR),
    **_also("RandomPerspective", "ElasticTransform"),
    **_also("ColorJitter, brightness", "ColorJitter, contrast", "ColorJitter, contrast, of 90,000 pixels"),
    **_also("ColorJitter, saturation", "ColorJitter, hue", "ColorJitter, all", "Grayscale", "Grayscale, 3 channels"),
    **_also("GaussianBlur", "GaussianBlur, one channel", "GaussianBlur, one channel, 3x3 window"),
    **_also("RandomInvert", "RandomPosterize"),
    "RandomSolarize": lambda t: t.RandomSolarize(0.5),
    **_also("RandomAdjustSharpness", "RandomAdjustSharpness, one channel", "RandomAutocontrast", "RandomEqualize"),
    "RandomErasing": lambda t: t.Compose([t.Resize(40, antialias=True), t.RandomErasing(p=1.0)]),
}


def _to_floats(library: Any) -> Any:
    return library.ToDtype(torch.float32, scale=True)


def _normalize(library: Any) -> Any:
    return library.Normalize([0.4, 0.5, 0.6], [0.2, 0.3, 0.4])


def page(place: Place) -> str:
    """The page's text. ``place``: what makes the GPU's columns."""
    lines = [
        _HEAD,
        "### Images\n",
        "| transform | v1, Pillow image | GPU | v1, PILToTensor | GPU | v2, Pillow image | GPU | v2, ToImage | GPU |",
        "|---|---|---|---|---|---|---|---|---|",
    ]
    for name, make in CASES.items():
        first = cells(lambda t, make=make: t.Compose([t.PILToTensor(), make(t)]), v1, place)
        second = cells(lambda t, make=make: t.Compose([t.ToImage(), make(t)]), v2, place)
        found = (*cells(make, v1, place), *first, *cells(make, v2, place), *second)
        lines.append(f"| {name} | {' | '.join(found)} |")
    lines += ["\n### From images to tensors\n", "| transform | v1 | GPU | v2 | GPU |", "|---|---|---|---|---|"]
    for name, make in TO_TENSOR.items():
        lines.append(f"| {name} | {' | '.join((*cells(make, v1, place), *cells(make, v2, place)))} |")
    lines += [
        "\n### Floats\n",
        "| transform | v1, after ToTensor | GPU | v2, after ToTensor | GPU | v2, after ToDtype | GPU |",
        "|---|---|---|---|---|---|---|",
    ]
    for name, make in FLOATS.items():
        first = cells(lambda t, make=make: t.Compose([t.ToTensor(), make(t)]), v1, place)
        second = cells(lambda t, make=make: t.Compose([t.ToTensor(), make(t)]), v2, place)
        third = cells(lambda t, make=make: t.Compose([t.ToImage(), _to_floats(t), make(t)]), v2, place)
        lines.append(f"| {name} | {' | '.join((*first, *second, *third))} |")
    return "\n".join(lines) + "\n"


class _Emulated(emulated_stages.EmulatedGpu):
    """Compiles a kernel once, whoever asks first; its decoder does nothing: the CPU decodes."""

    lock = threading.Lock()

    def compiled(self, source: str) -> bytes:
        with self.lock:
            return b"" if "jpeg" in source else super().compiled(source)


@contextlib.contextmanager
def emulated_place() -> Iterator[Place]:
    """A GPU's kernels on an emulation of threads."""
    kept = Gpu.open, plans.GPU_LOAD, plans.LINES
    with tempfile.TemporaryDirectory() as folder, few_rows():
        try:
            Gpu.open = staticmethod(lambda number, limit=None: _Emulated(Path(folder)))  # type: ignore[assignment, method-assign]
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


_HEAD = """<!-- written by tests/takeover/table.py -->
# torchvision scripts, unchanged

    import stoker.torchvision
    stoker.torchvision.enable()

at the top of a training script, or `python -m stoker.torchvision train.py arguments` without a line in it, and
the script's images are decoded and transformed by Stoker: the same samples, in the same order, with the same
augmentation. `torchvision.set_image_backend("stoker")` does the same, once `stoker.torchvision` is imported;
another backend switches it off again. `disable()` undoes it, `with stoker.torchvision.enabled():` limits it,
and `stoker.torchvision.report()` counts what fell back and why. Scripts of public shapes, with and without it:
[recipes](recipes.md).

Loaders of torch, torchdata's `StatefulDataLoader` and subclasses with iterators of their own are taken over.
`state_dict()` is that of the batch delivered last, and is the same with Stoker and without.

The data set runs in its worker processes as before and draws its random numbers there. What it does with an
image is recorded; the pixels are made when the batch has come together, by native threads of the main process,
at most as many as there are workers. JPEG files are recorded, gray and colour. PNG, WebP, GIF, BMP, TIFF, PPM,
AVIF and JPEG 2000 files, JPEG files with inks and MPO are decoded by Pillow where the script converts them, in
the worker; what follows on 8 bits, L or RGB, is recorded, and what travels is the smaller of the decoded image
and what is made of it. Steps on other modes (palettes, transparency, 16 bits) are Pillow's until the image is
converted. EXIF orientation is ignored, as torchvision ignores it.

Images of arrays and tensors (`Image.fromarray`, `ToPILImage`: data sets in memory) are recorded from there. Images of
fewer than 4096 pixels (CIFAR, MNIST) are left to Pillow: a step on 32x32 pixels takes it about as long as it takes to
write the step down (see [Experiments](experiments.md)). Images that a script makes to draw on or paste into
(`Image.new`) are Pillow's.

`torchvision.io.decode_image` and `decode_jpeg` are recorded for JPEG files (modes unchanged, gray, RGB; EXIF
orientation as asked for), or decoded by Stoker at once outside of a loader; other files are torchvision's.
The values are those of torchvision's decoder, which is libjpeg-turbo, too. Files of a kind that the installed release
decodes otherwise stay its own, which is found with a small file of each kind, once per process: 4:4:0 up to
torchvision 0.24 (its libjpeg-turbo 2.0.0 repeats their colours, Pillow's interpolates). Pillow's decoder is tried in
the same way. `read_file` stays torchvision's.

Files are read when their images are made, not by the worker, which tells which files they were. Until a batch has been
fetched, its worker keeps its files open (of a large batch the 256 latest): those that are deleted, moved or replaced
meanwhile are copied, so that a data set may use its files up, and a batch is fetched again if one was written to. A
file that is deleted or changed later, before it is read, is found as well: the main process then fetches the batch
again, in the same way as for damaged files (below). After any of this workers copy what they open. Files younger than
two seconds and those of an `IterableDataset` are copied at once. A worker takes in the bytes of what a data set still
holds two batches later, so that images that it keeps do not depend on their files. One thing may differ from a run
without Stoker: an image that is kept, and whose file goes or changes before that, is opened anew by the main process.

A file that is damaged in the middle is found when its batch is made. The batch is then fetched again in the
main process, from the random state of its start, with that file on plain Pillow: a `try` in the data set acts
as before, and `get_worker_info()` is the worker's. Two things may differ from a run without Stoker: the data set
is that of the main process, without what its copy in the worker has changed in itself since; and if the script's
answer to the error draws random numbers, later batches of that worker have other draws. An `IterableDataset`
cannot be fetched again: the error is raised at the batch.

With `enable("cuda")`, or `python -m stoker.torchvision --device cuda train.py arguments`, batches come out in the
GPU's memory, and `pin_memory=True` concerns only what is not. Files are decoded there, and all that is recorded
about their images is done there, each with its own steps, up to the tensor's values and to what erasing puts over
them. The CPU makes and sends what is not recorded, images of fewer than 4096 pixels that Pillow has decoded, and
files of which a batch has few (gray ones among colour, say). The bits are the same; the report counts both. A
machine without a GPU is refused, or delivers on the CPU with `without_gpu="cpu"`.

## What is covered

Each row was run on the same file with the same random state, untouched and with `stoker.torchvision.enable()`,
and the results were compared bit for bit, with torchvision 0.28; `make test-older` and `make test-newest` do it with a
release that is a year old and with the newest.

- **covered**: bit-equal, and recorded: Stoker makes the pixels.
- **as before**: bit-equal, since Pillow or torch does this step as it does without Stoker; not covered, and no
  faster. What comes before it is Stoker's. For random transforms this is so if any of their draws is.
- **differs by N**: the largest difference.
- **GPU**: what `enable("cuda")` makes of what is covered, against the untouched script. **equal**: made on the GPU,
  every bit equal, since the arithmetic is in headers that both machines compile, without contraction, and fused
  multiply-adds stand where torch has them; **by the CPU**: made there and sent. These columns are written with the
  GPU's kernels on an emulation of threads; `make test-gpu` compares every one of them on a GPU, and
  [Reliability](reliability.md) says when it ran.

torchvision itself uses Pillow's kernels while it holds a Pillow image, and torch's once it holds a tensor. What
torch's own kernels do depends on the processor and on torch's build: such a step is recorded if a small image comes
out equal on this machine, which is tried once per process, and is left to torch else. Where results are rounded to
bytes, what is tried is the floats before, by a plain twin: a byte rarely shows their last bit.

Tensors of float32 are recorded behind `ToTensor` or v2's `ToDtype`, too: first as tables of what 256 bytes become, and
from the first step on that lets values meet as floats, in torch's order of additions. The last table has these steps.
There nothing is rounded away, so that every last bit is tried and compared. On a GPU they are made by the CPU, four
times the bytes travel there, and on any machine steps on bytes are faster: put `ToTensor` behind them where you can.
Other floats (half precision, doubles) are recorded as far as tables, crops, mirrors, continued edges and nearest sizes
go.

Tensors that are made early have the layout of torch's memory (planes, or a pixel's channels side by side), which sums
follow, but for stacks of several images whose pixels torch has side by side; windows of them are contiguous.

Some steps are recorded as far as torch's sums have an order that can be repeated:

- `ColorJitter`'s contrast of floats, all of whose additions round: in torch's order, in which it also treats values
  behind the last whole vector of each thread's share in another way. Left to torch are images that were turned by 90
  degrees, windows of one channel, and stacks of several images where torch has several threads.
- `ColorJitter`'s contrast of tensors of more than 65,793 pixels, whose sum is rounded: in torch's order of additions,
  which follows from how many values its vectors have (found by trying) and from its number of threads, up to 64. Left
  to torch are images of more than 2 million pixels (where sums of single positions are rounded, too), and images that
  were turned by 90 degrees (whose pixels lie in another order).
- Blurs and sharpness of tensors of one channel, but for windows of up to three rows or columns with more than 15
  weights (3x7) on at most 20,480 pixels (with a blur's edges): windows of up to three rows or columns on so few pixels
  torch makes by products of matrices, which MKL adds up in an order that depends on the processor and on where in the
  image a pixel is. The order of its kernels for AVX-512 is repeated; by the CPU, also where batches are made on a GPU.
- v1's `resize` of tensors, which goes by way of floats, but to a single column with `antialias=True`. A torch that
  was built without fused multiply-adds, or runs its kernels for old processors, has other bits, and is left alone.
- Rotations and the like of tensors: the points that they look at are native code's where it makes those of MKL's
  products of matrices (it does with AVX-512), and are torch's, recorded with the step, elsewhere.

Of Pillow's filters `GaussianBlur` and `BoxBlur` are recorded, the others are its own.

A collation of the script's own is recorded as well: images that it copies into a batch one by one (padding to the
largest, timm's `fast_collate`) are that batch, and what it does with a batch (`roll`, `flip`, sums and products,
windows that are set, views, `stack`, `cat`: MixUp, CutMix, timm's `Mixup` and `FastCollateMixup`, with numbers of
Python's, NumPy's or torch's) is done by torch's own functions where the batch is made. A function that is not
recorded, or that looks at values, makes the tensors early.

timm's AugMix, whose chains meet in numpy, is recorded as the sum that it is, if the installed timm's makes the same of
small images with the same draws, which is tried once per process. `Image.blend` of two views of a file is recorded.

Made early, but by native code, and delivered as without Stoker: other images that meet in numpy on the way
(albumentations). Their pixels are made once in the worker, and travel as they did.
"""


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
    with emulated_place() as emulated:
        PAGE.write_text(page(emulated), encoding="utf-8")
