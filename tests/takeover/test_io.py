# SPDX-License-Identifier: Apache-2.0
"""torchvision.io's decoders give the same tensors, decoded by Stoker."""

from __future__ import annotations

import io
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
import torchvision.io as tvio
from photographs import photograph
from PIL import Image
from PIL.JpegImagePlugin import JpegImageFile
from torchvision.io import decode_image, decode_jpeg, read_file
from torchvision.transforms import v2

import stoker.torchvision
from stoker.frontends.torchvision import counts
from stoker.frontends.torchvision.hooks import decoders
from stoker.frontends.torchvision.ir import steps
from stoker.frontends.torchvision.materialize import trial
from stoker.frontends.torchvision.pillow.image import LazyImage
from stoker.frontends.torchvision.reference import trial_cache
from stoker.frontends.torchvision.tensors.tensor import is_lazy
from tests.takeover import trials
from tests.takeover.conftest import exactly
from tests.takeover.lazily import lazily
from tests.takeover.scripts import run
from tests.takeover.test_script import equal

MODES = ["UNCHANGED", "GRAY", "RGB"]


def jpeg(kind: str, orientation: int = 0) -> torch.Tensor:
    image = Image.fromarray(photograph(4, 60, 83))
    exif = Image.Exif()
    if orientation:
        exif[0x0112] = orientation
    options: dict[str, Any] = {
        "gray": {},
        "4:4:4": {"subsampling": 0},
        "4:2:2": {"subsampling": 1},
        "4:4:0": {"subsampling": 1},
        "4:2:0": {"subsampling": 2},
        "progressive": {"progressive": True},
        "RGB": {"keep_rgb": True, "subsampling": 0},
        "inks": {},
    }[kind]
    image = image.convert({"gray": "L", "inks": "CMYK"}.get(kind, "RGB"))
    file = io.BytesIO()
    image.save(file, "JPEG", exif=exif, **options)
    data = trial._transpose_sampling(file.getvalue()) if kind == "4:4:0" else file.getvalue()
    return torch.frombuffer(bytearray(data), dtype=torch.uint8)


@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize("kind", ["gray", "4:4:4", "4:2:2", "4:4:0", "4:2:0", "progressive", "RGB", "inks"])
def test_modes(kind: str, mode: str, tmp_path: Path) -> None:
    data, number = jpeg(kind), tvio.ImageReadMode[mode]
    path = tmp_path / "file.jpg"
    path.write_bytes(data.numpy().tobytes())
    decoded: list[Callable[[], torch.Tensor]] = [
        lambda: decode_jpeg(data, number),
        lambda: decode_jpeg(data, mode=mode.lower(), device=torch.device("cpu")),
        lambda: decode_image(data, number),
        lambda: decode_image(input=data, mode=number),
        lambda: decode_image(str(path), mode.lower()),
        lambda: decode_image(path, number),
    ]
    expected = [decode() for decode in decoded]
    with lazily():
        ours = [decode() for decode in decoded]
        lazy = [is_lazy(x) for x in ours]
        for a, b in zip(expected, ours, strict=True):
            assert a.stride() == b.stride()
            exactly(a, b)
            assert a.stride() == b.stride()
            exactly(a.float().sum((0, 1)), b.float().sum((0, 1)))
    recorded = kind != "inks" and (kind, mode) != ("RGB", "GRAY")
    if kind == "4:4:0" and mode != "GRAY":  # the libjpeg of older torchvision releases decodes these differently
        recorded = trial_cache._answers["decoder", "torchvision", (1, 2)]
    assert lazy == [bool(recorded)] * len(decoded)


@pytest.mark.parametrize("orientation", range(1, 9))
def test_orientations(orientation: int) -> None:
    data = jpeg("4:2:0", orientation)
    expected = [decode_jpeg(data, apply_exif_orientation=turned) for turned in (False, True)]
    with lazily():
        for turned in (False, True):
            ours = decode_jpeg(data, apply_exif_orientation=turned)
            assert is_lazy(ours) and ours.stride() == expected[turned].stride()
            exactly(expected[turned], ours)
            assert ours.stride() == expected[turned].stride()


def test_other_formats_are_torchvisions(files: Path, recording: None) -> None:
    path = str(files / "bee" / "lossless.png")
    assert decode_image(read_file(path), tvio.ImageReadMode.RGB).shape[0] == 3
    assert counts.totals()[counts.NATIVE] == 0


@pytest.mark.parametrize("damage", ["truncated", "unknown marker", "empty", "two-dimensional", "a mode for PNG"])
def test_errors_are_torchvisions(damage: str) -> None:
    data, mode = jpeg("4:2:0"), tvio.ImageReadMode.RGB
    if damage == "truncated":
        data = data[: len(data) // 2].clone()
    elif damage == "unknown marker":
        data = data.clone()
        data[-40:-38] = torch.tensor([0xFF, 0xAE])
    elif damage == "empty":
        data = data[:0]
    elif damage == "two-dimensional":
        data = data[None]
    else:
        mode = tvio.ImageReadMode.GRAY_ALPHA

    def error() -> str:
        with pytest.raises((RuntimeError, IndexError)) as caught:
            decode_jpeg(data, mode)
        return str(caught.value).splitlines()[0]

    expected = error()
    with lazily():
        assert error() == expected


class Decoded(torch.utils.data.Dataset[Any]):
    """Files by torchvision's decoder; another file replaces a damaged one."""

    def __init__(self, files: list[str]) -> None:
        self.files = files
        self.transform = v2.Compose(
            [v2.RandomResizedCrop(40, antialias=True), v2.RandomHorizontalFlip(), v2.ToDtype(torch.float32, scale=True)]
        )

    def __len__(self) -> int:
        return len(self.files)

    def __getitem__(self, index: int) -> Any:
        try:
            image = decode_image(read_file(self.files[index]), tvio.ImageReadMode.RGB)
        except RuntimeError:
            return self[int(torch.randint(len(self), ()))]
        return self.transform(image), image.float().mean(), index


class Normalized(Decoded):
    """Transform with recorded steps after the decoder."""

    def __getitem__(self, index: int) -> Any:
        try:
            image = decode_image(read_file(self.files[index]), tvio.ImageReadMode.RGB)
        except RuntimeError:
            return self[int(torch.randint(len(self), ()))]
        return v2.functional.normalize(image.to(torch.float32).div(255), [0.5] * 3, [0.25] * 3), index


@pytest.mark.parametrize("workers", [0, 2])
@pytest.mark.parametrize("kind", [Decoded, Normalized])
def test_a_data_set(tmp_path: Path, kind: Any, workers: int) -> None:
    names = []
    for i in range(9):
        names.append(str(tmp_path / f"{i}.jpg"))
        Image.fromarray(photograph(i, 80, 100)).save(names[-1])
    data = bytearray(Path(names[5]).read_bytes())
    at = data.index(b"\xff\xda")
    Path(names[5]).write_bytes(bytes(data[: at + 14] + b"\xff\xd9"))  # has no picture

    def loader() -> Any:
        return torch.utils.data.DataLoader(kind(names), batch_size=9, num_workers=workers)

    untouched = run(loader())
    counts.reset()
    with stoker.torchvision.enabled():
        equal(untouched, run(loader()))
    total = counts.totals()
    assert total[counts.NATIVE] >= 8 or not trials.all_known(
        lambda: list(torch.utils.data.DataLoader(kind(names), batch_size=9))
    )
    if kind is Normalized:
        assert not total[counts.TORCH], "lazy to the end"


def test_the_operators_stay_torchvisions() -> None:
    before = torch.ops.image.decode_jpeg, torch.ops.image.decode_image
    with lazily():
        assert (torch.ops.image.decode_jpeg, torch.ops.image.decode_image) == before


def test_outside_of_a_fetch_torchvision_decodes() -> None:
    counts.reset()
    with stoker.torchvision.enabled():
        assert type(decode_jpeg(jpeg("4:2:0"))) is torch.Tensor
    assert not counts.totals()[counts.NATIVE]


def test_a_decoder_with_another_upsampling_keeps_its_files(monkeypatch: pytest.MonkeyPatch, recording: None) -> None:
    """libjpeg-turbo before 2.0.4, which torchvision bundled for years, decodes 4:4:0 differently."""
    monkeypatch.setattr(trial_cache, "_answers", {})

    def older(data: torch.Tensor, mode: Any, apply_exif_orientation: bool = False) -> torch.Tensor:
        mode = mode.value
        tall = Image.open(io.BytesIO(data.numpy().tobytes())).layer  # type: ignore[attr-defined]
        pixels = _as_pillow(data, mode)
        return pixels.roll(1, 1) if mode != 1 and tall[0][1:3] == (1, 2) else pixels

    def _as_pillow(data: torch.Tensor, mode: int) -> torch.Tensor:
        image = JpegImageFile(io.BytesIO(data.numpy().tobytes()))
        if mode == 1:
            image.draft("L", image.size)
        pixels = np.asarray(image.convert("RGB") if mode == 3 else image)
        return torch.from_numpy(np.atleast_3d(pixels).transpose(2, 0, 1).copy())

    for kind in ("gray", "4:4:4", "4:2:2", "4:4:0", "4:2:0"):
        data = jpeg(kind)
        for mode in (tvio.ImageReadMode.UNCHANGED, tvio.ImageReadMode.GRAY, tvio.ImageReadMode.RGB):
            lazy = decoders.decode(older, data, mode)
            theirs = kind == "4:4:0" and mode is not tvio.ImageReadMode.GRAY
            assert (lazy is None) == theirs
            if lazy is not None:
                exactly(lazy, older(data, mode))


def test_pillow_with_another_libjpeg_keeps_its_files(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, recording: None
) -> None:
    """Pillow decodes files that its libjpeg decodes differently, and later steps are recorded."""
    path = tmp_path / "photo.jpg"
    path.write_bytes(jpeg("4:2:0").numpy().tobytes())
    for alike in (False, True):
        monkeypatch.setattr(trial_cache, "_answers", {("decoder", "Pillow", (2, 2)): alike})
        counts.reset()
        image = Image.open(path).convert("RGB").resize((20, 20))
        assert issubclass(type(image), LazyImage) and image._node is not None
        assert image._node.root.op == (steps.DECODE if alike else steps.PIXELS)
        assert counts.totals()[counts.PILLOW] == (not alike)
