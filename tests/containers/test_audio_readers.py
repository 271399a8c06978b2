# SPDX-License-Identifier: Apache-2.0
"""``readers.audio`` and ``readers.nemo_asr``: lists, parts of files, texts, filters, damaged manifests."""

from __future__ import annotations

import json
import resource
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from stoker import eager, fn, pipeline_def, types
from stoker.contract.errors import ArgumentError, DataError, StokerError
from stoker.ops.audio._wav import write_wav
from stoker.readers.nemo_asr import NemoAsrReader

RATE = 8000


def samples(seed: int, frames: int = 4000, channels: int = 1) -> Any:
    return np.random.default_rng(seed).integers(-3000, 3000, (frames, channels)).astype(np.int16)


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    for i in range(3):
        kind = tmp_path / "speech" / f"class{i % 2}"
        kind.mkdir(parents=True, exist_ok=True)
        (kind / f"{i}.wav").write_bytes(wav(samples(i, 4000 + 800 * i)))
    (tmp_path / "speech" / "class0" / "notes.txt").write_text("no audio")
    return tmp_path


def wav(x: Any, rate: int = RATE) -> bytes:
    return bytes(write_wav(x, rate))


def read(define: Callable[[], Any], batch_size: int = 3, **options: Any) -> list[list[Any]]:
    """Return the rows of a batch, per output."""

    @pipeline_def(batch_size=batch_size, num_threads=2, **options)
    def pipe() -> Any:
        return define()

    with pipe() as made:
        return [[np.asarray(row) for row in output] for output in made.run()]


def texts_of(rows: list[Any]) -> list[str]:
    return [bytes(row).decode() for row in rows]


def test_folders_lists_and_texts(folder: Path) -> None:
    root = str(folder / "speech")
    audio, rate, label = read(lambda: fn.readers.audio(file_root=root))
    assert [int(x[0]) for x in label] == [0, 0, 1]
    assert [float(x) for x in rate] == [RATE] * 3
    for got, seed in zip(audio, (0, 2, 1), strict=True):
        want = samples(seed, 4000 + 800 * seed)[:, 0].astype(np.float32) / 32768
        np.testing.assert_array_equal(got, want)
    names = ["class0/0.wav", "class1/1.wav"]
    (folder / "speech" / "list.txt").write_text("class0/0.wav\tone two\nclass1/1.wav\tthree ü\n", encoding="utf-8")
    for arguments in (
        {"files": names, "texts": ["one two", "three ü"], "file_root": root},
        {"file_list": str(folder / "speech" / "list.txt")},
    ):
        audio, rate, text = read(lambda a=arguments: fn.readers.audio(**a), 2)  # type: ignore[misc]
        assert texts_of(text) == ["one two", "three ü"]
    (folder / "labels.txt").write_text("class1/1.wav 7\nclass0/0.wav 9\n")
    *_, label = read(lambda: fn.readers.audio(file_list=str(folder / "labels.txt"), file_root=root), 2)
    assert [int(x[0]) for x in label] == [7, 9]


def test_files_are_resampled_and_mixed(folder: Path) -> None:
    path = folder / "stereo.wav"
    path.write_bytes(wav(samples(9, 1000, 2)))
    audio, rate, _ = read(lambda: fn.readers.audio(files=[str(path)], sample_rate=4000.0), 1)
    assert audio[0].shape == (500,) and float(rate[0]) == RATE
    audio, *_ = read(lambda: fn.readers.audio(files=[str(path)], downmix=False, dtype=types.INT16), 1)
    np.testing.assert_array_equal(audio[0], samples(9, 1000, 2))


def test_files_that_are_no_audio_are_errors_of_their_rows(tmp_path: Path) -> None:
    whole, file = wav(samples(3, 50)), tmp_path / "tone.wav"  # a header of 44 bytes, samples of 100
    text = b"a text file named tone.wav\n"
    for content in [b"", text, text * 100, *(whole[:size] for size in range(1, len(whole) - 99))]:
        file.write_bytes(content)
        with pytest.raises(StokerError, match=r"tone\.wav"):
            read(lambda: fn.readers.audio(files=[str(file)]), 1)


def test_unusual_rates_and_many_channels_are_read(tmp_path: Path) -> None:
    file = tmp_path / "a.wav"
    for rate, target in ((1, 16.0), (10_000_000, 16000.0)):
        for channels in (1, 64):
            data = samples(4, 5000, channels)
            file.write_bytes(wav(data, rate))
            audio, found, _ = read(lambda: fn.readers.audio(files=[str(file)], downmix=False), 1)
            want = data if channels > 1 else data[:, 0]
            np.testing.assert_array_equal(audio[0].reshape(want.shape), want.astype(np.float32) / 32768)
            assert float(found[0]) == rate
            audio, *_ = read(lambda t=target: fn.readers.audio(files=[str(file)], sample_rate=t), 1)  # type: ignore[misc]
            assert audio[0].shape == (-(-5000 * int(target) // rate),) and np.isfinite(audio[0]).all()


@pytest.mark.parametrize(
    ("arguments", "text"),
    [
        ({}, "expected `file_root`"),
        ({"files": ["a.wav"], "texts": ["a", "b"]}, "one text for each of 1 files"),
        ({"texts": ["a"]}, "`texts` with `files`"),
        ({"files": ["a.wav"], "texts": ["a"], "labels": [1]}, "in place of `labels`"),
        ({"files": ["a.wav"], "sample_rate": -5.0}, "positive `sample_rate`"),
        ({"files": ["a.wav"], "dtype": types.UINT8}, "FLOAT, INT16 or INT32"),
        ({"files": ["a.wav"], "quality": 101.0}, "from 0 to 100"),
        ({"file_root": ".", "extensions": ["wav"]}, r"such as \[.\.wav"),
        ({"file_root": ".", "extensions": [".wav"], "file_filters": ["*"]}, "got both"),
    ],
)
def test_arguments_are_checked(arguments: dict[str, Any], text: str) -> None:
    with pytest.raises(ArgumentError, match=text):
        read(lambda: fn.readers.audio(**arguments), 1)


def test_lines_of_a_list_have_one_form(tmp_path: Path) -> None:
    (tmp_path / "list.txt").write_text("a.wav\tone\nb.wav 3\n")
    with pytest.raises(ArgumentError, match="tab after the path in line 2"):
        read(lambda: fn.readers.audio(file_list=str(tmp_path / "list.txt")), 1)


def manifest(folder: Path, *entries: Any, name: str = "m.json") -> str:
    lines = [entry if isinstance(entry, str) else json.dumps(entry) for entry in entries]
    (folder / name).write_text("\n".join(lines) + "\n", encoding="utf-8")
    return str(folder / name)


def entry(i: int, **more: Any) -> dict[str, Any]:
    return {"audio_filepath": f"speech/class{i % 2}/{i}.wav", "text": f"text {i}", **more}


def test_a_manifest_gives_parts_of_files(folder: Path) -> None:
    path = manifest(folder, entry(0), entry(1, offset=0.25, duration=0.1), entry(2, duration=60.0, extra=[1]))
    audio, rate, text, idx = read(lambda: fn.readers.nemo_asr(manifest_filepaths=path, read_idxs=True))
    whole = [samples(i, 4000 + 800 * i)[:, 0].astype(np.float32) / 32768 for i in range(3)]
    for got, want in zip(audio, (whole[0], whole[1][2000:2800], whole[2]), strict=True):
        np.testing.assert_array_equal(got, want)
    assert [float(x) for x in rate] == [RATE] * 3
    assert texts_of(text) == ["text 0", "text 1", "text 2"]
    assert [x.tolist() for x in idx] == [[0], [1], [2]]


def test_outputs_of_a_manifest_are_chosen(folder: Path) -> None:
    path = manifest(folder, entry(0, text=""), entry(1))
    (audio,) = read(lambda: fn.readers.nemo_asr([path], read_text=False, read_sample_rate=False), 2)
    assert audio[0].shape == (4000,)
    audio, text = read(lambda: fn.readers.nemo_asr([path], read_sample_rate=False), 2)
    assert texts_of(text) == ["", "text 1"]
    audio, rate, _ = read(lambda: fn.readers.nemo_asr([path], sample_rate=4000.0), 2)
    assert audio[0].shape == (2000,) and float(rate[0]) == RATE


def test_entries_are_filtered_by_duration(folder: Path) -> None:
    one = manifest(folder, entry(0, duration=0.5), entry(1, duration=0.6), entry(2))
    two = manifest(folder, entry(2, duration=0.7), entry(0, duration=0.5), name="m2.json")

    def kept(**arguments: Any) -> list[list[Any]]:
        given = {"manifest_filepaths": [one, two], "read_idxs": True, **arguments}
        data = NemoAsrReader.dataset(NemoAsrReader.fill_defaults(given, {}))
        numbers = data.columns[-1].values
        assert numbers is not None
        return [numbers.ravel().tolist(), texts_of([data.columns[2].row(i) for i in range(len(data))])]

    assert kept() == [[0, 1, 2, 0, 1], ["text 0", "text 1", "text 2", "text 2", "text 0"]]
    assert kept(min_duration=0.55) == [[0, 0], ["text 1", "text 2"]]
    assert kept(max_duration=0.55) == [[0, 1, 0], ["text 0", "text 2", "text 0"]]


def test_lines_that_are_no_entries_are_reported(folder: Path) -> None:
    bad = ["no json", "[1]", '{"duration": 1.0}', json.dumps(entry(0, offset="1")), json.dumps(entry(0, duration=-3))]
    path = manifest(folder, entry(1), "", *bad, json.dumps(entry(0, text=3)))
    data = NemoAsrReader.dataset(NemoAsrReader.fill_defaults({"manifest_filepaths": path}, {}))
    assert len(data) == 1
    assert data.notes[0].startswith("6 lines are left out of the manifests: line 3 of")
    with pytest.raises(ArgumentError, match="expected entries in 1 manifests"):
        read(lambda: fn.readers.nemo_asr(manifest(folder, *bad)), 1)
    with pytest.raises(ArgumentError, match="there is none at"):
        read(lambda: fn.readers.nemo_asr(str(folder / "missing.json")), 1)


def test_missing_and_short_files_are_errors_of_their_rows(folder: Path) -> None:
    path = manifest(folder, entry(0), entry(1, offset=5.0), {"audio_filepath": "speech/none.wav"})
    with pytest.raises(StokerError, match="`offset` within the file"):
        read(lambda: fn.readers.nemo_asr(path))
    _, _, text = read(lambda: fn.readers.nemo_asr(path, on_error="skip"), 1, error_limit=1.0)
    assert texts_of(text) == ["text 0"]


def test_a_manifest_has_shards_and_an_order(folder: Path) -> None:
    path = manifest(folder, *(entry(i % 3, text=str(i)) for i in range(10)))
    parts = [
        texts_of(read(lambda k=k: fn.readers.nemo_asr(path, num_shards=2, shard_id=k, stick_to_shard=True), 5)[2])  # type: ignore[misc]
        for k in range(2)
    ]
    assert sorted(map(int, parts[0] + parts[1])) == list(range(10))
    shuffled = [texts_of(read(lambda: fn.readers.nemo_asr(path, random_shuffle=True), 10, seed=3)[2]) for _ in range(2)]
    assert shuffled[0] == shuffled[1] and sorted(map(int, shuffled[0])) == list(range(10)) != shuffled[0]


def test_joined_readers_decode_what_each_lists(folder: Path) -> None:
    one, two = manifest(folder, entry(0)), manifest(folder, entry(1, offset=0.25), name="m2.json")
    audio, _, text, _ = read(lambda: fn.readers.concat([fn.readers.nemo_asr(one), fn.readers.nemo_asr(two)]), 2)
    assert [x.shape for x in audio] == [(4000,), (2800,)]
    assert texts_of(text) == ["text 0", "text 1"]
    with pytest.raises(ArgumentError, match="same arguments"):
        read(lambda: fn.readers.concat([fn.readers.nemo_asr(one), fn.readers.nemo_asr(two, dtype=types.INT16)]), 2)


def test_relative_paths_have_a_base(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (folder / "lists").mkdir()
    path = manifest(folder / "lists", entry(0))
    monkeypatch.chdir(folder)
    assert read(lambda: fn.readers.nemo_asr(path, base=""), 1)[0][0].shape == (4000,)
    with pytest.raises(ArgumentError, match=r'lists.*relative to the current folder: pass `base="."`'):
        read(lambda: fn.readers.nemo_asr(path), 1)


# ---- parts of long files ----


def listed_parts(path: Path, entries: list[tuple[Path, float, float]]) -> str:
    """Write a manifest of file, first second and seconds. Return its path."""
    lines = [json.dumps({"audio_filepath": str(f), "offset": o, "duration": d, "text": ""}) for f, o, d in entries]
    path.write_text("\n".join(lines) + "\n")
    return str(path)


def long_files() -> dict[str, bytes]:
    """Return files of more than a megabyte, of which readers read a part alone."""
    rng, frames = np.random.default_rng(0), 400_000
    whole = rng.integers(-(1 << 31), 1 << 31, (frames, 2))
    floats = rng.normal(0, 0.3, (frames, 2))
    plain = bytes(write_wav(whole, RATE))
    notes = b"LIST" + (70_000).to_bytes(4, "little") + bytes(70_000)  # a header beyond what is read to find it
    ds64 = b"ds64" + (28).to_bytes(4, "little") + bytes(8) + (4 * frames).to_bytes(8, "little") + bytes(12)
    data = plain.index(b"data") + 4
    return {
        "16 bits": plain,
        "8 bits": bytes(write_wav(whole[:, :1].repeat(3, 1), RATE, bits=8)),
        "24 bits, extensible": bytes(write_wav(whole, RATE, bits=24, extensible=True)),
        "32 bits": bytes(write_wav(whole, RATE, bits=32)),
        "float": bytes(write_wav(floats.astype(np.float32), RATE)),
        "double": bytes(write_wav(floats, RATE)),
        "notes first": plain[:12] + notes + plain[12:],
        "open sizes": plain[:4] + bytes(4) + plain[8:data] + bytes(4) + plain[data + 4 :],
        "RF64": b"RF64\xff\xff\xff\xffWAVE" + ds64 + plain[12:data] + b"\xff\xff\xff\xff" + plain[data + 4 :],
        "more after the samples": plain + b"LIST\4\0\0\0abcd",
    }


def test_parts_of_long_files_are_those_of_the_whole(tmp_path: Path) -> None:
    parts = [(0.0, 0.5), (3.3, 1.25), (49.0, 5.0), (0.0, 0.0), (20.00003, 0.00001), (50.0, 1.0)]
    for name, content in long_files().items():
        file = tmp_path / "a.wav"
        file.write_bytes(content)
        listed = listed_parts(tmp_path / "m.json", [(file, offset, seconds) for offset, seconds in parts])
        for more in ({"downmix": False}, {"dtype": types.INT16}, {"sample_rate": 5000.0}):
            audio, rate, *_ = read(
                lambda m=more, p=listed: fn.readers.nemo_asr(manifest_filepaths=p, read_sample_rate=True, **m),  # type: ignore[misc]
                len(parts),
            )
            for got, (offset, seconds) in zip(audio, parts, strict=True):
                arguments = {"downmix": True, **more, "offset": offset, "duration": seconds}
                want, _ = eager.decoders.audio(np.frombuffer(content, np.uint8), **arguments)
                np.testing.assert_array_equal(got, want, err_msg=f"{name}, {more}, {offset}, {seconds}")
            assert [float(r) for r in rate] == [RATE] * len(parts)


def test_damaged_long_files_are_errors(tmp_path: Path) -> None:
    content, file = long_files()["16 bits"], tmp_path / "a.wav"
    for damaged, offset, text in (
        (content[:-1], 0.0, "the file is cut off"),
        (content, 51.0, "`offset` within the file of 50 seconds"),
        (bytes(2 << 20), 0.0, "expected an audio file"),
        (content[:36] + b"dat?" + content[40:], 0.0, "without samples"),
    ):
        file.write_bytes(damaged)
        listed = listed_parts(tmp_path / "m.json", [(file, offset, 1.0)])
        with pytest.raises(StokerError, match=text):
            read(lambda m=listed: fn.readers.nemo_asr(manifest_filepaths=m), 1)  # type: ignore[misc]


def peak_bytes() -> int:
    """Return the most memory that the process has had."""
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024


def file_of_ten_hours(folder: Path) -> Path:
    """Write a file of 16,000 Hz without blocks on the disk but for its ends. Return its path."""
    frames = 10 * 3600 * 16000
    content = bytes(write_wav(samples(1, 100), 16000))
    head = content[:40] + (2 * frames).to_bytes(4, "little")
    file = folder / "long.wav"
    with file.open("wb") as out:
        out.write(head)
        out.truncate(len(head) + 2 * frames)
        out.seek(len(head) + 2 * (frames - 4000))
        out.write(samples(2, 4000).tobytes())
    return file


def test_the_whole_of_a_file_of_ten_hours_is_refused_before_it_takes_memory(tmp_path: Path) -> None:
    file, short = file_of_ten_hours(tmp_path), tmp_path / "short.wav"
    short.write_bytes(bytes(write_wav(samples(3, 800), 16000)))

    @pipeline_def(batch_size=1, num_threads=1, device_id=None, max_batch_bytes=64 << 20)
    def listed() -> Any:
        return fn.readers.audio(files=[str(short), str(file), str(short)])[0]

    before = peak_bytes()
    with listed() as pipe:
        first = pipe.run()
        with pytest.raises(DataError, match=r"at most 67108864 bytes.*got 1152000044 for this row.*long\.wav"):
            pipe.run()
        last = pipe.run()
    assert [len(batch[0][0]) for batch in (first, last)] == [800, 800]
    assert peak_bytes() - before < 200 << 20


def test_a_part_of_a_file_of_ten_hours_takes_little_memory(tmp_path: Path) -> None:
    file = file_of_ten_hours(tmp_path)
    listed = listed_parts(tmp_path / "m.json", [(file, 36000 - 0.25, 0.25), (file, 18000.0, 0.5)])
    before = peak_bytes()
    audio, *_ = read(lambda: fn.readers.nemo_asr(manifest_filepaths=listed), 2)
    np.testing.assert_array_equal(audio[0], samples(2, 4000)[:, 0].astype(np.float32) / 32768)
    assert not audio[1].any() and len(audio[1]) == 8000
    assert peak_bytes() - before < 200 << 20
