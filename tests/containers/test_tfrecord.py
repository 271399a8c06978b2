# SPDX-License-Identifier: Apache-2.0
"""``readers.tfrecord``: values of features, damaged records and files, index files, and declarations."""

from __future__ import annotations

import gzip
import importlib.util
import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from containers import crc32c, example, feature, message, tfrecord, varint
from stoker import ArgumentError, DataError, Pipeline, StateError, UnsupportedError, fn
from stoker import tfrecord as tf
from stoker.native import _native
from stoker.readers._example import read_feature
from tests.containers.data import epoch, pipeline, plain, rows

STRING, INTS, FLOATS = (
    tf.FixedLenFeature((), tf.string), tf.VarLenFeature(tf.int64), tf.VarLenFeature(tf.float32)
)  # fmt: skip


def write(folder: Path, *records: bytes, name: str = "a.tfrecord") -> str:
    (folder / name).write_bytes(tfrecord(records))
    return str(folder / name)


def read(path: Any, features: dict[str, Any], **arguments: Any) -> list[list[Any]]:
    return [plain(row) for row in rows(lambda: fn.readers.tfrecord(path=path, features=features, **arguments))]


def test_all_kinds_of_features(tmp_path: Path) -> None:
    records = [
        example({"s": b"x" * i, "one": [-i], "pair": [i, 1 << 62], "f": [i / 2, -1.5], "list": [0.5] * (2 * i)}
                if i else {"s": b"", "one": [0], "pair": [0, 1 << 62], "f": [0.0, -1.5]})
        for i in range(5)
    ]  # fmt: skip
    path = write(tmp_path, *records)
    features = {
        "s": STRING, "one": tf.FixedLenFeature((), tf.int64), "pair": tf.FixedLenFeature([2], tf.int64),
        "f": tf.FixedLenFeature([1, 2], tf.float32), "list": tf.VarLenFeature([2], tf.float32),
    }  # fmt: skip
    assert read(path, features) == [
        [b"x" * i, ("int64", (), -i), ("int64", (2,), [i, 1 << 62]), ("float32", (1, 2), [[i / 2, -1.5]]),
         ("float32", (i, 2), [[0.5, 0.5]] * i)]
        for i in range(5)
    ]  # fmt: skip


@pytest.mark.parametrize("packed", [False, True])
def test_lists_may_be_packed_or_not(tmp_path: Path, packed: bool) -> None:
    path = write(tmp_path, example({"i": [1, -2, 1 << 40], "f": [0.5, 2.0]}, packed=packed))
    assert read(path, {"i": INTS, "f": FLOATS}) == [
        [("int64", (3,), [1, -2, 1 << 40]), ("float32", (2,), [0.5, 2.0])]
    ]  # fmt: skip


def test_repeated_fields_are_merged_as_protocol_buffers_say(tmp_path: Path) -> None:
    def entry(*features: bytes) -> bytes:
        return message(1, message(1, b"i") + b"".join(message(2, f) for f in features))

    last_entry = message(1, entry(feature([1])) + entry(feature([2, 3])))
    joined_lists = message(1, entry(feature([1]), feature([2])))
    other_kind = message(1, entry(feature([1.5]), feature([7]), feature([8])))
    two_messages = message(1, entry(feature([1]))) + message(1, entry(feature([9])))
    unknown = message(1, message(7, b"??") + entry(feature([4]) + varint(9 << 3) + varint(1 << 63))) + message(5, b"")
    path = write(tmp_path, last_entry, joined_lists, other_kind, two_messages, unknown)
    assert [row[0][2] for row in read(path, {"i": INTS})] == [[2, 3], [1, 2], [7, 8], [9], [4]]


def test_missing_values_take_the_default(tmp_path: Path) -> None:
    path = write(tmp_path, example({"i": [5], "s": b"there"}), example({"other": [1]}))
    features = {
        "i": tf.FixedLenFeature([3], tf.int64, -1), "s": tf.FixedLenFeature([1], tf.string, b"gone"),
        "f": tf.FixedLenFeature([2], tf.float32, [1, 2]), "v": tf.VarLenFeature(tf.float32, 0.0),
    }  # fmt: skip
    empty, floats = ("float32", (0,), []), ("float32", (2,), [1.0, 2.0])
    assert read(path, features) == [
        [("int64", (3,), [5, -1, -1]), b"there", floats, empty], [("int64", (3,), [-1] * 3), b"gone", floats, empty]
    ]  # fmt: skip


@pytest.mark.parametrize(("features", "text"), [
    ({"s": tf.FixedLenFeature((), tf.string)}, "expected bytes in the feature 's', got none"),
    ({"i": tf.FixedLenFeature([3], tf.int64)}, "expected 3 numbers in the feature 'i', got 2"),
    ({"i": tf.FixedLenFeature([1], tf.int64, 0)}, "expected 1 number in the feature 'i', got 2"),
    ({"i": tf.FixedLenFeature((), tf.string, "")}, "expected bytes in the feature 'i', got integers"),
    ({"i": tf.VarLenFeature(tf.float32)}, "expected floats in the feature 'i', got integers"),
    ({"i": tf.VarLenFeature([3], tf.int64)}, "expected a multiple of 3 numbers in the feature 'i', got 2"),
    ({"e": tf.FixedLenFeature((), tf.string)}, "expected bytes in the feature 'e', got none"),
])  # fmt: skip
def test_a_record_that_does_not_fit_is_an_error_of_its_row(tmp_path: Path, features: Any, text: str) -> None:
    good = {"i": [1] * (3 if "i" in features and features["i"].shape != (1,) else 1), "s": b"", "e": b""}
    if features.get("i") in (tf.FixedLenFeature((), tf.string, ""), tf.VarLenFeature(tf.float32)):
        good["i"] = b"" if features["i"].dtype == "string" else [1.0]
    wrong = message(1, message(1, message(1, b"i") + message(2, feature([1, 2])))
                    + message(1, message(1, b"e") + message(2, message(1, b""))))  # fmt: skip
    path = write(tmp_path, example(good), wrong)
    with pipeline(lambda: fn.readers.tfrecord(path=path, features=features), batch_size=1) as pipe:
        pipe.run()
        with pytest.raises(DataError, match=text) as raised:
            pipe.run()
    assert raised.value.sample == 1 and f"{path} at byte {16 + len(example(good))}" in str(raised.value)
    skipped = rows(lambda: fn.readers.tfrecord(path=path, features=features, on_error="skip"))
    assert len(skipped) == 1


def test_a_wrong_checksum_is_an_error_of_its_row_unless_it_is_not_checked(tmp_path: Path) -> None:
    records = [example({"s": bytes([i]) * 300}) for i in range(3)]
    path = write(tmp_path, *records)
    data = bytearray(Path(path).read_bytes())
    data[-30] ^= 1
    Path(path).write_bytes(data)
    with pytest.raises(DataError, match=r"expected the TFRecord at byte .*, got data with a wrong checksum"):
        read(path, {"s": STRING})
    assert len(read(path, {"s": STRING}, on_error="skip")) == 2
    assert len(read(path, {"s": STRING}, check_crc=False)) == 3


@pytest.mark.filterwarnings("ignore:.*is damaged at byte")
def test_a_file_cut_at_any_byte_has_all_records_before_and_one_bad_one(tmp_path: Path) -> None:
    records = [example({"s": bytes([65 + i]) * i}) for i in range(3)]
    whole = tfrecord(records)
    ends = np.cumsum([len(r) + 16 for r in records])
    path = tmp_path / "cut.tfrecord"
    for size in range(int(ends[0]), len(whole)):
        path.write_bytes(whole[:size])
        complete = int((ends <= size).sum())
        define = lambda: fn.readers.tfrecord(path=str(path), features={"s": STRING}, name="r")  # noqa: E731
        with pipeline(define, on_error="skip", batch_size=1) as pipe:
            assert [row[0].tobytes() for row in epoch(pipe)] == [bytes([65 + i]) * i for i in range(complete)]
            assert pipe.epoch_size("r") == complete + (size not in ends)
    for size in range(int(ends[0])):
        path.write_bytes(whole[:size])
        with pytest.raises((ArgumentError, DataError), match=r"got (none|another format)|expected"):
            read(str(path), {"s": STRING})


@pytest.mark.filterwarnings("ignore:.*is damaged at byte")
def test_a_changed_bit_never_gives_other_data(tmp_path: Path) -> None:
    records = [example({"s": bytes([65 + i]) * 9}) for i in range(3)]
    whole = tfrecord(records)
    path = tmp_path / "changed.tfrecord"
    good = {bytes([65 + i]) * 9 for i in range(3)}
    for at in range(len(records[0]) + 16, len(whole)):
        path.write_bytes(whole[:at] + bytes([whole[at] ^ 4]) + whole[at + 1 :])
        found = [row[0] for row in read(str(path), {"s": STRING}, on_error="skip")]
        assert set(found) < good and found == sorted(found), at


def test_a_file_that_shrinks_gives_row_errors(tmp_path: Path) -> None:
    path = write(tmp_path, *[example({"s": b"x" * 100}) for _ in range(8)])
    with pipeline(lambda: fn.readers.tfrecord(path=path, features={"s": STRING}), batch_size=2,
                  prefetch_queue_depth=1, exec_async=False) as pipe:  # fmt: skip
        pipe.run()
        Path(path).write_bytes(Path(path).read_bytes()[:300])
        with pytest.raises(DataError, match=r"expected \d+ bytes at byte \d+ of .*, got a file of 300 bytes"):
            pipe.run()


def test_index_files_of_users_are_read(tmp_path: Path) -> None:
    records = [example({"s": bytes([65 + i]) * 5}) for i in range(4)]
    path, size = write(tmp_path, *records), len(records[0]) + 16
    index = tmp_path / "a.idx"
    index.write_text("".join(f"{i * size} {size}\n" for i in (2, 0)))
    assert [row[0] for row in read(path, {"s": STRING}, index_path=str(index))] == [b"CCCCC", b"AAAAA"]
    for text, wrong in [("0 10\n", "at least 16 bytes"), (f"0 {size}\njunk\n", "in line 2 of"),
                        (f"0 {size} 3\n", "in line 1 of"), (f"-1 {size}\n", "line 1"),
                        (f"0\n{size}\n", "line 1")]:  # fmt: skip
        index.write_text(text)
        with pytest.raises(ArgumentError, match=wrong):
            read(path, {"s": STRING}, index_path=str(index))
    for text in (f"1 {size}\n", f"0 {size + 3}\n", f"0 {size - 3}\n", f"0 {1 << 55}\n", f"{1 << 61} 16\n"):
        index.write_text(text)
        with pytest.raises(DataError, match=r"the index belongs to another file|got a file of"):
            read(path, {"s": STRING}, index_path=str(index))
    with pytest.raises(ArgumentError, match="an index in `index_path` for each of 1 files, got 2"):
        read(path, {"s": STRING}, index_path=[str(index)] * 2)
    with pytest.raises(ArgumentError, match="expected an index file, there is none at"):
        read(path, {"s": STRING}, index_path=str(tmp_path / "none"))


def test_files_of_other_formats_are_refused(tmp_path: Path) -> None:
    path = tmp_path / "x.tfrecord"
    path.write_bytes(gzip.compress(tfrecord([example({"s": b"1"})])))
    with pytest.raises(ArgumentError, match=r"compressed with gzip.*Decompress it first"):
        read(str(path), {"s": STRING})
    path.write_bytes(b"something else altogether")
    with pytest.raises(ArgumentError, match="expected a TFRecord file, got another format"):
        read(str(path), {"s": STRING})
    path.write_bytes(b"")
    with pytest.raises(ArgumentError, match="expected records in 1 files"):
        read(str(path), {"s": STRING})
    with pytest.raises(ArgumentError, match="expected a file, there is none at"):
        read(str(tmp_path / "none"), {"s": STRING})
    with pytest.raises(ArgumentError, match=r"addresses of s3, .*got ftp://"):
        read("ftp://host/x.tfrecord", {"s": STRING})
    if importlib.util.find_spec("obstore") is None:
        with pytest.raises(UnsupportedError, match="extra `remote`: `pip install obstore`"):
            read("s3://bucket/x.tfrecord", {"s": STRING})
    full = write(tmp_path, example({"s": b"1"}), name="full.tfrecord")
    assert len(read([str(path), full, str(path)], {"s": STRING})) == 1, "empty shards"


def test_a_damaged_file_is_named_in_a_warning(tmp_path: Path) -> None:
    path = write(tmp_path, *[example({"s": b"1"})] * 3)
    Path(path).write_bytes(Path(path).read_bytes()[:-1])
    with pytest.warns(RuntimeWarning, match=r"is damaged at byte .*: the file ends within a record"):
        pipeline(lambda: fn.readers.tfrecord(path=path, features={"s": STRING})).build()


@pytest.mark.parametrize(("make", "error", "text"), [
    (lambda: tf.FixedLenFeature([2], tf.string, ""), UnsupportedError, "cannot hold several strings"),
    (lambda: tf.VarLenFeature(tf.string, ""), UnsupportedError, "cannot hold several of them"),
    (lambda: tf.FixedLenFeature([0], tf.int64, 0), ArgumentError, "extents >= 1"),
    (lambda: tf.FixedLenFeature([2], "int32", 0), ArgumentError, "expected tfrecord.int64"),
    (lambda: tf.FixedLenFeature([2], tf.int64, 0.5), ArgumentError, "numbers of type int64 as `default_value`"),
    (lambda: tf.FixedLenFeature([2], tf.int64, [1, 2, 3]), ArgumentError, r"numbers of the shape \[2\]"),
    (lambda: tf.FixedLenFeature((), tf.string, 3), ArgumentError, "expected a string as `default_value`"),
    (lambda: tf.VarLenFeature([2], tf.int64, 0, 1), ArgumentError, "expected VarLenFeature"),
])  # fmt: skip
def test_wrong_declarations_are_refused(make: Any, error: Any, text: str) -> None:
    with pytest.raises(error, match=text):
        make()


@pytest.mark.parametrize("value", [np.zeros(2, "V5"), np.zeros((3, 3)), 3, [3], {"a": 1}.values()], ids=repr)
def test_paths_of_any_other_kind_are_refused(tmp_path: Path, value: Any) -> None:
    path = write(tmp_path, example({"s": b"1"}))
    for arguments in ({"path": value}, {"path": path, "index_path": value}):
        with pytest.raises(ArgumentError, match=r"expected a path or a list of paths as `(index_)?path`"):
            pipeline(lambda a=arguments: fn.readers.tfrecord(features={"s": STRING}, **a))  # type: ignore[misc]


def test_features_are_a_dict_of_declarations(tmp_path: Path) -> None:
    path = write(tmp_path, example({"s": b"1"}))
    for features in ({}, None, [1], {"s": tf.string}, "s"):
        with pytest.raises(ArgumentError, match=r"dict of FixedLenFeature|tfrecord\.FixedLenFeature or|`features`"):
            pipeline(lambda f=features: fn.readers.tfrecord(path=path, features=f))  # type: ignore[misc]


def test_a_graph_is_stored_with_its_features(tmp_path: Path) -> None:
    path = write(tmp_path, example({"s": b"1", "i": [3]}), example({"i": [4]}))
    features = {"s": tf.FixedLenFeature((), tf.string, b"\xff"), "i": tf.FixedLenFeature([1], tf.int64, (7,)),
                "v": tf.VarLenFeature([2], tf.float32)}  # fmt: skip
    with pipeline(lambda: fn.readers.tfrecord(path, features=features)) as pipe:
        text = pipe.serialize()
        first = [plain(row) for row in epoch(pipe)]
    with Pipeline.deserialize(text, batch_size=4, num_threads=1, seed=3, device_id=None) as again:
        assert [plain(row) for row in epoch(again)] == first
    assert first[1][0] == b"\xff"


def test_shuffles_shards_and_states_are_those_of_the_samples(tmp_path: Path) -> None:
    records = [example({"i": [i]}) for i in range(23)]
    paths = [write(tmp_path, *records[k::3], name=f"{k}.tfrecord") for k in range(3)]
    features = {"i": tf.FixedLenFeature((), tf.int64)}

    def define(**arguments: Any) -> Any:
        return lambda: fn.readers.tfrecord(path=paths, features=features, **arguments)

    assert [int(row[0]) for row in rows(define())] == [*range(0, 23, 3), *range(1, 23, 3), *range(2, 23, 3)]
    order = [int(row[0]) for row in rows(define(random_shuffle=True))]
    assert sorted(order) == list(range(23)) and order != sorted(order)
    for settings in ({"batch_size": 1, "num_threads": 1}, {"batch_size": 23, "exec_async": False}):
        assert [int(r[0]) for r in rows(define(random_shuffle=True, shuffle_after_epoch=True), **settings)] == order
    parts = [[int(r[0]) for r in rows(define(random_shuffle=True, num_shards=2, shard_id=k))] for k in range(2)]
    assert [parts[i % 2][i // 2] for i in range(23)] == order
    with pipeline(define(random_shuffle=True)) as pipe:
        pipe.run()
        token = json.loads(json.dumps(pipe.get_state()))
    with pipeline(define(random_shuffle=True), batch_size=5) as pipe:
        pipe.set_state(token)
        assert [int(row[0]) for row in epoch(pipe)] == order[4:]
    with (
        pipeline(lambda: fn.readers.tfrecord(path=paths[::-1], features=features, random_shuffle=True)) as pipe,
        pytest.raises(StateError, match="another data set"),
    ):
        pipe.set_state(token)


def test_joined_readers_read_a_record_once(tmp_path: Path) -> None:
    paths = [write(tmp_path, *[example({"i": [10 * k + i], "s": b"x" * k}) for i in range(3)], name=f"{k}.tfrecord")
             for k in range(2)]  # fmt: skip
    features = {"i": tf.FixedLenFeature((), tf.int64), "s": STRING}

    def define() -> Any:
        return fn.readers.concat([fn.readers.tfrecord(path=p, features=features) for p in paths])

    with pipeline(define) as pipe:
        assert str(pipe.show()).count("read_range") == 1
        found = [(int(i), s.tobytes(), int(part[0])) for i, s, part in epoch(pipe)]
    assert found == [(10 * k + i, b"x" * k, k) for k in range(2) for i in range(3)]


@pytest.mark.parametrize("isa", _native.instruction_sets())
def test_checksums_are_those_of_the_definition(isa: str) -> None:
    data = np.random.default_rng(1).bytes(17000)
    before = _native.get_isa()
    _native.set_isa(isa)
    try:
        assert _native.crc32c(b"123456789") == 0xE3069283
        assert all(
            _native.crc32c(data[:n]) == crc32c(data[:n])
            for n in [*range(33), 511, 512, 513, 575, 576, 1023, 1024, 1095, 3839, 3840, 3848, 7935, 7936, 7937, 16999]
        )
        assert _native.crc32c(data[100:], _native.crc32c(data[:100])) == crc32c(data)
        for piece in (1, 100, len(data), len(data) + 1):
            sums = b"".join(crc32c(data[at : at + piece]).to_bytes(4, "little") for at in range(0, len(data), piece))
            assert _native.crc32c_of_pieces(memoryview(data), piece) == _native.crc32c_of_pieces(data, piece) == sums
    finally:
        _native.set_isa(before)


def test_the_python_twin_reads_the_same_values(tmp_path: Path) -> None:
    """Mutated records: the native parser and its twin accept the same ones, with the same values."""
    rng = np.random.default_rng(5)
    start = example({"i": [1, -2, 300], "f": [0.5, 1.5], "s": b"abc", "many": [b"x", b"yz"]})
    records = []
    for _ in range(400):
        out = bytearray(start)
        for _ in range(rng.integers(1, 4)):
            out[rng.integers(len(out))] = rng.integers(256)
        records.append(bytes(out[: rng.integers(1, len(out) + 1)] if rng.random() < 0.2 else out))
    path = write(tmp_path, *records)
    kinds = {"i": ("int64", INTS), "f": ("float32", FLOATS), "s": ("string", tf.FixedLenFeature((), tf.string, "none"))}
    for name, (kind, declared) in kinds.items():
        wanted = {}
        for number, record in enumerate(records):
            try:
                found, values = read_feature(record, name)
            except DataError:
                continue
            if found in (None, kind):
                wanted[number] = [values[0] if values else b"none"] if kind == "string" else values
        features = {name: declared}

        def define(features: Any = features) -> Any:
            return (*fn.readers.tfrecord(path=path, features=features, on_error="skip").values(),)

        with pipeline(define, batch_size=1, error_limit=1.0) as pipe:
            got = [row[0].tobytes() for row in epoch(pipe)]
        dtype = {"int64": np.int64, "float32": np.float32}.get(kind)
        assert got == [v[0] if kind == "string" else np.asarray(v, dtype).tobytes() for v in wanted.values()], name
