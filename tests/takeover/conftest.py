# SPDX-License-Identifier: Apache-2.0
"""Shared fixtures of the take-over: torchvision beside a CPU-only torch, files of many kinds, a switch."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest
import torch
from photographs import photograph
from PIL import Image

import tests.takeover.declared  # noqa: F401
from stoker.native import _native

torch.set_num_threads(1)


@pytest.fixture(params=_native.instruction_sets())
def isa(request: pytest.FixtureRequest) -> Iterator[str]:
    """Each instruction set of this machine in turn."""
    before = _native.get_isa()
    _native.set_isa(request.param)
    yield request.param
    _native.set_isa(before)


def write_files(root: Path) -> Path:
    """Write class folders with files of many kinds; most are ordinary JPEG files."""
    for c, name in enumerate(("ant", "bee")):
        (root / name).mkdir(parents=True)
        for i in range(6):
            seed = 6 * c + i
            image = Image.fromarray(photograph(seed, 70 + 11 * (seed % 4), 90 + 13 * (seed % 3)))
            image.save(root / name / f"{i}.jpg", "JPEG", quality=70 + 2 * seed, subsampling=seed % 3)
    Image.fromarray(photograph(20, 80, 60)).convert("L").save(root / "ant" / "gray.jpg")
    Image.fromarray(photograph(21, 80, 60)).convert("CMYK").save(root / "ant" / "inks.jpg")
    Image.fromarray(photograph(22, 80, 60)).save(root / "bee" / "steps.jpg", progressive=True)
    turned = Image.Exif()
    turned[0x0112] = 6
    Image.fromarray(photograph(23, 80, 60)).save(root / "bee" / "turned.jpg", exif=turned)
    Image.fromarray(photograph(24, 80, 60)).save(root / "bee" / "lossless.png")
    return root


@pytest.fixture(scope="session")
def files(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with two classes of files, which tests only read."""
    return write_files(tmp_path_factory.mktemp("takeover") / "files")


@pytest.fixture
def photo(tmp_path: Path) -> Path:
    """One colour JPEG file of 120x90."""
    path = tmp_path / "photo.jpg"
    Image.fromarray(photograph(1, 90, 120)).save(path, quality=90)
    return path


@pytest.fixture
def taken_over() -> Iterator[None]:
    """The take-over, enabled during the test, with fresh counts."""
    import stoker.torchvision
    from stoker.frontends.torchvision import counts

    counts.reset()
    with stoker.torchvision.enabled():
        yield
    counts.reset()


def exactly(a: object, b: object) -> None:
    """Assert that two tensors or arrays are equal in shape, type and every bit."""
    x, y = np.asarray(a), np.asarray(b)
    assert (x.shape, x.dtype) == (y.shape, y.dtype)
    assert x.tobytes() == y.tobytes()


@pytest.fixture
def recording() -> Iterator[None]:
    """The take-over as a data set sees it during a fetch, with fresh counts."""
    from stoker.frontends.torchvision import counts
    from tests.takeover.lazily import lazily

    counts.reset()
    with lazily():
        yield
    counts.reset()
