# SPDX-License-Identifier: Apache-2.0
"""Open JPEG files have all properties of Pillow's images, whether Pillow or native code has read their headers."""

from __future__ import annotations

import gc
import io
import os
import warnings
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from photographs import photograph
from PIL import Image, JpegImagePlugin
from torchvision import transforms

from stoker.frontends.torchvision.ir import recipe
from stoker.frontends.torchvision.ir.recipe import Node
from stoker.frontends.torchvision.materialize import retry
from stoker.frontends.torchvision.pillow import jpeg_file
from stoker.frontends.torchvision.transport import segment
from stoker.frontends.torchvision.transport.source import Source
from stoker.native import _native
from tests.complete import COMPLETE
from tests.hostile_images import claiming_gif, claiming_jpeg, claiming_png
from tests.takeover.conftest import exactly
from tests.takeover.lazily import lazily


def _file(image: Any = None, **options: Any) -> bytes:
    file = io.BytesIO()
    (Image.fromarray(photograph(5, 60, 80)) if image is None else image).save(file, "JPEG", **options)
    return file.getvalue()


def _with_segment(marker: int, payload: bytes) -> bytes:
    """Return a file with an additional segment after its first one."""
    plain = _file()
    after = 4 + int.from_bytes(plain[4:6], "big")
    return plain[:after] + bytes((0xFF, marker)) + (len(payload) + 2).to_bytes(2, "big") + payload + plain[after:]


def _exif() -> Image.Exif:
    exif = Image.Exif()
    exif[0x0112] = 6
    return exif


PLAIN = {
    "plain": _file(),
    "progressive": _file(progressive=True),
    "gray": _file(Image.fromarray(photograph(6, 40, 50)).convert("L")),
    "half chroma": _file(subsampling=2),
    "resolution": _file(dpi=(72, 96)),
    "comment": _file(comment=b"a comment"),
    "profile": _file(icc_profile=b"p" * 500),
    "adobe": _file(keep_rgb=True),
    "restarts": _file(restart_marker_rows=1),
    "another application": _with_segment(0xEC, b"Ducky and more"),
    "metadata": _with_segment(0xE1, b"http://ns.adobe.com/xap/1.0/\0<x/>"),
}
PILLOWS = {
    "exif": _file(exif=_exif()),
    "inks": _file(Image.fromarray(photograph(5, 60, 80)).convert("CMYK")),
    "resources": _with_segment(0xED, b"Photoshop 3.0\x008BIM\x03\xed\0\0\0\0\0\x10" + bytes(16)),
    "broken resources": _with_segment(0xED, b"Photoshop 3.0\x008BIM\x03\xed"),
    "short resolution": _with_segment(0xE0, b"JFIF\0\1"),
    "short profile": _with_segment(0xE2, b"ICC_PROFILE\0"),
    "short adobe": _with_segment(0xEE, b"Adobe"),
    "flash": _with_segment(0xE2, b"FPXR\0abc"),
    "long header": _file(icc_profile=b"p" * 9000),
    "junk": PLAIN["plain"].replace(b"\xff\xdb", b"\xff\xff\xff\xdb", 1),
}
KEPT = ("info", "quantization", "layers", "layer", "bits", "app", "applist", "icclist", "_exif_offset")
KEPT += ("tile", "size", "mode")


def _opened(data: bytes) -> Any:
    """Return the properties of Pillow's image, or its error."""
    with warnings.catch_warnings(record=True) as warned:
        warnings.simplefilter("always")
        try:
            image: Any = Image.open(io.BytesIO(data))
        except (OSError, Image.DecompressionBombError) as error:
            return type(error).__name__, [str(w.message) for w in warned]
        properties = {name: getattr(image, name) for name in KEPT}
        return properties | {"at": image.fp.tell()}, [str(w.message) for w in warned]


@pytest.mark.parametrize("name", PLAIN | PILLOWS)
def test_the_properties_of_a_header(name: str) -> None:
    data = (PLAIN | PILLOWS)[name]
    expected = _opened(data)
    with lazily():
        assert _opened(data) == expected
        if isinstance(expected[0], str):
            return
        image: Any = Image.open(io.BytesIO(data))
        assert (vars(image)["_header"] is not None if "_header" in vars(image) else False) == (name in PLAIN)
        copied = image.crop((1, 2, 30, 20)).resize((9, 9))
        assert copied.info == expected[0]["info"]
        assert image.getexif() == Image.Exif() or name == "exif"


def test_each_header_is_classified_as_expected() -> None:
    found = {name: _native.jpeg.plain_header(data[:4096]) for name, data in (PLAIN | PILLOWS).items()}
    assert {name for name, header in found.items() if header is not None} == set(PLAIN)
    assert found["plain"] == (80, 60, 3, PLAIN["plain"].index(b"\xff\xda") + 14)


SPOILT = 250 if COMPLETE else 80  # headers of each kind


def test_no_header_is_accepted_that_pillow_refuses() -> None:
    rng = np.random.Generator(np.random.PCG64(4))
    taken = 0
    for name in ("profile", "adobe", "comment", "progressive"):
        whole = PLAIN[name]
        end = whole.index(b"\xff\xda") + 14
        for _ in range(SPOILT):
            data = bytearray(whole)
            for at in rng.integers(0, end, rng.integers(1, 4)):
                data[at] = rng.integers(0, 256)
            if rng.random() < 0.1:
                del data[rng.integers(0, end) :]
            expected = _opened(bytes(data))
            with lazily():
                assert _opened(bytes(data)) == expected
            taken += _native.jpeg.plain_header(bytes(data[:4096])) is not None
    assert taken > 0.4 * SPOILT, "some of them are taken"


def test_info_is_each_images_own(photo: Path, recording: None) -> None:
    image = Image.open(photo)
    a, b = image.convert("RGB"), image.crop((0, 0, 5, 5))
    a.info["mine"] = 1
    b.info = {"other": 2}
    assert ("mine" in image.info, "jfif" in a.info, b.info) == (False, True, {"other": 2})
    assert a.copy().info == a.info
    assert not hasattr(image, "_ended")


@pytest.mark.parametrize("size", [(40, 30), (300, 200)])
def test_a_gray_file_in_three_channels(tmp_path: Path, size: tuple[int, int]) -> None:
    path = tmp_path / "gray.jpg"
    Image.fromarray(photograph(6, 90, 120)).convert("L").save(path)
    steps: list[Callable[[Any], Any]] = [
        lambda x: x.crop((5, 6, 100, 80)).resize(size, Image.Resampling.BILINEAR),
        lambda x: x.resize(size, Image.Resampling.LANCZOS).transpose(Image.Transpose.FLIP_LEFT_RIGHT),
        lambda x: x.resize(size).transpose(Image.Transpose.FLIP_TOP_BOTTOM),
        lambda x: x.resize(size).transpose(Image.Transpose.ROTATE_180),
        lambda x: x.resize(size).transpose(Image.Transpose.ROTATE_90),
        lambda x: x.transpose(Image.Transpose.FLIP_LEFT_RIGHT).crop((2, 3, 50, 40)),
        lambda x: x.resize(size).rotate(10).resize((20, 30)),
        lambda x: x,
    ]
    to_tensor = transforms.Compose([transforms.ToTensor(), transforms.Normalize([0.1, 0.5, 0.9], [0.2, 0.3, 0.4])])

    def images() -> list[torch.Tensor]:
        return [to_tensor(step(Image.open(path).convert("RGB"))) for step in steps]

    expected = images()
    with lazily():
        for ours, theirs in zip(images(), expected, strict=True):
            exactly(ours, theirs)


def test_bytes_of_a_regular_file(tmp_path: Path, recording: None) -> None:
    for count in (100, 300_000, 20_000, 20_001):  # Python reuses the memory of small ones
        path = tmp_path / "bytes"
        path.write_bytes(os.urandom(count))
        with open(path, "rb") as file:
            source = Source.from_file(file.fileno(), count)
            assert source is not None and source.data.tobytes() == path.read_bytes()
            assert not source.data.flags.writeable
            assert Source.from_file(file.fileno(), count + 1) is None
    with pytest.raises(OSError, match="descriptor"):
        Source.from_file(-1, 10)


def test_a_worker_copies_files_without_holding_them(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = tmp_path / "bytes"
    path.write_bytes(os.urandom(70_000))
    monkeypatch.setattr(segment, "_in_worker", True)
    segment.begin_batch()
    with open(path, "rb") as file:
        first = Source.from_file(file.fileno(), 70_000)
        assert Source.from_file(file.fileno(), 80_000) is None, "it has fewer"
        second = Source.from_file(file.fileno(), 60_000)
    assert first is not None and second is not None and first._data is None
    third = Source.from_bytes(b"some bytes")
    segment.end_batch()
    assert [s._location[1] for s in (first, second, third) if s._location] == [0, 70_000, 130_000]
    assert first.data.tobytes() == path.read_bytes()
    assert second.data.tobytes() == path.read_bytes()[:60_000]
    assert third.data.tobytes() == b"some bytes"
    segment._thread.earlier.clear()


def test_a_file_of_any_kind_is_read(photo: Path, recording: None, monkeypatch: pytest.MonkeyPatch) -> None:
    def node(file: Any) -> Any:
        return Image.open(file)._recorded_node()  # type: ignore[attr-defined]

    data = photo.read_bytes()
    assert node(photo).source.data.tobytes() == data
    assert node(str(photo)).source.data.tobytes() == data
    assert node(io.BytesIO(data)).source.data.tobytes() == data
    with open(photo, "rb", buffering=0) as file:
        assert node(file).source.data.tobytes() == data
    monkeypatch.setattr(retry, "_damaged", {retry._digest(data)})
    with open(photo, "rb") as file:
        assert node(file) is None
    cut = photo.with_name("cut.jpg")
    cut.write_bytes(data[:-2])
    with open(cut, "rb") as file:
        assert node(file) is None


def test_pixels_of_an_image_whose_header_pillow_has_not_read(photo: Path) -> None:
    def loaded() -> Any:
        image = Image.open(photo)
        image.draft("L", (60, 45))
        return image

    expected = loaded()
    expected.load()
    with lazily():
        image = loaded()
        assert type(image) is jpeg_file.LazyJpeg
        exactly(image, expected)


def test_recorded_images_create_no_garbage_cycles(photo: Path, recording: None) -> None:
    lazy = transforms.ToTensor()(Image.open(photo).convert("RGB").crop((0, 0, 40, 30)))
    row = lazy._rows[0]
    assert not any(map(gc.is_tracked, (lazy._rows, row, row.node, row.node.parent, row.node.source)))
    mine: list[Any] = [[], {}, Node.raw(np.zeros(3, np.uint8), (1, 1), 3)]
    recipe.untrack(mine)
    assert not any(map(gc.is_tracked, [mine, *mine]))
    recipe.untrack(3)


def test_pillows_own_class_is_left_alone(photo: Path, recording: None) -> None:
    with JpegImagePlugin.JpegImageFile(photo) as image:
        assert type(image) is not jpeg_file.LazyJpeg


@pytest.mark.parametrize("maker", [claiming_jpeg, claiming_png, claiming_gif])
def test_claims_of_many_pixels_are_pillows_errors(maker: Callable[[int, int], bytes]) -> None:
    """Pillow's limit holds at the script's own line, before the take-over records the file or takes memory for it."""
    data = maker(65500, 65500)
    with pytest.raises(Image.DecompressionBombError) as plain:
        Image.open(io.BytesIO(data))
    with lazily(), pytest.raises(Image.DecompressionBombError) as taken_over:
        Image.open(io.BytesIO(data))
    assert str(taken_over.value) == str(plain.value)
