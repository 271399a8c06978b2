# SPDX-License-Identifier: Apache-2.0
"""Image decoders: pixels against Pillow, windows against crops of the whole image, formats, orientations, damage."""

from __future__ import annotations

import io
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import pytest
from photographs import photograph
from PIL import Image, ImageOps

from stoker import Pipeline, eager, fn, pipeline_def, types
from stoker.contract.errors import ArgumentError, DataError
from stoker.testing.tolerances import assert_exact

Array = npt.NDArray[Any]
HEIGHT, WIDTH = 61, 83


def encoded(mode: str = "RGB", kind: str = "JPEG", **options: Any) -> bytes:
    picture = Image.fromarray(photograph(4, HEIGHT, WIDTH))
    memory = io.BytesIO()
    picture.convert(mode).save(memory, kind, **options)
    return memory.getvalue()


def rotated_file(orientation: int, **options: Any) -> bytes:
    exif = Image.Exif()
    exif[0x0112] = orientation
    return encoded(exif=exif, **options)


def pillow(data: bytes, mode: str = "RGB") -> Array:
    image = ImageOps.exif_transpose(Image.open(io.BytesIO(data)))
    pixels = np.asarray(image.convert(mode))
    return pixels if pixels.ndim == 3 else pixels[..., None]


def pipeline(build: Callable[[], Any]) -> list[Array]:
    """Return one row of the outputs of ``build``."""
    pipe = Pipeline(batch_size=1, num_threads=1, seed=3)
    with pipe:
        outputs = build()
        pipe.set_outputs(*(outputs if isinstance(outputs, tuple) else (outputs,)))
    with pipe:
        return [np.array(batch[0]) for batch in pipe.run()]


def fed(data: bytes) -> Any:
    return types.Constant(np.frombuffer(data, np.uint8))


JPEGS = {
    "420": encoded(subsampling=2),
    "422": encoded(subsampling=1),
    "444": encoded(subsampling=0, quality=95),
    "low": encoded(quality=5),
    "restarts": encoded(restart_marker_blocks=3),
    "progressive": encoded(progressive=True),
    "grey": encoded("L"),
    "grey progressive": encoded("L", progressive=True),
    "cmyk": encoded("CMYK"),
}


@pytest.mark.parametrize("data", JPEGS.values(), ids=JPEGS)
def test_jpeg_equals_pillow(data: bytes) -> None:
    assert_exact(eager.decoders.image(data), pillow(data))
    assert_exact(eager.decoders.image(data, output_type=types.BGR), pillow(data)[..., ::-1])


@pytest.mark.parametrize("name", ["420", "422", "444", "progressive", "grey"])
@pytest.mark.parametrize("mode", ["L", "YCbCr"])
def test_luma_and_ycbcr_are_the_files_own_planes(name: str, mode: str) -> None:
    image = Image.open(io.BytesIO(JPEGS[name]))
    if image.mode == "RGB":
        image.draft(mode, image.size)
    want = np.asarray(image.convert(mode)).reshape(HEIGHT, WIDTH, -1)
    kind = types.GRAY if mode == "L" else types.YCbCr
    assert_exact(eager.decoders.image(JPEGS[name], output_type=kind), want)


OTHERS = {
    "png": (encoded(kind="PNG"), "RGB"),
    "png grey": (encoded("L", "PNG"), "L"),
    "png alpha": (encoded("RGBA", "PNG"), "RGBA"),
    "png palette": (encoded("P", "PNG"), "RGB"),
    "png one bit": (encoded("1", "PNG"), "L"),
    "bmp": (encoded(kind="BMP"), "RGB"),
    "webp": (encoded(kind="WEBP", lossless=True), "RGB"),
    "webp lossy": (encoded(kind="WEBP", quality=50), "RGB"),
    "tiff": (encoded(kind="TIFF"), "RGB"),
    "pnm": (encoded(kind="PPM"), "RGB"),
    "gif": (encoded("P", "GIF"), "RGB"),
}


@pytest.mark.parametrize(("data", "mode"), OTHERS.values(), ids=OTHERS)
def test_other_formats_equal_pillow(data: bytes, mode: str) -> None:
    assert_exact(eager.decoders.image(data), pillow(data))
    assert_exact(eager.decoders.image(data, output_type=types.GRAY), pillow(data, "L"))
    assert_exact(eager.decoders.image(data, output_type=types.ANY_DATA), pillow(data, mode))


def test_sixteen_bits_are_scaled_to_eight() -> None:
    values = np.arange(0, 65536, 17, dtype=np.uint16)[:3600].reshape(60, 60)
    memory = io.BytesIO()
    Image.fromarray(values).save(memory, "PNG")
    got = eager.decoders.image(memory.getvalue(), output_type=types.GRAY)
    assert_exact(got, (values >> 8).astype(np.uint8)[..., None])


@pytest.mark.parametrize("orientation", range(1, 9))
@pytest.mark.parametrize("progressive", [False, True])
def test_orientation(orientation: int, progressive: bool) -> None:
    data = rotated_file(orientation, progressive=progressive)
    whole = pillow(data)
    assert whole.shape == ((HEIGHT, WIDTH, 3) if orientation < 5 else (WIDTH, HEIGHT, 3))
    assert_exact(eager.decoders.image(data), whole)
    assert_exact(eager.peek_image_shape(data), np.asarray(whole.shape))
    assert_exact(eager.decoders.image_slice(data, start=(7, 5), shape=(20, 30)), whole[5:35, 7:27])
    raw = np.asarray(Image.open(io.BytesIO(data)))
    assert_exact(eager.decoders.image(data, adjust_orientation=False), raw)
    assert_exact(eager.peek_image_shape(data, adjust_orientation=False), np.asarray(raw.shape))


@pytest.mark.parametrize("dtype", ["float32", "float16", "uint16", "int16"])
def test_dtype_scales_to_the_types_range(dtype: str) -> None:
    got = eager.decoders.image(JPEGS["444"], dtype=dtype)
    top = 1.0 if dtype.startswith("float") else np.iinfo(dtype).max
    want = pillow(JPEGS["444"]).astype(np.float64) / 255 * top
    assert got.dtype == dtype
    assert np.abs(got.astype(np.float64) - want).max() <= (
        2**-11 if dtype == "float16" else 2**-23 if top == 1 else 0.5
    )


# ---- windows ----

WINDOWS = (  # y, x, height, width
    (0, 0, 61, 83),
    (0, 0, 1, 1),
    (60, 82, 1, 1),
    (13, 29, 17, 9),
    (32, 40, 29, 43),
    (7, 0, 50, 16),
    (1, 79, 60, 4),
)


@pytest.mark.parametrize("name", ["420", "422", "444", "restarts", "progressive", "grey", "cmyk"])
@pytest.mark.parametrize("output_type", ["RGB", "GRAY", "YCbCr"])
def test_a_window_is_a_crop_of_the_whole(name: str, output_type: str) -> None:
    data = JPEGS[name]
    whole = eager.decoders.image(data, output_type=output_type)
    for y, x, height, width in WINDOWS:
        got = eager.decoders.image_slice(
            data, start=(y, x), shape=(height, width), axis_names="HW", output_type=output_type
        )
        assert_exact(got, whole[y : y + height, x : x + width])


@pytest.mark.parametrize("passes", [None, frozenset()], ids=["passes", "plain"])
@pytest.mark.parametrize("name", ["420", "progressive"])
def test_a_crop_that_follows_is_the_same_window(name: str, passes: frozenset[str] | None) -> None:
    pipe = Pipeline(batch_size=1, num_threads=1, seed=3, passes=passes)
    with pipe:
        image = fn.decoders.image(fed(JPEGS[name]))
        pipe.set_outputs(fn.crop(image, crop=(20, 31), crop_pos_x=0.3, crop_pos_y=0.9))
    with pipe:
        got = np.array(pipe.run()[0][0])
        shown = pipe.show()
    assert_exact(got, pillow(JPEGS[name])[37:57, 16:47])
    assert ("view[slice" in shown) == (passes is not None and not passes), "the crop is not part of the decode"


def test_image_crop_is_decode_and_crop() -> None:
    window = {"crop": (20, 31), "crop_pos_x": 0.3, "crop_pos_y": 0.9}
    whole = eager.crop(pillow(JPEGS["420"]), **window)
    assert_exact(eager.decoders.image_crop(JPEGS["420"], **window), whole)
    assert_exact(
        eager.decoders.image_crop(
            JPEGS["420"], crop_h=20, crop_w=31, crop_pos_x=0.3, crop_pos_y=0.9, dtype=types.FLOAT
        ),
        eager.decoders.image(JPEGS["420"], dtype=types.FLOAT)[37:57, 16:47],
    )


def test_image_slice_takes_limits_as_inputs_by_share_and_as_x_y() -> None:
    whole = pillow(JPEGS["422"])
    anchor, shape = np.float32([0.25, 0.5]), np.float32([0.5, 0.25])
    (got,) = pipeline(lambda: fn.decoders.image_slice(fed(JPEGS["422"]), anchor, shape))
    assert_exact(got, whole[31:46, 21:62])
    (got,) = pipeline(
        lambda: fn.decoders.image_slice(
            fed(JPEGS["422"]), np.int64([4, 9]), np.int64([30, 40]), normalized_anchor=False, normalized_shape=False
        )
    )
    assert_exact(got, whole[9:49, 4:34])
    (got,) = pipeline(lambda: fn.decoders.image_slice(fed(JPEGS["422"]), np.int32([4, 9]), np.int32([30, 40])))
    assert_exact(got, whole[9:49, 4:34])


def test_a_random_crop_is_a_crop_of_the_whole() -> None:
    data = JPEGS["420"]

    def build() -> Any:
        shape = fn.peek_image_shape(fed(data))
        anchor, extent = fn.random_crop_generator(shape, seed=77)
        return fn.decoders.image_random_crop(fed(data), seed=77), anchor, extent

    pipe = Pipeline(batch_size=12, num_threads=2, seed=3)
    with pipe:
        pipe.set_outputs(*build())
    with pipe:
        images, _, _ = pipe.run()
    whole = pillow(data)
    windows = set()
    for image in images:
        height, width, _ = image.shape
        places = [
            (y, x)
            for y in range(HEIGHT - height + 1)
            for x in range(WIDTH - width + 1)
            if np.array_equal(whole[y, x : x + width], image[0])
        ]
        assert any(np.array_equal(whole[y : y + height, x : x + width], image) for y, x in places)
        windows.add((places[0], image.shape))
    assert len(windows) > 6


@pytest.mark.parametrize(
    ("call", "text"),
    [
        (lambda d: eager.decoders.image_crop(d, crop=(62, 10)), "expected `crop_h` <= 61"),
        (lambda d: eager.decoders.image_slice(d, start=(80, 0), shape=(10, 10)), "window inside the input"),
        (lambda d: eager.decoders.image_slice(d), "expected limits"),
    ],
)
def test_windows_outside_of_the_image_are_errors(call: Callable[[bytes], Any], text: str) -> None:
    with pytest.raises((DataError, ArgumentError), match=text):
        call(JPEGS["420"])


def test_options_of_other_decoders_are_accepted() -> None:
    want = pillow(JPEGS["420"])
    for options in (
        {"jpeg_fancy_upsampling": True}, {"use_fast_idct": True}, {"hw_decoder_load": 0.9, "split_stages": True},
        {"preallocate_width_hint": 4096, "use_chunk_allocator": True, "cache_type": "largest"},
    ):  # fmt: skip
        assert_exact(eager.decoders.image(JPEGS["420"], **options), want)


UNHEEDED = {
    "cache_size": (512, r"`cache_size` 512: no decoded images are cached.*`Pipeline\(gpu_jpeg_index=bytes\)`"),
    "memory_stats": (True, "`memory_stats`: nothing is printed. No padding is to be chosen by it"),
    "hw_decoder_load": (0.9, r"`hw_decoder_load` 0.9: the GPU's JPEG engines are not used. `gpu_backend="),
}


@pytest.mark.parametrize("name", UNHEEDED)
def test_arguments_without_effect_on_a_gpu_warn_at_the_users_line(name: str) -> None:
    """An argument without effect on a GPU warns once per node, at the user's line. It does not warn on the CPU."""
    value, text = UNHEEDED[name]

    @pipeline_def(batch_size=1, num_threads=1)
    def decoding(device: str, **how: Any) -> Any:
        return fn.decoders.image(fn.external_source(name="x"), device=device, **how)

    with pytest.warns(RuntimeWarning, match=f"`decoders.image`: {text}") as warned:
        decoding("mixed", device_id=0, **{name: value})
    assert [Path(one.filename) for one in warned] == [Path(__file__)]
    decoding("cpu", **{name: value})  # warnings are errors
    quiet = {"cache_type": "threshold", "cache_threshold": 9, "cache_debug": True, "hybrid_huffman_threshold": 1}
    decoding("mixed", device_id=0, device_memory_padding=0, split_stages=True, hw_decoder_load=0, **quiet)


@pytest.mark.parametrize("load", [-0.1, 1.5])
def test_a_part_of_rows_is_a_part(load: float) -> None:
    with pytest.raises(ArgumentError, match=r"expected `hw_decoder_load` from 0 to 1, a part of the rows, got"):
        eager.decoders.image(JPEGS["420"], hw_decoder_load=load)


# ---- broken files ----


def _jpeg_with_size(height: int, width: int) -> bytes:
    data = bytearray(JPEGS["420"])
    at = data.index(b"\xff\xc0") + 5
    data[at : at + 4] = height.to_bytes(2, "big") + width.to_bytes(2, "big")
    return bytes(data)


BROKEN = {
    "empty": b"",
    "one byte": b"\xff",
    "text": b"this is not an image at all\n" * 9,
    "zeros": bytes(500),
    "marker alone": b"\xff\xd8\xff",
    "header alone": JPEGS["420"][:200],
    "half": JPEGS["420"][: len(JPEGS["420"]) // 2],
    "half progressive": JPEGS["progressive"][: len(JPEGS["progressive"]) // 3],
    "half a png": OTHERS["png"][0][:900],
    "png header": OTHERS["png"][0][:20],
    "no pixels": _jpeg_with_size(0, 0),
    "huge": _jpeg_with_size(65500, 65500),
}


@pytest.mark.parametrize("data", BROKEN.values(), ids=BROKEN)
@pytest.mark.parametrize("operator", ["image", "image_crop", "image_random_crop"])
def test_broken_bytes_are_data_errors(data: bytes, operator: str) -> None:
    arguments = {"crop": (5, 5)} if operator == "image_crop" else {}
    with pytest.raises(DataError) as caught:
        getattr(eager.decoders, operator)(data, **arguments)
    assert str(caught.value).startswith("`decoders.")


@pytest.mark.parametrize("threads", [1, 3])
def test_a_pipeline_continues_after_a_broken_file(tmp_path: Path, threads: int) -> None:
    good = JPEGS["420"]
    contents = [good, BROKEN["text"], good, BROKEN["half"], good, BROKEN["empty"], good, JPEGS["progressive"]]
    paths = []
    for i, content in enumerate(contents):
        paths.append(tmp_path / f"{i}.jpg")
        paths[-1].write_bytes(content)
    pipe = Pipeline(batch_size=1, num_threads=threads, seed=1)
    with pipe:
        data, label = fn.readers.file(files=[str(p) for p in paths])
        pipe.set_outputs(fn.decoders.image(data), label)
    found = []
    with pipe:
        for i in range(len(contents) * 2):
            number = i % len(contents)
            if number in (1, 3, 5):
                with pytest.raises(DataError, match=rf"{number}\.jpg.*test_decoders\.py"):
                    pipe.run()
                continue
            image, label = pipe.run()
            assert_exact(np.array(image[0]), pillow(contents[number]))
            found.append(int(label[0][0]))
    assert found == [0, 2, 4, 6, 7] * 2


def test_random_damage_never_crashes() -> None:
    rng = np.random.default_rng(1)
    outcomes = {"decoded": 0, "refused": 0}
    for name in ("420", "restarts", "progressive", "grey"):
        for _ in range(60):
            data = np.frombuffer(JPEGS[name], np.uint8).copy()
            at = rng.integers(2, len(data), rng.integers(1, 6))
            data[at] = rng.integers(0, 256, len(at))
            try:
                image = eager.decoders.image(data.tobytes())
                assert image.dtype == np.uint8
                assert image.ndim == 3
                outcomes["decoded"] += 1
            except DataError:
                outcomes["refused"] += 1
    assert all(outcomes.values()), outcomes


# ---- negative control ----


def test_a_window_that_is_off_by_one_is_detected() -> None:
    whole = pillow(JPEGS["444"])
    got = eager.decoders.image_slice(JPEGS["444"], start=(5, 7), shape=(20, 20))
    with pytest.raises(AssertionError, match="elements differ"):
        assert_exact(got, whole[8:28, 5:25])
