# SPDX-License-Identifier: Apache-2.0
"""Files of other formats and modes: Pillow decodes them, later steps are recorded, and all results are equal."""

from __future__ import annotations

import copy
import io
import pickle
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
import torchvision.transforms as transforms
from photographs import photograph
from PIL import Image, ImageDraw, ImageFilter, features

import stoker.torchvision
from stoker.frontends.torchvision import counts
from stoker.frontends.torchvision.ir.recipe import RAW
from stoker.frontends.torchvision.ir.steps import PIXELS
from stoker.frontends.torchvision.materialize.materialization import shrink
from stoker.frontends.torchvision.pillow.image import DecodedImage, LazyImage, RecordingImage
from stoker.frontends.torchvision.tensors.tensor import LazyTensor
from tests.takeover.conftest import exactly
from tests.takeover.lazily import lazily
from tests.takeover.scripts import run
from tests.takeover.test_script import equal


def _gradient() -> Image.Image:
    return Image.fromarray((np.arange(70 * 90, dtype=np.uint16) * 9).reshape(70, 90))


def _translucent(mode: str) -> Image.Image:
    image = Image.fromarray(photograph(3, 70, 90)).convert(mode)
    image.putalpha(Image.linear_gradient("L").resize(image.size))
    return image


def _frames(image: Image.Image) -> list[Image.Image]:
    return [image.transpose(Image.Transpose.ROTATE_180), image.point(lambda v: 255 - v)]


_PHOTO = Image.fromarray(photograph(2, 70, 90))
FILES: dict[str, Callable[[io.BytesIO], Any]] = {
    "PNG": lambda f: _PHOTO.save(f, "PNG"),
    "PNG, gray": lambda f: _PHOTO.convert("L").save(f, "PNG"),
    "PNG, palette": lambda f: _PHOTO.quantize(50).save(f, "PNG"),
    "PNG, palette with a transparent colour": lambda f: _PHOTO.quantize(50).save(f, "PNG", transparency=3),
    "PNG, a transparent colour": lambda f: _PHOTO.save(f, "PNG", transparency=(1, 2, 3)),
    "PNG, RGBA": lambda f: _translucent("RGB").save(f, "PNG"),
    "PNG, LA": lambda f: _translucent("L").save(f, "PNG"),
    "PNG, 16 bits": lambda f: _gradient().save(f, "PNG"),
    "PNG, black and white": lambda f: _PHOTO.convert("1").save(f, "PNG"),
    "PNG, animated": lambda f: _PHOTO.save(f, "PNG", save_all=True, append_images=_frames(_PHOTO)),
    "BMP": lambda f: _PHOTO.save(f, "BMP"),
    "GIF": lambda f: _PHOTO.save(f, "GIF"),
    "GIF, animated": lambda f: _PHOTO.save(f, "GIF", save_all=True, append_images=_frames(_PHOTO)),
    "PPM": lambda f: _PHOTO.save(f, "PPM"),
    "TIFF": lambda f: _PHOTO.save(f, "TIFF"),
    "TIFF, CMYK": lambda f: _PHOTO.convert("CMYK").save(f, "TIFF"),
    "TIFF, floating point": lambda f: _gradient().convert("F").save(f, "TIFF"),
    "JPEG, CMYK": lambda f: _PHOTO.convert("CMYK").save(f, "JPEG"),
    "MPO": lambda f: _PHOTO.save(f, "MPO", save_all=True, append_images=_frames(_PHOTO)),
    **({"WebP": lambda f: _PHOTO.save(f, "WEBP")} if features.check("webp") else {}),
    **({"WebP, RGBA": lambda f: _translucent("RGB").save(f, "WEBP")} if features.check("webp") else {}),
    **({"AVIF": lambda f: _PHOTO.save(f, "AVIF")} if "avif" in features.get_supported() else {}),
}
USES: dict[str, Callable[[Any], Any]] = {
    "converted": lambda x: x.convert("RGB"),
    "to gray": lambda x: x.convert("L"),
    "loaded": lambda x: (x.load(), x.convert("RGB"))[1],
    "a crop, resized": lambda x: x.convert("RGB").crop((9, 5, 60, 50)).resize((31, 33), Image.Resampling.BILINEAR),
    "resized, not converted": lambda x: x.resize((20, 30)),
    "flipped, not converted": lambda x: x.transpose(Image.Transpose.FLIP_LEFT_RIGHT).crop((3, 4, 30, 40)),
    "blurred": lambda x: x.convert("RGB").filter(ImageFilter.GaussianBlur(2)).resize((20, 20)),
    "sharpened": lambda x: x.convert("RGB").filter(ImageFilter.SHARPEN).resize((20, 20)),
    "thumbnail": lambda x: (x.thumbnail((20, 20)), x)[1],
    "second frame": lambda x: (x.crop((0, 0, 9, 9)), x.seek(getattr(x, "n_frames", 1) - 1), x.crop((5, 5, 40, 40)))[2],
    "copied": lambda x: x.copy().resize((12, 14)),
    "pickled": lambda x: pickle.loads(pickle.dumps(x)).resize((12, 14)),
    "deeply copied": lambda x: copy.deepcopy(x.convert("RGB")).resize((12, 14)),
    "transparency": lambda x: x.convert("RGBA").resize((12, 14)),
    "tensor": lambda x: transforms.ToTensor()(x.convert("RGB")),
    "palette": lambda x: recoloured(x.convert("L")).resize((20, 20)),
    "palette on an array": lambda x: recoloured(Image.fromarray(np.asarray(x.convert("L")))).crop((3, 4, 60, 50)),
    "edges": lambda x: transforms.Pad(9, padding_mode="edge")(x).resize((40, 50)),
}


def recoloured(image: Any) -> Any:
    image.putpalette([(7 * k) % 256 for k in range(768)])
    return image


def file_of(name: str) -> io.BytesIO:
    file = io.BytesIO()
    FILES[name](file)
    file.seek(0)
    return file


def _same(a: Any, b: Any) -> None:
    if isinstance(a, torch.Tensor):
        exactly(a, b.clone() if issubclass(type(b), LazyTensor) else b)
        return
    assert (a.mode, a.size, a.info, a.getpalette()) == (b.mode, b.size, b.info, b.getpalette())
    assert a.tobytes() == b.tobytes()


@pytest.mark.filterwarnings("ignore:Palette images with Transparency")
@pytest.mark.parametrize("use", USES)
@pytest.mark.parametrize("name", FILES)
def test_formats_and_modes(name: str, use: str) -> None:
    try:
        expected = USES[use](Image.open(file_of(name)))
    except ValueError as error:  # Pillow does not support this step for the mode
        with lazily(), pytest.raises(ValueError, match=str(error)):
            USES[use](Image.open(file_of(name)))
        return
    with lazily():
        _same(expected, USES[use](Image.open(file_of(name))))


@pytest.mark.parametrize("name", FILES)
def test_steps_after_a_conversion_are_recorded(name: str, recording: None) -> None:
    image = Image.open(file_of(name))
    opened = type(image)
    assert isinstance(image, opened) and issubclass(opened, Image.Image)
    image = image.convert("RGB").resize((20, 20))
    assert type(image) is LazyImage and image._node is not None
    assert image._node.root.op == PIXELS
    assert counts.totals()[counts.PILLOW] == 1


def test_a_file_is_of_its_format_s_class(recording: None) -> None:
    from PIL import PngImagePlugin

    image = Image.open(file_of("PNG"))
    assert isinstance(image, PngImagePlugin.PngImageFile) and image.format == "PNG"
    assert type(pickle.loads(pickle.dumps(image))) is PngImagePlugin.PngImageFile


def test_steps_on_another_mode_are_reported(recording: None) -> None:
    Image.open(file_of("PNG, RGBA")).resize((9, 9))
    assert counts.totals()[counts.MODE] == 1


def test_small_images_are_left_to_pillow(photo: Path, recording: None) -> None:
    icon = io.BytesIO()
    _PHOTO.resize((32, 32)).save(icon, "PNG")
    image = Image.open(icon)
    assert not isinstance(image, RecordingImage) and counts.totals()[counts.SMALL] == 1
    assert type(Image.open(photo).crop((0, 0, 20, 20)).filter(ImageFilter.MedianFilter(3))) is Image.Image
    assert counts.totals()[counts.SMALL] == 2


def test_steps_after_another_step_are_recorded(photo: Path) -> None:
    def result() -> Image.Image:
        changed = Image.open(photo).convert("RGB").filter(ImageFilter.MedianFilter(3))
        return changed.resize((30, 30)).transform((70, 60), Image.Transform.EXTENT, (2, 3, 28, 29))

    expected = result()
    with lazily():
        image = result()
        assert type(image) is DecodedImage
        flipped = image.transpose(Image.Transpose.FLIP_LEFT_RIGHT)
        assert issubclass(type(flipped), LazyImage) and flipped._node is not None
        _same(expected.transpose(Image.Transpose.FLIP_LEFT_RIGHT), flipped)


def test_pixels_that_are_changed_are_changed() -> None:
    def drawn() -> list[Any]:
        image = Image.open(file_of("PNG")).convert("RGB")
        before = image.crop((0, 0, 50, 50))
        draw = ImageDraw.Draw(image)
        between = image.crop((0, 0, 50, 50))
        draw.rectangle((5, 5, 30, 30), fill="blue")
        file = Image.open(file_of("PNG"))
        first = file.crop((0, 0, 20, 20))
        pixels = file.load()
        second = file.crop((0, 0, 20, 20))
        pixels[3, 3] = (1, 2, 3)
        return [before, between, image.crop((0, 0, 50, 50)), first, second, file.crop((0, 0, 20, 20))]

    expected = drawn()
    with lazily():
        for a, b in zip(expected, drawn(), strict=True):
            _same(a, b)


@pytest.mark.parametrize("name", ["PNG", "WebP", "GIF", "BMP", "TIFF"])
def test_damage_raises_at_the_same_access(name: str) -> None:
    if name not in FILES:
        pytest.skip(f"the installed Pillow is built without {name}, so no such file can be written")
    data = file_of(name).getvalue()
    damaged = data[: len(data) // 2]

    def error_of() -> tuple[str, str]:
        where = "opened"
        try:
            image = Image.open(io.BytesIO(damaged))
            where = "converted"
            image.convert("RGB")
            where = "used"
        except (OSError, SyntaxError, ValueError) as error:
            return where, type(error).__name__
        return where, ""

    expected = error_of()
    with lazily():
        assert error_of() == expected


@pytest.fixture(scope="module")
def mixture(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Class folders of files of all formats; each file is large compared with its views."""
    root = tmp_path_factory.mktemp("formats")
    for at, name in enumerate(FILES):
        folder = root / ("one", "two")[at % 2]
        folder.mkdir(exist_ok=True)
        kind = name.split(",")[0].lower()
        (folder / f"{at}.{'png' if kind in ('gif', 'avif', 'mpo') else kind}").write_bytes(file_of(name).getvalue())
    return root


@pytest.mark.filterwarnings("ignore:Palette images with Transparency")
@pytest.mark.parametrize("workers", [0, 2])
@pytest.mark.parametrize("size", [24, 150])
def test_a_script_with_files_of_all_formats(mixture: Path, workers: int, size: int) -> None:
    """An image is sent as a view if that is smaller than its pixels, otherwise as pixels."""
    from tests.takeover.scripts import classification

    untouched = run(classification(str(mixture), workers, size))
    counts.reset()
    with stoker.torchvision.enabled():
        equal(untouched, run(classification(str(mixture), workers, size)))
    total = counts.totals()
    assert total[counts.NATIVE] == len(FILES) and not total[counts.TORCH] and not total[counts.PIXELS]


def test_the_smaller_form_is_sent(recording: None) -> None:
    def tensor(size: int) -> LazyTensor:
        image = Image.open(file_of("PNG")).convert("RGB")
        assert type(image) is DecodedImage
        lazy = transforms.ToTensor()(image.resize((size, size)))
        assert issubclass(type(lazy), LazyTensor)
        return lazy

    for size, is_pixels in ((20, True), (200, False)):
        expected, lazy = tensor(size).clone(), tensor(size)
        shrink([lazy])
        node = lazy._rows[0].node
        assert node.op != RAW and (node.op == PIXELS) == is_pixels
        assert node.source.data.size == min(3 * size * size, 3 * 70 * 90)
        exactly(expected, lazy.clone())
