# SPDX-License-Identifier: Apache-2.0
"""Rows that a GPU's JPEG engines decode: whose they are, where their pixels go, what is left to the exact decoder, and
what is told of their error. The engines are a fake library over Pillow, whose pixels are wrong by a known amount."""

from __future__ import annotations

import ctypes
import gc
import io
import subprocess
import threading
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from PIL import Image

from stoker import ArgumentError, DataError, DeviceError, fn, pipeline_def, types
from stoker.device import engines as opening
from stoker.native import _native

HERE = Path(__file__).parent
OFF = 3  # levels by which some of the fake's pixels are wrong
_DECODER = ctypes.CFUNCTYPE(
    ctypes.c_int, ctypes.POINTER(ctypes.c_ubyte), ctypes.c_size_t, ctypes.POINTER(ctypes.c_ubyte), ctypes.c_size_t,
    ctypes.c_int,
)  # fmt: skip


def wrong(pixels: np.ndarray) -> np.ndarray:
    """As the fake engines have it: every fifth pixel of a line is off."""
    made = pixels.copy()
    part = made[:, ::5]
    part[...] = np.where(part > 255 - OFF, part - OFF, part + OFF)
    return made


def _decode(data: Any, size: int, to: Any, pitch: int, bgr: int) -> int:
    try:
        pixels = wrong(np.asarray(Image.open(io.BytesIO(ctypes.string_at(data, size))).convert("RGB")))
    except OSError:
        return 3
    out = np.ctypeslib.as_array(to, (len(pixels), pitch))
    out[:, : 3 * pixels.shape[1]] = pixels[..., :: -1 if bgr else 1].reshape(len(pixels), -1)
    return 0


_KEPT = _DECODER(_decode)


@pytest.fixture(scope="module")
def library(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("nvjpeg") / "libnvjpeg.so"
    subprocess.run(["g++", "-std=c++20", "-shared", "-fPIC", HERE / "fake_nvjpeg.cpp", "-o", path], check=True)
    return path


@pytest.fixture
def engines(library: Path, emulated_gpu: None, monkeypatch: pytest.MonkeyPatch) -> Iterator[Callable[..., None]]:
    """Sets what the library answers: statuses of opening and decoding, the number of engines."""
    monkeypatch.setattr(opening, "find_library", lambda: str(library))
    fake = ctypes.CDLL(str(library))

    def answer(create: int = 0, decode: int = 0, count: int = 7) -> None:
        fake.fake_set(_KEPT, create, decode, count)

    answer()
    yield answer
    gc.collect()
    assert fake.fake_alive() == 0, "handles, states and parsers are given back"


def image(seed: int, height: int = 24, width: int = 33) -> Image.Image:
    squares = np.random.default_rng(seed).integers(0, 256, (height // 8 + 1, width // 8 + 1, 3), np.uint8)
    return Image.fromarray(squares.repeat(8, 0).repeat(8, 1)[:height, :width])


def save(folder: Path, name: str, picture: Image.Image, **options: Any) -> str:
    path = folder / f"{name}.jpg"
    picture.save(path, **{"format": "JPEG", "quality": 90, **options})
    return str(path)


@pytest.fixture(scope="module")
def files(tmp_path_factory: pytest.TempPathFactory) -> list[str]:
    folder = tmp_path_factory.mktemp("files")
    return [save(folder, f"{i:03}", image(i, 16 + i % 9, 17 + i % 13), subsampling=i % 3) for i in range(40)]


def exact_of(path: str) -> np.ndarray:
    return np.asarray(Image.open(path).convert("RGB"))


@pipeline_def(batch_size=8, num_threads=2, device_id=0, seed=7)
def decoding(files: list[str], device: str = "mixed", **how: Any) -> Any:
    data, _ = fn.readers.file(files=files)
    how = {"gpu_backend": "nvjpeg_hardware", "hw_decoder_load": 1.0, **how}
    return fn.decoders.image(data, device=device, **how)


def rows_of(pipe: Any, count: int) -> tuple[list[np.ndarray], Any]:
    """So many rows, and the report after them."""
    with pipe:
        rows: list[np.ndarray] = []
        while len(rows) < count:
            rows += [np.asarray(row) for row in pipe.run()[0].as_cpu()]
        return rows[:count], pipe.report()


def test_all_rows_are_the_engines(engines: Any, files: list[str]) -> None:
    rows, report = rows_of(decoding(files), len(files))
    for path, row in zip(files, rows, strict=True):
        np.testing.assert_array_equal(row, wrong(exact_of(path)))
    told = report.decoding
    assert told.engines.rows >= len(files) and not told.engines.reasons and told.rows_on_gpu == told.rows_on_cpu == 0


def is_theirs(key: int, part: float) -> bool:
    """Whether a row is the engines' turn: the finish of splitmix64, as a number below 1."""
    for shift, factor in ((30, 0xBF58476D1CE4E5B9), (27, 0x94D049BB133111EB)):
        key = (key ^ key >> shift) * factor % 2**64
    return (key ^ key >> 31) / 2**64 < part


@pytest.mark.parametrize("settings", [
    {}, {"batch_size": 5, "num_threads": 1}, {"gpu_decoder_load": 0.0}, {"gpu_decoder_load": 1.0, "exec_async": False},
])  # fmt: skip
def test_a_key_decides_whose_a_row_is(engines: Any, files: list[str], settings: dict[str, Any]) -> None:
    """Not threads, batches, or how exact rows are shared out."""
    theirs = []
    rows, _ = rows_of(decoding(files, hw_decoder_load=0.5, **settings), len(files))
    for path, row in zip(files, rows, strict=True):
        exact = exact_of(path)
        theirs.append(not np.array_equal(row, exact))
        np.testing.assert_array_equal(row, wrong(exact) if theirs[-1] else exact)
    assert 0.25 < np.mean(theirs) < 0.75
    assert theirs == [is_theirs(key, 0.5) for key in range(len(files))]


def test_a_smaller_part_is_within_a_larger(engines: Any, files: list[str]) -> None:
    taken = []
    for load in (0.0, 0.3, 0.65):
        rows, _ = rows_of(decoding(files[:16], hw_decoder_load=load, gpu_decoder_load=0.0), 16)
        taken.append({i for i, row in enumerate(rows) if not np.array_equal(row, exact_of(files[i]))})
    assert not taken[0] and taken[1] < taken[2]


def test_the_error_is_measured(engines: Any, tmp_path: Path) -> None:
    path = save(tmp_path, "one", image(1), subsampling=0)
    _, report = rows_of(decoding([path] * 300, batch_size=50), 300)
    found = report.decoding.engines
    assert 1 <= found.compared < 20 and found.max_error == OFF
    exact = exact_of(path).astype(int)
    assert found.mean_error == pytest.approx(np.abs(wrong(exact.astype(np.uint8)) - exact).mean())
    assert f"{OFF} at most, by {found.compared} rows" in str(report)
    assert report.to_dict()["decoding"]["engines"]["max_error"] == OFF


@pytest.mark.parametrize("orientation", range(1, 9))
def test_windows_and_orientations(engines: Any, tmp_path: Path, orientation: int) -> None:
    exif = Image.Exif()
    exif[0x0112] = orientation
    path = save(tmp_path, "turned", image(3, 29, 45), exif=exif, subsampling=0)
    turned = {1: None, 2: 0, 3: 3, 4: 1, 5: 5, 6: 4, 7: 6, 8: 2}[orientation]  # Pillow's transpositions

    @pipeline_def(batch_size=4, num_threads=1, device_id=0, seed=7)
    def cropping() -> Any:
        data, _ = fn.readers.file(files=[path])
        how = {"gpu_backend": "nvjpeg_hardware", "hw_decoder_load": 1.0, "device": "mixed"}
        return (
            fn.decoders.image_crop(data, crop=(13, 11), crop_pos_x=0.7, crop_pos_y=0.2, **how),
            fn.crop(
                fn.decoders.image(data, output_type=types.BGR, **how), crop=(13, 11), crop_pos_x=0.7, crop_pos_y=0.2
            ),
            fn.decoders.image(data, **how),
        )

    whole = Image.fromarray(wrong(exact_of(path)))
    shown = np.asarray(whole if turned is None else whole.transpose(Image.Transpose(turned)))
    y, x = round(0.2 * (shown.shape[0] - 13)), round(0.7 * (shown.shape[1] - 11))
    with cropping() as pipe:
        crop, bgr, all_of_it = (np.asarray(out.as_cpu()[0]) for out in pipe.run())
    np.testing.assert_array_equal(all_of_it, shown)
    np.testing.assert_array_equal(crop, shown[y : y + 13, x : x + 11])
    np.testing.assert_array_equal(bgr, shown[y : y + 13, x : x + 11, ::-1])


def test_what_is_left_to_the_exact_decoder(engines: Any, tmp_path: Path) -> None:
    picture = image(5)
    usual = Path(save(tmp_path, "usual", picture)).read_bytes()
    (tmp_path / "trailing.jpg").write_bytes(usual + b"\x00" * 20)
    files = [
        save(tmp_path, "progressive", picture, progressive=True),
        save(tmp_path, "gray", picture.convert("L")),
        save(tmp_path, "inks", picture.convert("CMYK")),
        save(tmp_path, "colours", picture, keep_rgb=True),
        save(tmp_path, "image", picture, format="PNG"),
    ]
    rows, report = rows_of(decoding(files, batch_size=len(files)), len(files))
    for path, row in zip(files, rows, strict=True):
        np.testing.assert_array_equal(row, exact_of(path))
    told = report.decoding.engines
    kinds = {"progressive", "other colours than YCbCr", "not a JPEG file of a usual kind"}
    assert told.rows == 0 and set(told.reasons) == kinds
    (row,), _ = rows_of(decoding([str(tmp_path / "trailing.jpg")], batch_size=1), 1)
    np.testing.assert_array_equal(row, wrong(exact_of(str(tmp_path / "trailing.jpg"))))
    (row,), report = rows_of(decoding([str(tmp_path / "usual.jpg")], batch_size=1, output_type=types.GRAY), 1)
    (same,), _ = rows_of(decoding([str(tmp_path / "usual.jpg")], "cpu", batch_size=1, output_type=types.GRAY), 1)
    np.testing.assert_array_equal(row, same)
    assert set(report.decoding.engines.reasons) == {"an output of another colour model"}


def test_a_file_that_ends_early(engines: Any, tmp_path: Path) -> None:
    """The engines would say nothing."""
    path = Path(save(tmp_path, "ends", image(5)))
    path.write_bytes(path.read_bytes()[:-2] + bytes(100))
    with decoding([str(path)], batch_size=1) as pipe:
        with pytest.raises(DataError, match="end before the image is complete"):
            pipe.run()
        assert pipe.report().decoding.engines.reasons["no end marker"] >= 1


def test_nvjpeg_is_asked(engines: Any, tmp_path: Path) -> None:
    data = Path(save(tmp_path, "a", image(2))).read_bytes()
    (tmp_path / "a.jpg").write_bytes(data[:2] + b"\xff\xfe\x00\x04hm" + data[2:])
    (row,), report = rows_of(decoding([str(tmp_path / "a.jpg")], batch_size=1), 1)
    np.testing.assert_array_equal(row, exact_of(str(tmp_path / "a.jpg")))
    assert list(report.decoding.engines.reasons) == ["nvJPEG says that the engines do not decode it"]


def test_a_batch_that_the_library_refuses(engines: Any, files: list[str]) -> None:
    engines(decode=3)
    rows, report = rows_of(decoding(files[:8]), 8)
    for path, row in zip(files, rows, strict=False):
        np.testing.assert_array_equal(row, exact_of(path))
    told = report.decoding.engines
    assert told.rows == 0 and told.reasons["in a batch that nvJPEG refused (status 3)"] >= 8


def test_a_library_that_fails(engines: Any, files: list[str]) -> None:
    with decoding(files) as pipe:
        pipe.run()
        engines(decode=6)
        with pytest.raises(DeviceError, match=r"the execution failed \(nvJPEG status 6\)"):
            for _ in range(6):
                pipe.run()
        engines()
        for _ in range(6):
            try:
                pipe.run()
            except DeviceError:
                continue
            break
        else:
            pytest.fail("it did not recover")


def test_without_engines(engines: Any, files: list[str], monkeypatch: pytest.MonkeyPatch) -> None:
    for answers, text in (
        ({"create": 7}, r"does not have them \(nvJPEG status 7\)"),
        ({"count": 0}, "no JPEG engines"),
    ):
        engines(**answers)
        with pytest.raises(DeviceError, match=text):
            decoding(files).build()
    engines()
    monkeypatch.setattr(opening, "find_library", lambda: "/nowhere/libnvjpeg.so.13")
    with pytest.raises(DeviceError, match="nvJPEG cannot be opened"):
        decoding(files).build()
    decoding(files, gpu_backend="exact").build()


def test_the_library_is_not_there(monkeypatch: pytest.MonkeyPatch) -> None:
    from cuda import pathfinder

    def missing(name: str) -> Any:
        raise pathfinder.DynamicLibNotFoundError(f"no {name}")

    monkeypatch.setattr(pathfinder, "load_nvidia_dynamic_lib", missing)
    with pytest.raises(DeviceError, match=r"no nvjpeg.*pip install stoker\[nvjpeg\]"):
        opening.find_library()


def test_arguments(engines: Any, files: list[str]) -> None:
    with pytest.raises(ArgumentError, match="hw_decoder_load"):
        decoding(files, hw_decoder_load=1.5).build()
    with pytest.raises(ArgumentError, match="scale_denom"):
        decoding(files, scale_denom=2).build()
    with pytest.raises(ArgumentError, match="nvjpeg_hardware"):
        decoding(files, gpu_backend="hardware").build()


def test_both_beside_each_other(engines: Any, files: list[str]) -> None:
    """Equal but for the engines, two decoders stay two; on the CPU there are none."""

    @pipeline_def(batch_size=4, num_threads=2, device_id=0)
    def both() -> Any:
        data, _ = fn.readers.file(files=files)
        how = {"gpu_backend": "nvjpeg_hardware", "hw_decoder_load": 1.0}
        return (
            fn.decoders.image(data, device="mixed", **how),
            fn.decoders.image(data, device="mixed"),
            fn.decoders.image(data, device="cpu", **how),
        )

    with both() as pipe:
        for path, theirs, exact, cpu in zip(files, *(list(out.as_cpu()) for out in pipe.run()), strict=False):
            np.testing.assert_array_equal(theirs, wrong(exact_of(path)))
            np.testing.assert_array_equal(exact, exact_of(path))
            np.testing.assert_array_equal(cpu, exact_of(path))


def test_what_the_library_works_in_is_counted(engines: Any, files: list[str]) -> None:
    """Its memory is the pipeline's: what it has is there, is used again, and is given back."""
    with decoding(files, batch_size=8) as pipe:
        gpu = pipe.execution.settings.gpu
        for _ in range(12):
            pipe.run()
        (library,) = gpu._engines.values()
        assert 1 << 20 < library.device_bytes < gpu.account.taken
        before = library.device_bytes
        for _ in range(20):
            pipe.run()
        assert library.device_bytes < 8 * before
    account = gpu.account
    del pipe, gpu, library
    gc.collect()
    assert account.taken == 0


def test_memory_that_comes_and_goes_is_an_error_at_most(engines: Any, files: list[str]) -> None:
    """Also where a batch finds none to describe its rows in, and other batches give some back before it is sent."""
    done = 0
    for _ in range(15):
        with decoding(files, prefetch_queue_depth=4, gpu_memory_limit=1 << 30, num_threads=1) as pipe:
            gpu = pipe.execution.settings.gpu
            gpu.device.apart = True  # every piece of memory is asked for by itself
            account = gpu.account
            ended = threading.Event()

            def change(account: Any = account, ended: threading.Event = ended) -> None:
                while not ended.is_set():
                    account.limit = 0
                    account.limit = 1 << 30

            other = threading.Thread(target=change)
            other.start()
            try:
                for _ in range(5):
                    pipe.run()
                done += 1
            except (DataError, DeviceError) as error:
                assert "gpu_memory_limit" in str(error)
            finally:
                ended.set()
                other.join()
    assert done < 15, "no batch was without memory"


def test_the_library_is_within_the_limit(engines: Any, files: list[str]) -> None:
    """A state of it takes 1 MiB; a batch's own memory is pieces of 4, 2 and 2 MiB at least."""
    with (
        decoding(files, gpu_memory_limit=(9 << 20) - 1, prefetch_queue_depth=1) as pipe,
        pytest.raises(DataError, match=r"at most 9437183 bytes.*`gpu_memory_limit`\), got \d+ in use and 1048576 more"),
    ):
        for _ in range(4):
            pipe.run()
    with decoding(files, gpu_memory_limit=64 << 20) as pipe:
        pipe.run()


@pytest.fixture
def keeping(library: Path, engines: Any) -> Iterator[Callable[..., None]]:
    """Sets by how much the null device has less memory after each opening, new state and batch."""
    fake = ctypes.CDLL(str(library))
    lock, held = threading.Lock(), [0]
    watch = ctypes.CFUNCTYPE(None, ctypes.c_int)
    kept: list[Any] = []

    def keep(*bytes: int) -> None:
        def grow(what: int) -> None:
            with lock:
                held[0] += bytes[what]
                _native.gpu.null_keeps(held[0])

        kept.append(watch(grow))
        fake.fake_watch(kept[-1])

    yield keep
    fake.fake_watch(ctypes.cast(None, watch))
    _native.gpu.null_keeps(0)


def test_what_the_driver_takes_is_counted(keeping: Any, files: list[str]) -> None:
    """Of opening, of states, and of a state's first batch; what is less later is another's."""
    keeping(200 << 20, 5 << 20, 3 << 20)
    with decoding(files, num_threads=1, exec_async=False) as pipe:  # so that there is one state
        for _ in range(4):
            pipe.run()
        gpu = pipe.execution.settings.gpu
        (opened,) = gpu._engines.values()
        assert opened.driver_bytes == 208 << 20 and gpu.account.taken > opened.driver_bytes + opened.device_bytes
        told = pipe.report().decoding.engines
        assert (told.library_bytes, told.driver_bytes) == (opened.device_bytes, 208 << 20)
        assert "their memory 1 MB and the driver's 218 MB" in str(told)
        account = gpu.account
    del pipe, gpu, opened
    gc.collect()
    assert account.taken == 0


def test_no_more_is_put_down_to_the_driver_than_it_can_be(keeping: Any, files: list[str]) -> None:
    """Where a model takes its memory at the same time."""
    keeping(7 << 30, 1 << 30, 0)
    with decoding(files, gpu_memory_limit=1 << 30) as pipe:
        pipe.run()
        assert pipe.report().decoding.engines.driver_bytes == 512 << 20


def test_the_driver_is_within_the_limit(keeping: Any, files: list[str]) -> None:
    keeping(200 << 20, 0, 0)
    with pytest.raises(DeviceError, match=r"at most 209715199 bytes.*`gpu_memory_limit`\), got 0 in use and 209715200"):
        decoding(files, gpu_memory_limit=(200 << 20) - 1).build()
    for of_state, of_batch in ((100 << 20, 0), (0, 100 << 20)):
        keeping(200 << 20, of_state, of_batch)
        with decoding(files, gpu_memory_limit=250 << 20, num_threads=1, exec_async=False) as pipe:
            for _ in range(3):  # it stays taken, so no later batch is within the limit either
                with pytest.raises(DataError, match=r"at most 262144000 bytes.*`gpu_memory_limit`"):
                    pipe.run()
    keeping(200 << 20, 5 << 20, 5 << 20)
    with decoding(files, gpu_memory_limit=300 << 20) as pipe:
        pipe.run()


@pytest.mark.parametrize("orientation", range(1, 9))
def test_windows_that_later_steps_read(engines: Any, tmp_path: Path, orientation: int) -> None:
    """Nothing is copied: they read the picture, whichever way it is turned; what is compared is so as well."""
    exif = Image.Exif()
    exif[0x0112] = orientation
    path = save(tmp_path, "turned", image(3, 29, 45), exif=exif, subsampling=0)
    turned = {1: None, 2: 0, 3: 3, 4: 1, 5: 5, 6: 4, 7: 6, 8: 2}[orientation]

    @pipeline_def(batch_size=150, num_threads=2, device_id=0, seed=7)
    def cropping(backend: str) -> Any:
        data, _ = fn.readers.file(files=[path] * 300)
        crop = fn.decoders.image_crop(
            data,
            crop=(13, 11),
            crop_pos_x=0.7,
            crop_pos_y=0.2,
            device="mixed",
            gpu_backend=backend,
            hw_decoder_load=1.0,
        )
        return fn.flip(crop, horizontal=1), fn.cast(crop, dtype=types.FLOAT)

    whole = Image.fromarray(wrong(exact_of(path)))
    shown = np.asarray(whole if turned is None else whole.transpose(Image.Transpose(turned)))
    y, x = round(0.2 * (shown.shape[0] - 13)), round(0.7 * (shown.shape[1] - 11))
    want = shown[y : y + 13, x : x + 11]
    with cropping("nvjpeg_hardware") as pipe:
        for _ in range(2):
            mirrored, wide = (out.as_cpu() for out in pipe.run())
            for one, other in zip(mirrored, wide, strict=True):
                np.testing.assert_array_equal(np.asarray(one), want[:, ::-1])
                np.testing.assert_array_equal(np.asarray(other), want)
        told = pipe.report().decoding.engines
    assert told.compared and told.max_error == OFF
