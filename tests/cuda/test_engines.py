# SPDX-License-Identifier: Apache-2.0
"""Rows for the JPEG engines of a GPU.

The tests cover the selection of rows, the destination of their pixels, the fallback to the exact decoder, and the
reported error.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
from fake_engines import OFF, decoding, exact_of, forty_files, image, rows_of, save, turned_file, wrong

from stoker import ArgumentError, DataError, DeviceError, fn, pipeline_def, types
from stoker.codecs.jpeg import engines as opening


@pytest.fixture(scope="module")
def files(tmp_path_factory: pytest.TempPathFactory) -> list[str]:
    return forty_files(tmp_path_factory.mktemp("files"))


def test_all_rows_are_the_engines(engines: Any, files: list[str]) -> None:
    rows, report = rows_of(decoding(files), len(files))
    for path, row in zip(files, rows, strict=True):
        np.testing.assert_array_equal(row, wrong(exact_of(path)))
    usage, decoded = report.codecs["jpeg"].engines, report.decoding
    assert usage.rows >= len(files) and not usage.reasons and decoded.rows_on_gpu == decoded.rows_on_cpu == 0


def is_theirs(key: int, part: float) -> bool:
    """Return whether a row belongs to the engines: the finalizer of splitmix64, as a number below 1."""
    for shift, factor in ((30, 0xBF58476D1CE4E5B9), (27, 0x94D049BB133111EB)):
        key = (key ^ key >> shift) * factor % 2**64
    return (key ^ key >> 31) / 2**64 < part


@pytest.mark.parametrize("dtype", [types.UINT16, types.FLOAT, types.FLOAT16])
def test_wider_elements(engines: Any, tmp_path: Path, dtype: Any) -> None:
    """Their error is that of the bytes from which the engines' and the exact decoder's elements are made."""
    path, shown = turned_file(tmp_path, 6)
    rows, report = rows_of(decoding([path] * 300, batch_size=50, dtype=dtype), 300)
    want = shown * np.uint16(257) if dtype == types.UINT16 else shown * np.float32(1 / 255)
    for row in rows:
        np.testing.assert_array_equal(row, want.astype(row.dtype))
    found = report.codecs["jpeg"].engines
    exact = exact_of(path).astype(int)
    assert found.rows >= 300 and found.compared and found.max_error == OFF
    assert found.mean_error == pytest.approx(np.abs(wrong(exact.astype(np.uint8)) - exact).mean())


@pytest.mark.parametrize("settings", [
    {}, {"batch_size": 5, "num_threads": 1}, {"gpu_decoder_load": 0.0}, {"gpu_decoder_load": 1.0, "exec_async": False},
])  # fmt: skip
def test_the_key_assigns_a_row_to_the_engines(engines: Any, files: list[str], settings: dict[str, Any]) -> None:
    """The key decides, not threads, batches, or the split of exact rows."""
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
    found = report.codecs["jpeg"].engines
    assert 1 <= found.compared < 20 and found.max_error == OFF
    exact = exact_of(path).astype(int)
    assert found.mean_error == pytest.approx(np.abs(wrong(exact.astype(np.uint8)) - exact).mean())
    assert f"{OFF} at most, by {found.compared} rows" in str(report)
    assert report.to_dict()["codecs"]["jpeg"]["engines"]["max_error"] == OFF


@pytest.mark.parametrize("orientation", range(1, 9))
def test_windows_and_orientations(engines: Any, tmp_path: Path, orientation: int) -> None:
    path, shown = turned_file(tmp_path, orientation)

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

    y, x = round(0.2 * (shown.shape[0] - 13)), round(0.7 * (shown.shape[1] - 11))
    with cropping() as pipe:
        crop, bgr, all_of_it = (np.asarray(out.as_cpu()[0]) for out in pipe.run())
    np.testing.assert_array_equal(all_of_it, shown)
    np.testing.assert_array_equal(crop, shown[y : y + 13, x : x + 11])
    np.testing.assert_array_equal(bgr, shown[y : y + 13, x : x + 11, ::-1])


@pytest.mark.parametrize("orientation", range(1, 9))
def test_windows_that_later_steps_read(engines: Any, tmp_path: Path, orientation: int) -> None:
    """Later steps read the image without a copy, in any orientation. The comparison with exact pixels does so too."""
    path, shown = turned_file(tmp_path, orientation)

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
            hw_decoder_load=0 if backend == "exact" else 1.0,
        )
        return fn.flip(crop, horizontal=1), fn.cast(crop, dtype=types.FLOAT)

    y, x = round(0.2 * (shown.shape[0] - 13)), round(0.7 * (shown.shape[1] - 11))
    want = shown[y : y + 13, x : x + 11]
    with cropping("nvjpeg_hardware") as pipe:
        for _ in range(2):
            mirrored, wide = (out.as_cpu() for out in pipe.run())
            for one, other in zip(mirrored, wide, strict=True):
                np.testing.assert_array_equal(np.asarray(one), want[:, ::-1])
                np.testing.assert_array_equal(np.asarray(other), want)
        usage = pipe.report().codecs["jpeg"].engines
    assert usage.compared and usage.max_error == OFF


def test_files_that_are_left_to_the_exact_decoder(engines: Any, tmp_path: Path) -> None:
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
    usage = report.codecs["jpeg"].engines
    kinds = {"progressive", "other colours than YCbCr", "not a JPEG file of a usual kind"}
    assert usage.rows == 0 and set(usage.reasons) == kinds
    (row,), _ = rows_of(decoding([str(tmp_path / "trailing.jpg")], batch_size=1), 1)
    np.testing.assert_array_equal(row, wrong(exact_of(str(tmp_path / "trailing.jpg"))))
    (row,), report = rows_of(decoding([str(tmp_path / "usual.jpg")], batch_size=1, output_type=types.GRAY), 1)
    (same,), _ = rows_of(decoding([str(tmp_path / "usual.jpg")], "cpu", batch_size=1, output_type=types.GRAY), 1)
    np.testing.assert_array_equal(row, same)
    assert set(report.codecs["jpeg"].engines.reasons) == {"an output of another colour model"}


def test_a_file_that_ends_early(engines: Any, tmp_path: Path) -> None:
    """The engines report no error for a truncated file."""
    path = Path(save(tmp_path, "ends", image(5)))
    path.write_bytes(path.read_bytes()[:-2] + bytes(100))
    with decoding([str(path)], batch_size=1) as pipe:
        with pytest.raises(DataError, match="end before the image is complete"):
            pipe.run()
        assert pipe.report().codecs["jpeg"].engines.reasons["no end marker"] >= 1


def test_nvjpeg_decides_which_files_it_decodes(engines: Any, tmp_path: Path) -> None:
    data = Path(save(tmp_path, "a", image(2))).read_bytes()
    (tmp_path / "a.jpg").write_bytes(data[:2] + b"\xff\xfe\x00\x04hm" + data[2:])
    (row,), report = rows_of(decoding([str(tmp_path / "a.jpg")], batch_size=1), 1)
    np.testing.assert_array_equal(row, exact_of(str(tmp_path / "a.jpg")))
    assert list(report.codecs["jpeg"].engines.reasons) == ["nvJPEG says that the engines do not decode it"]


def test_a_batch_that_the_library_refuses(engines: Any, files: list[str]) -> None:
    engines(decode=3)
    rows, report = rows_of(decoding(files[:8]), 8)
    for path, row in zip(files, rows, strict=False):
        np.testing.assert_array_equal(row, exact_of(path))
    usage = report.codecs["jpeg"].engines
    assert usage.rows == 0 and usage.reasons["in a batch that nvJPEG refused (status 3)"] >= 8


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
    decoding(files, gpu_backend="exact", hw_decoder_load=0).build()


def test_a_missing_library(monkeypatch: pytest.MonkeyPatch) -> None:
    from cuda import pathfinder

    def missing(name: str) -> Any:
        raise pathfinder.DynamicLibNotFoundError(f"no {name}")

    monkeypatch.setattr(pathfinder, "load_nvidia_dynamic_lib", missing)
    with pytest.raises(DeviceError, match=r"no nvjpeg.*extra `nvjpeg`: `pip install .*nvidia-nvjpeg"):
        opening.find_library()


def test_arguments(engines: Any, files: list[str]) -> None:
    with pytest.raises(ArgumentError, match="hw_decoder_load"):
        decoding(files, hw_decoder_load=1.5).build()
    with pytest.raises(ArgumentError, match="scale_denom"):
        decoding(files, scale_denom=2).build()
    with pytest.raises(ArgumentError, match="nvjpeg_hardware"):
        decoding(files, gpu_backend="hardware").build()


def test_both_decoders_in_one_pipeline(engines: Any, files: list[str]) -> None:
    """Two decoders that differ only in the engines are not merged. The CPU has no engines."""

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
