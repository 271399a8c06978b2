# SPDX-License-Identifier: Apache-2.0
"""Image decoders: smaller scales, size limits, and files that fall back to Pillow."""

from __future__ import annotations

import io
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import pytest
import simplejpeg
from photographs import photograph
from PIL import Image
from test_decoders import BROKEN, HEIGHT, JPEGS, WIDTH, encoded, pillow, rotated_file

from stoker import Pipeline, eager, fn, pipeline_def, types
from stoker.contract.errors import ArgumentError, DataError
from stoker.testing.tolerances import assert_exact

Array = npt.NDArray[Any]

# 19 x 13 pixels by `cjpeg -arithmetic`. The baseline file has the same pixels.
ARITHMETIC = bytes.fromhex(
    "ffd8ffe000104a46494600010100000100010000ffdb0043000d090a0b0a080d0b0a0b0e0e0d0f13201513121213271c1e17202e2931302e29"
    "2d2c333a4a3e333646372c2d405741464c4e525352323e5a615a50604a51524fffdb0043010e0e0e131113261515264f352d354f4f4f4f4f4f"
    "4f4f4f4f4f4f4f4f4f4f4f4f4f4f4f4f4f4f4f4f4f4f4f4f4f4f4f4f4f4f4f4f4f4f4f4f4f4f4f4f4f4f4f4f4f4f4fffc9001108000d001303"
    "012200021101031101ffcc000a0010100501101105ffda000c03010002110311003f00ff00787146ed93230f494cf73c5880f11e503cd969b6"
    "0c45c8297365aa5f877f4de40437d14f4fe6ae5c476ca934c6182d3d09922392d34e459c065b884962ad2d2d51b2af8a936423f5b7391d6afa"
    "55c6df42ffd9"
)


def with_frame(data: bytes, marker: int, precision: int = 8) -> bytes:
    """Return the same file with another start-of-frame marker."""
    at = data.index(b"\xff\xc0")
    return data[:at] + bytes([0xFF, marker]) + data[at + 2 : at + 4] + bytes([precision]) + data[at + 5 :]


# ---- smaller scales ----


def turbo(data: bytes, scale: int) -> Array:
    """Return the result of TurboJPEG's scaled decoding."""
    height, width = simplejpeg.decode_jpeg_header(data)[:2]
    least = {"min_height": -(-height // scale), "min_width": -(-width // scale), "min_factor": 1}
    return np.asarray(simplejpeg.decode_jpeg(data, "RGB", fastdct=False, fastupsample=False, **least))


@pytest.mark.parametrize("scale", [2, 4, 8])
@pytest.mark.parametrize("name", ["420", "422", "444", "progressive", "restarts"])
def test_scaled_jpeg_equals_turbojpeg(name: str, scale: int) -> None:
    data = JPEGS[name]
    want = turbo(data, scale)
    assert want.shape == (-(-HEIGHT // scale), -(-WIDTH // scale), 3)
    assert_exact(eager.decoders.image(data, scale_denom=scale), want)
    assert_exact(eager.peek_image_shape(data, scale_denom=scale), np.asarray(want.shape))
    assert_exact(eager.decoders.image_slice(data, start=(3, 2), shape=(5, 4), scale_denom=scale), want[2:6, 3:8])
    assert_exact(eager.decoders.image_crop(data, crop=(5, 7), crop_pos_x=0, scale_denom=scale).shape, (5, 7, 3))


@pytest.mark.parametrize("orientation", range(1, 9))
def test_scaled_and_rotated(orientation: int) -> None:
    want = {
        1: lambda p: p, 2: lambda p: p[:, ::-1], 3: lambda p: p[::-1, ::-1], 4: lambda p: p[::-1],
        5: lambda p: p.swapaxes(0, 1), 6: lambda p: p[::-1].swapaxes(0, 1),
        7: lambda p: p[::-1, ::-1].swapaxes(0, 1), 8: lambda p: p[:, ::-1].swapaxes(0, 1),
    }[orientation](turbo(rotated_file(orientation), 4))  # fmt: skip
    assert_exact(eager.decoders.image(rotated_file(orientation), scale_denom=4), want)


def test_the_error_of_a_smaller_scale() -> None:
    """Scaled decoding is close to the mean of the pixels, but not equal, so it is opt-in."""
    memory = io.BytesIO()
    Image.fromarray(photograph(2, 256, 256)).save(memory, "JPEG", quality=90, subsampling=0)
    for scale in (2, 4, 8):
        got = eager.decoders.image(memory.getvalue(), scale_denom=scale).astype(float)
        means = pillow(memory.getvalue()).reshape(256 // scale, scale, 256 // scale, scale, 3).mean((1, 3))
        assert 0 < np.abs(got - means).mean() < 0.6


@pytest.mark.parametrize("scale", [2, 4, 8])
def test_other_files_are_averaged(scale: int) -> None:
    png = encoded(kind="PNG")
    whole = pillow(png).astype(int)
    got = eager.decoders.image(png, scale_denom=scale)
    assert got.shape == (-(-HEIGHT // scale), -(-WIDTH // scale), 3)
    for y in range(got.shape[0]):
        for x in range(got.shape[1]):
            block = whole[y * scale : (y + 1) * scale, x * scale : (x + 1) * scale].reshape(-1, 3)
            assert_exact(got[y, x], np.floor(block.sum(0) / len(block) + 0.5).astype(np.uint8))
    assert_exact(eager.peek_image_shape(png, scale_denom=scale), np.asarray(got.shape))


def test_random_crops_of_a_smaller_image(tmp_path: Path) -> None:
    (tmp_path / "a").mkdir()
    (tmp_path / "a" / "0.jpg").write_bytes(JPEGS["420"])
    want = turbo(JPEGS["420"], 2)

    @pipeline_def(batch_size=8, num_threads=1, seed=3)
    def crops() -> Any:
        jpegs, _ = fn.readers.file(file_root=str(tmp_path))
        return fn.decoders.image_random_crop(jpegs, scale_denom=2)

    with crops() as pipe:
        for image in pipe.run()[0]:
            height, width = image.shape[:2]
            places = ((y, x) for y in range(want.shape[0] - height + 1) for x in range(want.shape[1] - width + 1))
            assert any(np.array_equal(want[y : y + height, x : x + width], image) for y, x in places)


def test_unsupported_scales() -> None:
    for scale in (0, 3, 16, -2):
        with pytest.raises(ArgumentError, match="expected one of 1, 2, 4, 8"):
            eager.decoders.image(JPEGS["420"], scale_denom=scale)


# ---- limits ----


@pytest.mark.parametrize("data", [JPEGS["420"], encoded(kind="PNG")], ids=["jpeg", "png"])
def test_max_pixels(data: bytes) -> None:
    assert eager.decoders.image(data, max_pixels=HEIGHT * WIDTH).shape == (HEIGHT, WIDTH, 3)
    assert eager.decoders.image(data, max_pixels=0).shape == (HEIGHT, WIDTH, 3)
    with pytest.raises(ArgumentError, match=r"`max_pixels` >= 0 \(0: no limit\), got -1"):
        eager.decoders.image(data, max_pixels=-1)
    for call in (eager.decoders.image, eager.decoders.image_random_crop):
        with pytest.raises(
            DataError, match=rf"at most {HEIGHT * WIDTH - 1} pixels, got an image of {HEIGHT} x {WIDTH}"
        ):
            call(data, max_pixels=HEIGHT * WIDTH - 1)


def test_the_default_limit_is_pillows() -> None:
    with pytest.raises(DataError, match="at most 178956970 pixels, got an image of 65500 x 65500"):
        eager.decoders.image(BROKEN["huge"])
    assert 2 * (Image.MAX_IMAGE_PIXELS or 0) in (178956970, 178956971)


# ---- fallback to Pillow ----


def test_arithmetic_coding_goes_through_pillow() -> None:
    assert_exact(eager.decoders.image(ARITHMETIC), np.asarray(Image.open(io.BytesIO(ARITHMETIC))))
    assert_exact(
        eager.decoders.image_slice(ARITHMETIC, start=(2, 3), shape=(9, 5)),
        np.asarray(Image.open(io.BytesIO(ARITHMETIC)))[3:8, 2:11],
    )


@pytest.mark.parametrize(
    ("data", "feature"),
    [
        (with_frame(JPEGS["444"], 0xC3), "lossless coding"),
        (with_frame(JPEGS["444"], 0xC5), "hierarchical coding"),
        (with_frame(JPEGS["444"], 0xCD), "hierarchical arithmetic coding"),
        (with_frame(JPEGS["444"], 0xC1, 12), "12 bits per sample"),
        (BROKEN["text"], "a format that is not decoded natively"),
    ],
    ids=lambda value: value if isinstance(value, str) else "",
)
def test_features_that_pillow_lacks_are_named(data: bytes, feature: str) -> None:
    with pytest.raises(DataError, match=rf"handed over by the native kernel: {feature}\)"):
        eager.decoders.image(data)


def test_two_components_are_refused_by_name() -> None:
    data = JPEGS["444"]
    at = data.index(b"\xff\xc0")
    frame = data[at + 4 : at + 9] + b"\x02" + data[at + 10 : at + 16]
    two = data[:at] + b"\xff\xc0\x00\x0e" + frame + data[at + 19 :]
    with pytest.raises(DataError, match="2 components"):
        eager.decoders.image(two)


@pytest.mark.parametrize("threads", [1, 2])
def test_the_report_lists_files_that_fell_back_to_pillow(tmp_path: Path, threads: int) -> None:
    contents = [
        JPEGS["420"],
        ARITHMETIC,
        encoded(kind="QOI"),
        JPEGS["cmyk"],
        ARITHMETIC,
        with_frame(JPEGS["444"], 0xC3),
    ]
    for i, content in enumerate(contents):
        (tmp_path / f"{i}.jpg").write_bytes(content)
    files = [str(tmp_path / f"{i}.jpg") for i in range(len(contents))]
    pipe = Pipeline(batch_size=3, num_threads=threads, seed=1)
    with pipe:
        jpegs, _ = fn.readers.file(files=files, labels=list(range(len(files))))
        pipe.set_outputs(fn.decoders.image(jpegs, output_type=types.RGB))
    with pipe:
        assert pipe.report().handed_over == ()
        pipe.run()
        with pytest.raises(DataError, match="lossless coding"):
            pipe.run()
        report = pipe.report()
    counted = {one.reason: one for one in report.handed_over}
    # A pipeline prefetches batches: the files repeat.
    assert set(counted) == {"arithmetic coding", "a format that is not decoded natively", "lossless coding"}
    arithmetic = counted["arithmetic coding"]
    assert arithmetic.name == "decoders.image"
    assert arithmetic.rows >= 2
    # Threads hand rows over in any order, and the second batch may be prefetched before the first one is complete.
    assert any("1.jpg" in example for example in arithmetic.examples)
    assert len(arithmetic.examples) <= 10
    assert "left to Python: arithmetic coding" in str(report)
    assert "arithmetic coding" in report._repr_html_()
    assert report.to_dict()["handed_over"][0]["rows"] == report.handed_over[0].rows
