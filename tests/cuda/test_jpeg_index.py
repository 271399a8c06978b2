# SPDX-License-Identifier: Apache-2.0
"""Several epochs of the same files with the JPEG index, on the null device with kernels on emulated threads."""

from __future__ import annotations

import io
import os
from pathlib import Path

import numpy as np
import pytest
from PIL import Image

from stoker import ArgumentError, DataError, Pipeline, fn, pipeline_def
from stoker.codecs.jpeg import index_parts
from stoker.codecs.jpeg.index_folder import save_all

FILES = 4
ENTRY_BYTES = 6688


@pytest.fixture(scope="module")
def files(tmp_path_factory):
    place, rng = tmp_path_factory.mktemp("files"), np.random.default_rng(2)
    paths = []
    for i in range(FILES):
        out = io.BytesIO()
        pixels = rng.integers(0, 256, (12, 12 + i, 3), np.uint8).repeat(3, 0).repeat(3, 1)
        Image.fromarray(pixels).save(out, "JPEG", quality=90, subsampling=2 * (i % 2), progressive=i == 3)
        paths.append(str(place / f"{i}.jpg"))
        with open(paths[-1], "wb") as file:
            file.write(out.getvalue())
    return paths


@pipeline_def(batch_size=2, num_threads=2, seed=3, gpu_decoder_load=1.0)
def cropping(files, device):
    data, _ = fn.readers.file(files=files, random_shuffle=True)
    x = fn.decoders.image_random_crop(data, device=device, random_area=(0.1, 0.5))
    return fn.cast(x, dtype=np.int16)


INDEX = {"device_id": 0, "gpu_jpeg_index": 64 * ENTRY_BYTES, "gpu_memory_limit": 1 << 29}


def same(pipe, plain, batches):
    for _ in range(batches):
        for got, want in zip(pipe.run()[0].as_cpu(), plain.run()[0], strict=True):
            np.testing.assert_array_equal(got, want)
    return pipe.report()


def photograph(rng, width, height, **options):
    out = io.BytesIO()
    pixels = rng.integers(0, 256, (-(-height // 4), -(-width // 4), 3), np.uint8).repeat(4, 0).repeat(4, 1)
    Image.fromarray(pixels[:height, :width]).save(out, "JPEG", **{"quality": 90, "optimize": False, **options})
    return out.getvalue()


@pytest.fixture
def changing(tmp_path):
    """Return two files, and a function that overwrites one with another image."""
    rng, paths = np.random.default_rng(4), [str(tmp_path / f"{i}.jpg") for i in range(2)]

    def write(i, data):
        with open(paths[i], "wb") as file:
            file.write(data)

    for i in range(2):
        write(i, photograph(rng, 48, 64))
    return paths, write


def epochs(pipe, files, first, count):
    """Run epochs from ``first`` on, of all files in one batch each. All pixels must equal the CPU's."""
    with cropping(files, "cpu", exec_pipelined=False) as plain:
        for _ in range(first):
            plain.run()
        return same(pipe, plain, count)


def test_later_epochs_use_the_index(emulated_gpu, files):
    with cropping(files, "mixed", **INDEX) as pipe, cropping(files, "cpu") as plain:
        report = same(pipe, plain, 3 * FILES // 2)
    known = report.codecs["jpeg"].known
    assert report.decoding.rows_on_cpu == 0
    # One is progressive. Prefetched batches do not know yet the entries of the batches before them.
    assert known.files == FILES - 1 and known.wrong == 0
    assert known.rows >= FILES - 1 and known.bytes == 64 * ENTRY_BYTES
    assert 0 < known.parts <= known.rows
    assert f"rows of known files ({FILES - 1} known" in str(report) and "read in part" in str(report)


def test_files_of_a_failed_batch_are_indexed_later(emulated_gpu, changing):
    """A failed batch leaves its files without entries. The next batch with them writes entries."""
    paths, write = changing
    write(1, photograph(np.random.default_rng(6), 4000, 4000, quality=1))  # larger than the limit
    with cropping(paths, "mixed", exec_pipelined=False, **(INDEX | {"gpu_memory_limit": 1 << 25})) as pipe:
        for _ in range(2):
            with pytest.raises(DataError, match="memory"):
                pipe.run()
        write(1, photograph(np.random.default_rng(7), 64, 48))
        for _ in range(3):
            pipe.run()
        assert pipe.report().codecs["jpeg"].known.files == 2


def data_changed(data):
    """Change the pixels, and keep size and header."""
    changed = bytearray(data)
    for at in range(len(data) * 3 // 4, len(data) - 4):
        if 0 < data[at] < 254 and 0 < data[at - 1] < 254:
            changed[at] ^= 1
            break
    return bytes(changed)


CHANGES = {
    "other data": lambda data, rng: data_changed(data),
    "another size": lambda data, rng: photograph(rng, 48, 64),
    "another shape": lambda data, rng: photograph(rng, 64, 40),
    "progressive": lambda data, rng: photograph(rng, 48, 64, progressive=True),
    "restart markers": lambda data, rng: photograph(rng, 48, 64, restart_marker_blocks=2),
}


@pytest.mark.parametrize("change", CHANGES)
def test_files_that_change_between_epochs(emulated_gpu, changing, change):
    """After any change, even one that size and time do not show, the pixels are those of the current file."""
    paths, write = changing
    with cropping(paths, "mixed", exec_pipelined=False, **INDEX) as pipe:
        known = epochs(pipe, paths, 0, 3).codecs["jpeg"].known
        assert known.files == 2 and known.parts >= 2
        before, stat = Path(paths[1]).read_bytes(), os.stat(paths[1])
        write(1, CHANGES[change](before, np.random.default_rng(9)))
        os.utime(paths[1], ns=(stat.st_atime_ns, stat.st_mtime_ns))
        after = epochs(pipe, paths, 3, 4).codecs["jpeg"].known
        assert after.wrong == 0  # no name leads to the old entry any more
        assert after.rows - known.rows >= (4 if change == "progressive" else 6)  # the new file is indexed in the end


def brighter(data, rows):
    """Return a file of the same length with few changed bytes, at its start. Its last rows have another brightness."""

    def bottom(of):
        return np.asarray(Image.open(io.BytesIO(of)).convert("L"), np.int64)[-rows:]

    scan = data.index(b"\xff\xda") + 14
    for bit in range(8 * 24):
        changed = bytearray(data)
        changed[scan + bit // 8] ^= 1 << bit % 8
        if 0xFF in (changed[scan + bit // 8], data[scan + bit // 8]):
            continue
        difference = bottom(bytes(changed)) - bottom(data)
        if abs(difference.mean()) > 6 and difference.std() < 3:
            return bytes(changed)
    raise AssertionError("there is no such bit")


@pipeline_def(batch_size=1, num_threads=1, seed=3, gpu_decoder_load=1.0, exec_pipelined=False)
def bottoms(files, device):
    data, _ = fn.readers.file(files=files)
    return fn.decoders.image_crop(data, device=device, crop=(16, 48), crop_pos_y=1.0)


def test_files_that_change_only_before_the_window(emulated_gpu, tmp_path):
    """DC predictions run through the whole file, so that it is another image."""
    rng, path = np.random.default_rng(4), tmp_path / "tall.jpg"
    out = io.BytesIO()
    Image.fromarray(rng.integers(110, 140, (320, 48), np.uint8)).convert("RGB").save(out, "JPEG", quality=90)
    path.write_bytes(out.getvalue())
    with bottoms([str(path)], "mixed", **INDEX) as pipe:
        before = [np.asarray(pipe.run()[0].as_cpu().as_array()) for _ in range(3)][-1]
        assert pipe.report().codecs["jpeg"].known.parts
        stat = path.stat()
        path.write_bytes(brighter(path.read_bytes(), 16))
        os.utime(path, ns=(stat.st_atime_ns, stat.st_mtime_ns))
        assert path.stat().st_size == stat.st_size
        with bottoms([str(path)], "cpu") as plain:
            want = plain.run()[0].as_array()
        assert np.abs(want.astype(int) - before).mean() > 3
        for _ in range(4):
            np.testing.assert_array_equal(pipe.run()[0].as_cpu().as_array(), want)


def test_files_that_are_cut_short_between_epochs(emulated_gpu, changing):
    paths, write = changing
    with cropping(paths, "mixed", exec_pipelined=False, **INDEX) as pipe:
        epochs(pipe, paths, 0, 3)
        write(1, Path(paths[1]).read_bytes()[:-200])
        with pytest.raises(DataError, match=r"1\.jpg"):
            for _ in range(6):  # until its window needs the missing part
                pipe.run()


def test_the_cpu_takes_rows_of_known_files(emulated_gpu, changing):
    """Only a part of these files had been read."""
    paths, _ = changing
    with cropping(paths, "mixed", exec_pipelined=False, **INDEX) as pipe:
        assert epochs(pipe, paths, 0, 3).decoding.rows_on_cpu == 0
        for decoder in pipe.execution.decoders:
            decoder.cpu_share = 1.0
        assert epochs(pipe, paths, 3, 2).decoding.rows_on_cpu == 4


def parts_of(folder):
    return sorted(Path(folder).glob("*.stoker-jpeg-index"))


def test_a_new_pipeline_loads_the_saved_index(emulated_gpu, changing, tmp_path):
    """The new pipeline uses the index from its first epoch on, and reads files in part."""
    paths, write = changing
    folder = tmp_path / "not yet" / "index"
    options = {**INDEX, "gpu_jpeg_index_path": folder, "exec_pipelined": False}
    with cropping(paths, "mixed", **options) as pipe:
        epochs(pipe, paths, 0, 1)
        assert not folder.exists()
    assert len(parts_of(folder)) == 1 == len(list(folder.iterdir()))
    with cropping(paths, "mixed", **options) as pipe:
        known = epochs(pipe, paths, 0, 1).codecs["jpeg"].known
        assert known.files == known.rows == known.parts == 2 and known.wrong == 0
    assert len(parts_of(folder)) == 1  # no new entry
    write(1, data_changed(Path(paths[1]).read_bytes()))
    with cropping(paths, "mixed", **options) as pipe:
        known = epochs(pipe, paths, 0, 3).codecs["jpeg"].known
        assert known.files == 3 and known.wrong == 0
        save_all()  # as at the end of the process without `close`
        assert len(parts_of(folder)) == 2
    assert len(parts_of(folder)) == 2
    with cropping(paths, "mixed", **{**options, "gpu_jpeg_index": ENTRY_BYTES}) as pipe:
        assert epochs(pipe, paths, 0, 1).codecs["jpeg"].known.files == 1  # as many as fit


def test_parts_are_merged(emulated_gpu, changing, tmp_path, monkeypatch):
    paths, write = changing
    options = {**INDEX, "gpu_jpeg_index_path": tmp_path / "index", "exec_pipelined": False}
    monkeypatch.setattr(index_parts, "MAX_PARTS", 1)
    for k in range(3):
        write(0, photograph(np.random.default_rng(k), 48, 64))
        with cropping(paths, "mixed", **options) as pipe:
            epochs(pipe, paths, 0, 2)  # in the first, the file turns out to be another
        assert len(parts_of(tmp_path / "index")) == 1
    with cropping(paths, "mixed", **options) as pipe:
        known = epochs(pipe, paths, 0, 1).codecs["jpeg"].known
        assert known.files == 4 and known.parts == 2 and known.wrong == 0


WRONG = {"checksums": 552 + 32, "beginnings": 552 + 544, "where chunks are": 32 + 8}


@pytest.mark.parametrize("at", WRONG.values(), ids=WRONG)
def test_wrong_entries_are_detected(emulated_gpu, changing, tmp_path, at):
    """A file has other content with unchanged metadata: the part's bytes match the written ones."""
    paths, _ = changing
    folder = tmp_path / "index"
    options = {**INDEX, "gpu_jpeg_index_path": folder, "exec_pipelined": False}
    with cropping(paths, "mixed", **options) as pipe:
        epochs(pipe, paths, 0, 1)
    (part,) = parts_of(folder)
    record = 552 + ENTRY_BYTES
    with part.open("rb") as file:
        (piece,) = (bytearray(p) for p in index_parts.read_pieces(file, record))
    for k in range(at, at + 64, 8):
        piece[k] ^= 1
    part.unlink()
    index_parts.write_part(folder, record, [bytes(piece)])
    with cropping(paths, "mixed", **options) as pipe:
        assert epochs(pipe, paths, 0, 3).codecs["jpeg"].known.wrong >= 1


def damaged(part, at):
    data = bytearray(part.read_bytes())
    data[at] ^= 4
    part.write_bytes(data)


DAMAGE = {  # and the number of parts in the end: whole entries of a part are used
    "foreign": (lambda part: damaged(part, 1), 2),
    "version": (lambda part: damaged(part, 16), 2),
    "size": (lambda part: damaged(part, 30), 2),
    "data": (lambda part: damaged(part, 5000), 2),
    "cut": (lambda part: part.write_bytes(part.read_bytes()[:5000]), 2),
    "no end": (lambda part: part.write_bytes(part.read_bytes()[:-24]), 1),
    "empty": (lambda part: part.write_bytes(b""), 2),
}


@pytest.mark.parametrize(("damage", "parts"), DAMAGE.values(), ids=DAMAGE)
def test_damaged_parts_are_left_out(emulated_gpu, changing, tmp_path, damage, parts):
    paths, _ = changing
    options = {**INDEX, "gpu_jpeg_index_path": tmp_path / "index", "exec_pipelined": False}
    with cropping(paths, "mixed", **options) as pipe:
        pipe.run()
    damage(parts_of(tmp_path / "index")[0])
    with (
        pytest.warns(RuntimeWarning, match="index of JPEG files .* indexed again"),
        cropping(paths, "mixed", **options) as pipe,
    ):
        assert epochs(pipe, paths, 0, 2).codecs["jpeg"].known.files == 2
    assert len(parts_of(tmp_path / "index")) == parts


def test_a_disk_that_takes_nothing(emulated_gpu, changing, tmp_path, monkeypatch):
    options = {**INDEX, "gpu_jpeg_index_path": tmp_path / "index", "exec_pipelined": False}

    def full(handle):
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(os, "fsync", full)
    with cropping(changing[0], "mixed", **options) as pipe:
        pipe.run()
        with pytest.warns(RuntimeWarning, match="not kept in .*No space left"):
            pipe.close()
    assert list((tmp_path / "index").iterdir()) == []


def test_impossible_folders_of_an_index_are_refused(emulated_gpu, changing, tmp_path):
    with pytest.raises(ArgumentError, match="gpu_jpeg_index_path"):
        Pipeline(gpu_jpeg_index_path=tmp_path)
    with (
        pytest.raises(ArgumentError, match="expected a folder as `gpu_jpeg_index_path`"),
        cropping(changing[0], "mixed", **{**INDEX, "gpu_jpeg_index_path": changing[0][0]}) as pipe,
    ):
        pipe.run()


def test_files_whose_bytes_other_steps_read_are_read_whole(emulated_gpu, changing):
    @pipeline_def(batch_size=2, num_threads=2, seed=3, gpu_decoder_load=1.0, exec_pipelined=False, **INDEX)
    def with_bytes():
        data, _ = fn.readers.file(files=changing[0])
        return data, fn.decoders.image(data, device="mixed")

    with with_bytes() as pipe:
        for _ in range(3):
            data, images = pipe.run()
            for i, path in enumerate(changing[0]):
                assert bytes(data[i]) == Path(path).read_bytes()
                np.testing.assert_array_equal(images.as_cpu()[i], np.asarray(Image.open(path)))
        known = pipe.report().codecs["jpeg"].known
    assert known.rows >= 2 and known.parts == 0


def test_there_is_no_index_unless_requested(emulated_gpu, files):
    with cropping(files[:2], "mixed", device_id=0) as pipe, cropping(files[:2], "cpu") as plain:
        assert same(pipe, plain, 2).codecs["jpeg"].known is None


@pytest.mark.parametrize("options", [{"gpu_jpeg_index": -1}, {"gpu_jpeg_index": True}, {"gpu_jpeg_index": 1.5},
                                     {"gpu_jpeg_index": 10, "gpu_memory_limit": 10}], ids=str)  # fmt: skip
def test_impossible_bounds_are_refused(options):
    with pytest.raises(ArgumentError, match="gpu_jpeg_index"):
        Pipeline(**options)
