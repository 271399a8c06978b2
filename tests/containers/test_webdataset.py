# SPDX-License-Identifier: Apache-2.0
"""``readers.webdataset``: samples, missing components, names in all forms of tar, damage, index files."""

from __future__ import annotations

import gzip
import io
import json
import tarfile
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from containers import tar
from stoker import ArgumentError, DataError, fn, types
from stoker.native import _native
from tests.containers.data import epoch, pipeline, plain, rows

SETTINGS: list[dict[str, Any]] = [
    {"batch_size": 1, "num_threads": 1}, {"batch_size": 7}, {"batch_size": 50, "exec_async": False}
]  # fmt: skip
FORMS = {"ustar": tarfile.USTAR_FORMAT, "gnu": tarfile.GNU_FORMAT, "pax": tarfile.PAX_FORMAT}


def write(folder: Path, *members: tuple[str, bytes], name: str = "a.tar", form: str = "pax") -> str:
    (folder / name).write_bytes(tar(members, form=FORMS[form]))
    return str(folder / name)


def read(path: Any, ext: Any, **arguments: Any) -> list[list[Any]]:
    return [plain(row) for row in rows(lambda: fn.readers.webdataset(paths=path, ext=ext, **arguments))]


def test_adjacent_members_with_one_key_are_a_sample(tmp_path: Path) -> None:
    path = write(
        tmp_path, ("a/1.jpg", b"J1"), ("a/1.cls", b"C1"), ("a/1.left.jpg", b"L1"), ("b/1.jpg", b"J2"),
        ("b/1.cls", b"C2"), ("2.cls", b"C3"), ("2.jpg", b"J3"), ("a/1.jpg", b"J4"), ("a/1.cls", b"C4"),
    )  # fmt: skip
    assert read(path, ["jpg", "cls"]) == [[b"J1", b"C1"], [b"J2", b"C2"], [b"J3", b"C3"], [b"J4", b"C4"]]
    assert read(path, "left.jpg") == [[b"L1"], [b""], [b""], [b""]]


def test_the_first_of_alternatives_in_the_file_is_taken(tmp_path: Path) -> None:
    path = write(tmp_path, ("1.png", b"P"), ("1.jpg", b"J"), ("1.png", b"again"), ("2.jpg", b"J2"), ("3.txt", b"T"))
    assert read(path, ["jpg;png", "png;jpg", "jpg"]) == [[b"P", b"P", b"J"], [b"J2"] * 3, [b""] * 3]


def test_missing_components(tmp_path: Path) -> None:
    members = (("1.jpg", b"J"), ("1.cls", b"C"), ("2.jpg", b"J2"), ("3.other", b"?"), ("4", b"no extension"))
    path = write(tmp_path, *members)
    assert read(path, ["jpg", "cls"], missing_component_behavior="SKIP") == [[b"J", b"C"]]
    for behavior in ("", "empty", "Empty"):
        found = read(path, ["jpg", "cls"], missing_component_behavior=behavior)
        assert found == [[b"J", b"C"], [b"J2", b""], [b"", b""], [b"", b""]]
    with pytest.raises(ArgumentError, match=r"'cls' in every sample, got none in sample 1 of .*3 samples of it"):
        read(path, ["jpg", "cls"], missing_component_behavior="error")
    with pytest.raises(ArgumentError, match="expected one of 'empty', 'skip', 'error'"):
        read(path, ["jpg"], missing_component_behavior="drop")


def test_hidden_files_and_empty_files_make_no_samples(tmp_path: Path) -> None:
    members = ((".hidden", b"?"), ("a/1.jpg", b"J"), ("a/._1.jpg", b"?"), ("a/1.cls", b"C"))
    path, empty = write(tmp_path, *members), write(tmp_path, name="empty.tar")
    (tmp_path / "nothing.tar").write_bytes(b"")
    assert read([empty, path, str(tmp_path / "nothing.tar")], ["jpg", "cls"]) == [[b"J", b"C"]]
    with pytest.raises(ArgumentError, match=r"expected samples in 1 tar files"):
        read(empty, ["jpg"])


def test_element_types(tmp_path: Path) -> None:
    path = write(tmp_path, ("1.f", np.asarray([1.5, -2], "<f4").tobytes()), ("1.i", np.asarray([7], "<i8").tobytes()),
                 ("2.i", b""), ("3.f", b"abcde"))  # fmt: skip
    with pytest.raises(DataError, match="expected a multiple of 4 bytes, got 5"):
        read(path, ["f", "i"], dtypes=[types.FLOAT, types.INT64])
    found = read(path, ["f", "i"], dtypes=[types.FLOAT, types.INT64], on_error="skip")
    assert found == [
        [("float32", (2,), [1.5, -2.0]), ("int64", (1,), [7])],
        [("float32", (0,), []), ("int64", (0,), [])],
    ]
    with pytest.raises(ArgumentError, match="a type in `dtypes` for each of 2 outputs, got 1"):
        read(path, ["f", "i"], dtypes=[types.FLOAT])


def test_extensions_may_ignore_case(tmp_path: Path) -> None:
    path = write(tmp_path, ("1.JPG", b"1"), ("2.jpg", b"2"), ("3.Jpg", b"3"))
    assert [row[0] for row in read(path, ["jpG"], case_sensitive_extensions=False)] == [b"1", b"2", b"3"]
    assert [row[0] for row in read(path, ["jpg"])] == [b"", b"2", b""]


@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize("length", [90, 99, 100, 101, 150, 240])
def test_names_of_any_length_are_read_whole(tmp_path: Path, form: str, length: int) -> None:
    stem = ("folder/" * 40)[: length - 4].rstrip("/") + "x"
    names = [f"{stem}{ext}" for ext in (".jpg", ".cls")] + [f"{stem}2.jpg"]
    path = write(tmp_path, *((n, n[-5:].encode()) for n in names), form=form)
    with tarfile.open(path) as file:
        wanted = [(m.name, m.offset_data, m.size) for m in file]
    offset, size, packed, _, damage = _native.scan_tar(path.encode())
    assert [*zip(packed.decode().split("\0"), offset.tolist(), size.tolist(), strict=False)] == wanted and not damage
    assert read(path, ["jpg", "cls"]) == [[b"x.jpg", b"x.cls"], [b"2.jpg", b""]]


@pytest.mark.parametrize("form", FORMS)
def test_members_are_those_that_tarfile_finds(tmp_path: Path, form: str) -> None:
    out = io.BytesIO()
    with tarfile.open(fileobj=out, mode="w", format=FORMS[form]) as file:
        for i in range(60):
            member = tarfile.TarInfo(f"{'é' * (i % 40)}{'d/' * (i % 9)}{i}.bin")
            # tarfile takes an old regular file whose name has a slash at its 100th byte for a folder.
            old_regular = tarfile.AREGTYPE if i < 20 else tarfile.REGTYPE
            member.type = [tarfile.REGTYPE, old_regular, tarfile.DIRTYPE, tarfile.SYMTYPE, tarfile.LNKTYPE,
                           tarfile.FIFOTYPE, tarfile.CONTTYPE][i % 7]  # fmt: skip
            member.linkname = "l" * i if member.type in (tarfile.SYMTYPE, tarfile.LNKTYPE) else ""
            content = bytes(i * 37) if member.isreg() else b""
            member.size = len(content)
            file.addfile(member, io.BytesIO(content))
    path = tmp_path / "all.tar"
    path.write_bytes(out.getvalue())
    with tarfile.open(path) as file:
        wanted = [(m.name, m.offset_data, m.size) for m in file if m.isreg()]
    offset, size, names, _, damage = _native.scan_tar(str(path).encode())
    assert not damage and len(wanted) > 15
    assert [*zip(names.decode().split("\0"), offset.tolist(), size.tolist(), strict=False)] == wanted


def header(name: bytes, size: bytes, kind: bytes = b"0") -> bytes:
    """Return a header with a size field of the caller's."""
    block = bytearray(512)
    block[: len(name)] = name
    block[124 : 124 + len(size)] = size
    block[156:157] = kind
    block[257:265] = b"ustar\00000"
    block[148:156] = b" " * 8
    block[148:156] = b"%06o\0 " % sum(block)
    return bytes(block)


def test_sizes_in_base_256_and_in_pax_headers(tmp_path: Path) -> None:
    data = b"x" * 600
    pax = b"12 size=600\n"
    path = tmp_path / "a.tar"
    in_pax = header(b"pax", b"14\0", b"x") + pax.ljust(512, b"\0") + header(b"1.jpg", b"00000000000\0")
    for block in (header(b"1.jpg", b"\x80" + (600).to_bytes(11, "big")), header(b"1.jpg", b"  1130 "), in_pax):
        path.write_bytes(block + data.ljust(1024, b"\0"))
        assert read(str(path), "jpg") == [[data]]
    for wrong in (b"\xff" * 12, b"\x80" + b"\xff" * 11, b"12x", b"9"):
        path.write_bytes(header(b"0.jpg", b"0") + header(b"1.jpg", wrong) + data.ljust(1024, b"\0"))
        with pytest.raises(ArgumentError, match="at byte 512: the header of a member has an impossible size"):
            read(str(path), "jpg")
    for wrong_pax in (b"12 size=60\n", b"x size=600\n", b"12 size=6x0\n", b"999 size=600\n", b"12 size 600\n"):
        blocks = header(b"0.jpg", b"0") + header(b"pax", b"%o\0" % len(wrong_pax), b"x") + wrong_pax.ljust(512, b"\0")
        path.write_bytes(blocks + header(b"1.jpg", b"0"))
        with pytest.raises(ArgumentError, match="a pax header is malformed"):
            read(str(path), "jpg")


def test_a_file_cut_at_any_byte_is_a_clear_error_or_complete(tmp_path: Path) -> None:
    members = [(f"{'n' * 120}{i}.jpg", bytes([i]) * (300 * i + 1)) for i in range(3)]
    whole = tar(members)
    path = tmp_path / "cut.tar"
    for size in [*range(0, len(whole), 97), *range(0, len(whole), 512), *range(1, len(whole), 512)]:
        path.write_bytes(whole[:size])
        try:
            found = [row[0] for row in read(str(path), "jpg")]
        except (ArgumentError, DataError) as error:
            assert any(t in str(error) for t in ("is damaged at byte", "expected samples", "expected a tar file"))
        else:
            assert found == [content for _, content in members][: len(found)]


def test_a_changed_header_is_a_clear_error(tmp_path: Path) -> None:
    whole = tar([("1.jpg", b"1"), ("2.jpg", b"2")], form=tarfile.USTAR_FORMAT)
    path = tmp_path / "changed.tar"
    for at in {*range(1024, 1536)} - {1024 + 155}:  # that byte follows the end of the checksum
        path.write_bytes(whole[:at] + bytes([whole[at] ^ 64]) + whole[at + 1 :])
        with pytest.raises(ArgumentError, match="is damaged at byte 1024: the header of a member has"):
            read(str(path), "jpg")


def test_compressed_and_concatenated_files_are_refused(tmp_path: Path) -> None:
    whole = tar([("1.jpg", b"1")])
    path = tmp_path / "a.tar.gz"
    path.write_bytes(gzip.compress(whole))
    with pytest.raises(ArgumentError, match="compressed with gzip"):
        read(str(path), "jpg")
    path.write_bytes(whole + whole)
    with pytest.raises(ArgumentError, match="there are further data after the end marker"):
        read(str(path), "jpg")
    out = io.BytesIO()
    with tarfile.open(fileobj=out, mode="w") as file:
        member = tarfile.TarInfo("1.jpg")
        member.pax_headers = {"GNU.sparse.major": "1", "GNU.sparse.minor": "0"}
        file.addfile(tarfile.TarInfo("0.jpg"))
        file.addfile(member)
    path.write_bytes(out.getvalue())
    with pytest.raises(ArgumentError, match="stored as a sparse file"):
        read(str(path), "jpg")


def test_a_file_that_shrinks_gives_row_errors(tmp_path: Path) -> None:
    path = write(tmp_path, *((f"{i}.jpg", b"x" * 600) for i in range(8)))
    with pipeline(lambda: fn.readers.webdataset(paths=path, ext="jpg"), batch_size=2, prefetch_queue_depth=1,
                  exec_async=False) as pipe:  # fmt: skip
        pipe.run()
        Path(path).write_bytes(Path(path).read_bytes()[:2000])
        with pytest.raises(DataError, match=r"expected 600 bytes at byte \d+ of .*, got a file of \d+ bytes"):
            pipe.run()


def test_index_files_of_users_are_read(tmp_path: Path) -> None:
    path = write(tmp_path, ("1.jpg", b"J1"), ("1.cls", b"C1"), ("2.jpg", b"J2"), form="ustar")
    index = tmp_path / "a.idx"

    def found(text: str, **arguments: Any) -> list[list[Any]]:
        index.write_text(text)
        return read(path, ["jpg", "cls"], index_paths=str(index), **arguments)

    assert found("v1.1 2\njpg 512 2 cls 1536 2\njpg 2560 2\n") == [[b"J1", b"C1"], [b"J2", b""]]
    assert found("v1.2 2\njpg 512 2 1.jpg cls 1536 2 1.cls\njpg 2560 2 2.jpg\n") == [[b"J1", b"C1"], [b"J2", b""]]
    assert found("v1.2 1\njpg 2560 2 2.jpg\nlater lines are ignored") == [[b"J2", b""]]
    for text, wrong in [
        ("", "line 1"), ("v1.3 2\n", "line 1"), ("v1.2 x\n", "line 1"),
        ("v1.2 2\njpg 512 2 a.jpg\n", "the file is incomplete"), ("v1.2 1\njpg 512 2\n", "line 2"),
        ("v1.1 1\njpg 513 2\n", "multiples of 512"), ("v1.1 1\njpg 512 -2\n", "line 2"),
        ("v1.1 1\njpg 512 99999999999999999999\n", "line 2"),
    ]:  # fmt: skip
        with pytest.raises(ArgumentError, match=wrong):
            found(text)
    for text in ("v1.1 1\njpg 512 999999\n", "v1.1 1\njpg 51200000 2\n", "v1.1 1\njpg 512 9999999999999999\n"):
        with pytest.raises(DataError, match="got a file of"):
            found(text)


def test_invalid_arguments_are_refused(tmp_path: Path) -> None:
    path = write(tmp_path, ("1.jpg", b"J"))
    for ext in ([], "", [""], ["jpg", ";"], [1], 3, ".jpg"):
        with pytest.raises(ArgumentError, match="`ext`"):
            read(path, ext)
    for paths in ([], 3, [None]):
        with pytest.raises(ArgumentError, match="expected a path or a list of paths as `paths`"):
            read(paths, "jpg")


def test_orders_shards_and_states_are_those_of_files(tmp_path: Path) -> None:
    """Law: a container has the rows of the same files for every order, shard, resume position and batch size."""
    contents = [bytes([65 + i]) * (i % 7 + 1) for i in range(23)]
    files = []
    for i, content in enumerate(contents):
        files.append(str(tmp_path / f"{i:02}.bin"))
        Path(files[-1]).write_bytes(content)
    shards = [
        write(tmp_path, *((f"{i:02}.bin", contents[i]) for i in range(begin, end)), name=f"{begin}.tar", form=form)
        for begin, end, form in ((0, 9, "pax"), (9, 10, "gnu"), (10, 23, "ustar"))
    ]

    def of_files(**arguments: Any) -> Any:
        return lambda: fn.readers.file(files=files, **arguments)[0]

    def of_shards(**arguments: Any) -> Any:
        return lambda: fn.readers.webdataset(paths=shards, ext="bin", **arguments)

    for arguments in ({}, {"random_shuffle": True}, {"random_shuffle": True, "num_shards": 3, "shard_id": 1},
                      {"sampler": [3, 3, 22, 0]}, {"num_shards": 2, "shard_id": 1, "pad_last_batch": True},
                      {"shuffle_after_epoch": True, "sharding": "contiguous", "num_shards": 2}):  # fmt: skip
        wanted = [plain(row) for row in rows(of_files(**arguments))]
        for settings in SETTINGS:
            assert [plain(row) for row in rows(of_shards(**arguments), **settings)] == wanted, arguments
    with pipeline(of_shards(random_shuffle=True)) as pipe:
        everything = [plain(row) for row in rows(of_files(random_shuffle=True))]
        for taken in (4, 8, 12):
            pipe.run()
            token = json.loads(json.dumps(pipe.get_state()))
            with pipeline(of_shards(random_shuffle=True), batch_size=5, num_threads=1) as resumed:
                resumed.set_state(token)
                assert [plain(row) for row in epoch(resumed)] == everything[taken:]
