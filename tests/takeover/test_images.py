# SPDX-License-Identifier: Apache-2.0
"""Lazy images are Pillow images: recorded methods and others give equal results."""

from __future__ import annotations

import copy
import io
import pickle
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from PIL import Image, ImageDraw, ImageEnhance, ImageFilter, ImageOps

import stoker.torchvision
from stoker.frontends.torchvision.pillow.image import LazyImage
from stoker.frontends.torchvision.pillow.jpeg_file import LazyJpeg
from tests.takeover.conftest import exactly
from tests.takeover.lazily import lazily

R, T = Image.Resampling, Image.Transpose
RECORDED: dict[str, Callable[[Any], Any]] = {
    "convert": lambda x: x.convert("RGB"),
    "luma": lambda x: x.convert("L"),
    "spread": lambda x: x.convert("L").convert("RGB"),
    "crop": lambda x: x.crop((10, 5, 60, 50)),
    "crop a crop": lambda x: x.crop((10, 5, 60, 50)).crop((3, 4, 20, 21)),
    "crop halves": lambda x: x.crop((10.5, 5.5, 60.5, 50.4)),
    "crop beyond": lambda x: x.crop((-7, -9, 130, 60)),
    "crop inside beyond": lambda x: x.crop((20, 20, 200, 40)),
    **{f"resize {f.name}": lambda x, f=f: x.resize((37, 51), f) for f in R if f.name not in ("MKS2013", "MKS2021")},
    "resize larger": lambda x: x.resize((300, 200), R.BICUBIC),
    "resize a box": lambda x: x.resize((30, 20), R.BILINEAR, box=(1.5, 2.25, 80.75, 60)),
    "resize tall": lambda x: x.crop((50, 0, 60, 90)).resize((9, 12), R.BILINEAR),
    "resize default": lambda x: x.resize([40, 30]),
    "crop and resize": lambda x: x.crop((11, 7, 91, 77)).resize((32, 32), R.BILINEAR).transpose(T.FLIP_LEFT_RIGHT),
    **{f"transpose {t.name}": lambda x, t=t: x.transpose(t) for t in T},
    "transpose twice": lambda x: x.transpose(T.ROTATE_90).transpose(T.TRANSVERSE).crop((1, 2, 30, 40)),
    "rotate": lambda x: x.rotate(17, R.BILINEAR, fillcolor=(9, 8, 7)),
    "rotate nearest": lambda x: x.rotate(-100, R.NEAREST, expand=True),
    "rotate 90": lambda x: x.rotate(90, expand=True),
    "affine": lambda x: x.transform((70, 60), Image.Transform.AFFINE, (0.9, 0.2, 3, -0.1, 1.1, 2), R.BILINEAR),
    **{
        f"perspective {f.name}": lambda x, f=f: x.transform(
            (50, 40), Image.Transform.PERSPECTIVE, (1, 0.1, 2, 0, 1.1, 3, 0.001, 0), f, fillcolor=(9, 8, 7)
        )
        for f in (R.NEAREST, R.BILINEAR, R.BICUBIC)
    },
    "rotate bicubic": lambda x: x.rotate(20, R.BICUBIC, expand=True),
    "gray bicubic": lambda x: x.convert("L").rotate(-33, R.BICUBIC, fillcolor=99),
    "invert": ImageOps.invert,
    "posterize": lambda x: ImageOps.posterize(x, 3),
    "solarize": lambda x: ImageOps.solarize(x, 100),
    "point": lambda x: x.point(lambda v: v // 2 + 9),
    "point channels": lambda x: x.point(list(range(256)) + [7] * 256 + list(range(255, -1, -1))),
    "expand": lambda x: ImageOps.expand(x, (1, 2, 3, 4), (5, 6, 7)),
    "expand evenly": lambda x: ImageOps.expand(x, 4, "red"),
    **{f"brightness {f}": lambda x, f=f: ImageEnhance.Brightness(x).enhance(f) for f in (0.0, 0.3, 1.0, 1.7)},
    **{f"blend {f}": lambda x, f=f: Image.blend(x, x.transpose(T.ROTATE_180), f) for f in (-0.5, 0.0, 0.3, 1.0, 1.8)},
    "blend of crops": lambda x: Image.blend(x.crop((3, 2, 60, 50)), x.crop((10, 9, 67, 57)), np.float32(0.7)),
    "blend grays": lambda x: Image.blend(x.convert("L"), x.convert("L").rotate(9, R.BILINEAR), 0.45),
    **{f"contrast {f}": lambda x, f=f: ImageEnhance.Contrast(x).enhance(f) for f in (0.0, 0.4, 1.0, 1.9)},
    **{f"color {f}": lambda x, f=f: ImageEnhance.Color(x).enhance(f) for f in (0.0, 0.6, 1.0, 2.5)},
    **{f"sharpness {f}": lambda x, f=f: ImageEnhance.Sharpness(x).enhance(f) for f in (0.0, 0.5, 1.0, 2.0)},
    "small sharpness": lambda x: ImageEnhance.Sharpness(x.resize((2, 9))).enhance(2.0),
    "equalize": lambda x: ImageOps.equalize(x),
    "equalize few": lambda x: ImageOps.equalize(x.resize((9, 9))),
    "autocontrast": lambda x: ImageOps.autocontrast(x.point(lambda v: v // 2 + 20)),
    "gray contrast": lambda x: ImageEnhance.Contrast(x.convert("L")).enhance(0.3),
    "blur": lambda x: x.filter(ImageFilter.GaussianBlur(2)),
    "copy": lambda x: x.copy(),
    "thumbnail": lambda x: x.resize((8, 8)).convert("L").resize((20, 20)),
}
OTHERWISE: dict[str, Callable[[Any], Any]] = {
    "median": lambda x: x.filter(ImageFilter.MedianFilter(3)),
    "hsv": lambda x: x.convert("HSV"),
    "extent": lambda x: x.transform((50, 40), Image.Transform.EXTENT, (3, 4, 60, 70)),
    "infinite": lambda x: x.transform((5, 4), Image.Transform.PERSPECTIVE, (1, 0, 0, 0, float("inf"), 0, 0, 0)),
    "reduce": lambda x: x.reduce(3),
    "gaps": lambda x: x.resize((20, 20), R.BICUBIC, reducing_gap=2.0),
    "crop outside": lambda x: x.crop((200, 200, 210, 220)),
    "equalize a part": lambda x: ImageOps.equalize(x, x.convert("L").point(lambda v: 255 * (v > 99))),
    "autocontrast with cutoff": lambda x: ImageOps.autocontrast(x, 5),
    "negative border": lambda x: ImageOps.crop(x, 3),
    "split": lambda x: x.split()[1],
    "degenerate": lambda x: ImageEnhance.Color(x).degenerate,
}


def image_of(path: Path, mode: str = "RGB") -> Image.Image:
    with open(path, "rb") as file:
        return Image.open(file).convert(mode)


@pytest.mark.parametrize("name", RECORDED)
def test_recorded_methods_equal_pillow(photo: Path, name: str) -> None:
    expected = RECORDED[name](image_of(photo))
    with lazily():
        image = RECORDED[name](image_of(photo))
        assert issubclass(type(image), LazyImage) and image._node is not None
        assert (image.size, image.mode, image.info) == (expected.size, expected.mode, expected.info)
        exactly(image, expected)


@pytest.mark.parametrize("name", OTHERWISE)
def test_other_methods_equal_pillow(photo: Path, name: str) -> None:
    expected = OTHERWISE[name](image_of(photo))
    with lazily():
        exactly(OTHERWISE[name](image_of(photo)), expected)


def test_a_lazy_image_that_is_changed_is_changed(photo: Path) -> None:
    def drawn() -> Image.Image:
        image = image_of(photo)
        before = image.crop((0, 0, 50, 50))
        ImageDraw.Draw(image).rectangle((5, 5, 30, 30), fill="blue")
        image.putpixel((40, 40), (1, 2, 3))
        pixels = image.load()
        pixels[41, 41] = (4, 5, 6)
        image.paste(before, (60, 20))
        return image.crop((1, 1, 110, 80))

    expected = drawn()
    with lazily():
        exactly(drawn(), expected)


@pytest.mark.parametrize(
    "use",
    [
        np.asarray,
        lambda x: x.tobytes(),
        lambda x: x.getpixel((3, 4)),
        lambda x: x.load()[3, 4],
        lambda x: x.histogram(),
        lambda x: np.asarray(copy.deepcopy(x)),
        lambda x: np.asarray(pickle.loads(pickle.dumps(x))),
        lambda x: x.getextrema(),
        lambda x: x.getbands(),
        lambda x: x == x.copy(),
    ],
)
def test_every_access_finds_the_pixels(photo: Path, use: Callable[[Any], Any]) -> None:
    expected = use(image_of(photo).crop((1, 2, 60, 70)))
    with lazily():
        assert np.array_equal(use(image_of(photo).crop((1, 2, 60, 70))), expected)


@pytest.mark.parametrize("mode", ["L", "RGB"])
def test_whole_images_as_arrays(files: Path, isa: str, mode: str) -> None:
    """A whole image is decoded directly into its array, for any size and kind of file."""
    paths = sorted(files.rglob("*.jpg"))
    expected = [np.asarray(image_of(path, mode)) for path in paths]
    with lazily():
        for path, array in zip(paths, expected, strict=True):
            exactly(np.array(image_of(path, mode)), array)


def test_load_reads_and_does_not_decode(photo: Path, recording: None) -> None:
    with open(photo, "rb") as file:
        image = Image.open(file)
        assert type(image) is LazyJpeg
        image.load()
    assert image._im is None, "nothing is decoded"
    assert image.convert("RGB").size == (120, 90)
    with pytest.raises(ValueError, match="closed"), open(photo, "rb") as file:
        image = Image.open(file)
        file.close()
        image.convert("RGB")


def test_verify_reads_the_header(photo: Path, recording: None) -> None:
    image = Image.open(photo)
    image.verify()
    assert image._im is None


def test_a_closed_image_stays_closed(photo: Path, recording: None) -> None:
    image = image_of(photo)
    image.close()
    with pytest.raises(ValueError, match="closed"):
        image.resize((4, 4)).load()


def test_draft_is_pillows(photo: Path) -> None:
    def drafted() -> Any:
        image = Image.open(photo)
        image.draft("L", (40, 40))
        return np.asarray(image)

    expected = drafted()
    with lazily():
        exactly(drafted(), expected)


def test_an_image_saves(photo: Path) -> None:
    def saved() -> bytes:
        out = io.BytesIO()
        image_of(photo).resize((30, 30)).save(out, "PNG")
        return out.getvalue()

    expected = saved()
    with lazily():
        assert saved() == expected


def test_errors_are_pillows(photo: Path, recording: None) -> None:
    image = image_of(photo)
    with pytest.raises(ValueError, match="'right' is less than 'left'"):
        image.crop((10, 0, 5, 5))
    with pytest.raises(ValueError, match="must be > 0"):
        image.resize((0, 5))
    with pytest.raises(ValueError, match="Unknown resampling filter"):
        image.resize((5, 5), 77)
    with pytest.raises(ValueError, match="box can't exceed"):
        image.resize((5, 5), box=(0, 0, 500, 500))


def test_views_that_are_forced_early_share_decodings(
    photo: Path, recording: None, monkeypatch: pytest.MonkeyPatch
) -> None:
    from stoker.frontends.torchvision.ir import steps
    from stoker.frontends.torchvision.materialize import eager

    def views() -> list[Any]:
        part = image_of(photo).crop((5, 6, 110, 80)).resize((70, 72), R.BICUBIC)
        arrays = [np.asarray(part.point(lambda v, k=k: v // 2 + k)) for k in range(5)]
        return [*arrays, np.asarray(part), np.asarray(part), part.getpixel((3, 4)), part.tobytes()]

    decoded: list[Any] = []
    original = eager.interleaved_bytes

    def counted(node: Any) -> Any:
        decoded.extend([node] if node.root.op == steps.DECODE else [])
        return original(node)

    monkeypatch.setattr(eager, "interleaved_bytes", counted)
    ours = views()
    assert len(decoded) == 2, "one for the first view, one for the part in common with the second"
    stoker.torchvision.disable()
    try:
        for a, b in zip(views(), ours, strict=True):
            assert np.array_equal(a, b)
    finally:
        stoker.torchvision.enable()


def test_read_only_accesses_keep_the_recording(photo: Path, recording: None) -> None:
    image = image_of(photo).crop((5, 6, 110, 80))
    array = np.asarray(image)
    assert image._node is not None and array.shape == (74, 105, 3)
    exactly(np.asarray(image.convert("L")), np.asarray(Image.fromarray(array).convert("L")))


def test_images_are_compared_as_pillow_does(photo: Path, recording: None) -> None:
    """Images compare equal whichever class they have: Pillow's, lazy, or Pillow's result of a lazy one."""
    small = Image.open(photo).convert("RGB").resize((90, 80))
    materialized = Image.open(photo).convert("RGB").resize((90, 80))
    np.asarray(materialized)
    of_pillow = Image.Image.copy(materialized.copy())
    for a in (small, materialized, of_pillow, materialized.copy()):
        for b in (small, materialized, of_pillow, materialized.copy()):
            assert a == b
            assert not (a != b)  # noqa: SIM202
    assert small != small.resize((80, 80)) and small != small.convert("L") and small != 5
    with Image.open(photo) as file, Image.open(photo) as same:
        assert small != file and file == same
    with pytest.raises(TypeError, match="unhashable"):
        hash(small)


def test_pixels_of_an_opened_file_can_be_set(photo: Path, recording: None) -> None:
    image = Image.open(photo)
    pixels = image.load()
    pixels[3, 4] = (9, 8, 7)
    assert image.getpixel((3, 4)) == (9, 8, 7) and np.asarray(image)[4, 3].tolist() == [9, 8, 7]


def test_sizes_that_pillow_does_not_take(photo: Path, recording: None) -> None:
    image = Image.open(photo).convert("RGB")
    for size in ((20.5, 30), (20.0, 30.0)):
        with pytest.raises(TypeError):
            image.resize(size)
        with pytest.raises(TypeError):
            image.transform(size, Image.Transform.AFFINE, (1, 0, 0, 0, 1, 0))
    assert image.resize((np.int64(20), np.uint8(30))).size == (20, 30)
