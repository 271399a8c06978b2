# SPDX-License-Identifier: Apache-2.0
"""Errors: at their batch, in order, in one format, with the sample and the user's line. The pipeline stays usable."""

from __future__ import annotations

import inspect
import os
import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import stoker
from stoker import (
    ArgumentError,
    DataError,
    Pipeline,
    StateError,
    StokerError,
    UnsupportedError,
    fn,
    pipeline_def,
)
from tests.run.pipelines import files_of, labels_of

HERE = re.escape(__file__)
SHAPE = re.compile(
    r"^`(?P<operator>[\w.]+)`: (?P<text>.+?) — (?:sample (?P<sample>\d+) \((?P<path>.+?)\)|row (?P<row>\d+)), "
    rf"made at {HERE}:(?P<line>\d+)$",
    re.DOTALL,
)


@pipeline_def(batch_size=2, num_threads=2, seed=0)
def reading(files: list[str]) -> Any:
    jpegs, labels = fn.readers.file(files=files)  # line of the readers
    images = fn.decoders.image(jpegs)  # line of the decoders
    images = fn.crop(images, crop=(64, 64))  # line of the crops
    return images, labels


def line_of(text: str) -> int:
    lines = Path(__file__).read_text().splitlines()
    return next(n for n, line in enumerate(lines, 1) if line.endswith(f"# {text}"))


def fields(error: StokerError) -> dict[str, Any]:
    match = SHAPE.match(str(error))
    assert match, f"not in the shape of our messages: {error}"
    return match.groupdict()


@pytest.fixture(scope="module")
def files(jpegs: Path) -> list[str]:
    return files_of(jpegs)[:9]


# ---- bad files ----


def make_garbage(path: Path, good: bytes) -> None:
    path.write_bytes(b"this is no image, whatever its name says")


def make_cut(path: Path, good: bytes) -> None:
    path.write_bytes(good[: len(good) // 2])


def make_empty(path: Path, good: bytes) -> None:
    path.touch()


def make_missing(path: Path, good: bytes) -> None:
    pass


def make_folder(path: Path, good: bytes) -> None:
    path.mkdir()


def make_pipe(path: Path, good: bytes) -> None:
    os.mkfifo(path)


def make_loop(path: Path, good: bytes) -> None:
    path.symlink_to(path)


def make_sparse(path: Path, good: bytes) -> None:
    with path.open("wb") as file:
        file.truncate(1 << 43)


READERS = (make_missing, make_folder, make_pipe, make_loop, make_sparse)
TEXTS = {
    make_garbage: r"expected an image that Pillow can read, got 40 bytes that begin with b'this is '",
    make_cut: r"the JPEG data end before the image is complete|truncated",
    make_empty: r"expected an image that Pillow can read, got 0 bytes",
    make_missing: r"cannot read '.*bad.jpg': No such file or directory",
    make_folder: r"cannot read '.*bad.jpg': Is a directory",
    make_pipe: r"expected a regular file, got the pipe, socket or device '.*bad.jpg'",
    make_loop: r"cannot read '.*bad.jpg': Too many levels of symbolic links",
    make_sparse: r"expected a file of at most 2\*\*40 bytes, got 8796093022208 in '.*bad.jpg'",
}


@pytest.mark.parametrize("make", TEXTS, ids=lambda make: make.__name__[5:])
def test_a_bad_file_in_the_middle(files: list[str], tmp_path: Path, make: Callable[[Path, bytes], None]) -> None:
    bad = tmp_path / "bad.jpg"
    make(bad, Path(files[0]).read_bytes())
    with reading([*files[:5], str(bad), *files[5:]]) as pipe:
        assert labels_of(pipe.run()) == [0, 1]
        assert labels_of(pipe.run()) == [2, 3]
        with pytest.raises(DataError) as raised:
            pipe.run()
        assert labels_of(pipe.run()) == [6, 7], "the batches after it are fine"
        assert labels_of(pipe.run()) == [8, 9]
        error = raised.value
        assert (error.row, error.sample) == (1, 5)
        found = fields(error)
        assert re.search(TEXTS[make], found["text"]), found["text"]
        assert found["operator"] == ("readers.file" if make in READERS else "decoders.image")
        assert (found["sample"], found["path"]) == ("5", str(bad))
        assert int(found["line"]) == line_of("line of the readers" if make in READERS else "line of the decoders")
        for _ in range(5):  # and again in every later epoch
            with pytest.raises(DataError) as again:
                while True:
                    pipe.run()
            assert str(again.value) == str(error)


def test_a_file_that_vanishes(files: list[str], tmp_path: Path) -> None:
    copies = [tmp_path / f"{n}.jpg" for n in range(6)]
    for copy, file in zip(copies, files, strict=False):
        copy.write_bytes(Path(file).read_bytes())
    with reading([str(c) for c in copies], prefetch_queue_depth=1).build() as pipe:
        copies[4].unlink()
        pipe.run()
        pipe.run()
        with pytest.raises(DataError, match="No such file or directory"):
            pipe.run()
        copies[4].write_bytes(Path(files[4]).read_bytes())
        for n in (0, 2, 4):
            assert labels_of(pipe.run()) == [n, n + 1]


def test_a_wrong_sampler(files: list[str], monkeypatch: pytest.MonkeyPatch) -> None:
    for wrong in (9, -1, 1 << 40):
        monkeypatch.setattr("stoker.readers.order.PermutedOrder.indices", lambda self, *_, n=wrong: np.asarray([n, 0]))
        with reading(files) as pipe, pytest.raises(DataError, match=f"a sample below 9 from the sampler, got {wrong}"):
            pipe.run()


@pytest.mark.skipif(os.geteuid() == 0, reason="root may read everything")
def test_a_file_that_may_not_be_read(files: list[str], tmp_path: Path) -> None:
    secret = tmp_path / "secret.jpg"
    secret.write_bytes(Path(files[0]).read_bytes())
    secret.chmod(0)
    with reading([str(secret)]) as pipe, pytest.raises(DataError, match="Permission denied"):
        pipe.run()


def test_the_first_bad_row_is_reported(files: list[str], tmp_path: Path) -> None:
    mixed = [*files[:3], *(str(tmp_path / f"none{n}.jpg") for n in range(4)), *files[3:]]
    for threads in (1, 4):
        with reading(mixed, batch_size=13, num_threads=threads) as pipe:
            for _ in range(4):
                with pytest.raises(DataError, match=r"none0.jpg': No such file") as raised:
                    pipe.run()
                assert raised.value.row == 3


def test_a_check_of_an_operator(files: list[str]) -> None:
    @pipeline_def(batch_size=2, num_threads=2)
    def cropping() -> Any:
        jpegs, labels = fn.readers.file(files=files)
        return fn.crop(fn.decoders.image(jpegs), crop=(100_000, 8)), labels

    with (
        cropping() as pipe,
        pytest.raises(DataError, match=r"`crop`: expected .*, got .* — sample 0 \(.*\), made at .*test_errors.py:\d+"),
    ):
        pipe.run()


def test_sizes_that_no_memory_holds(files: list[str]) -> None:
    @pipeline_def(batch_size=2, num_threads=2)
    def growing(size: Any) -> Any:
        jpegs, labels = fn.readers.file(files=files)
        return fn.resize(fn.decoders.image(jpegs), size=size), labels

    for size in ((1 << 30, 1 << 30), (1 << 19, 1 << 19)):
        with growing(size) as pipe:
            for _ in range(2):
                with pytest.raises((DataError, ArgumentError)):
                    pipe.run()


# ---- user code ----


def failing(x: Any) -> Any:
    if x[0] == 3:
        raise KeyError("no such thing")
    return x


@pipeline_def(batch_size=2, num_threads=2)
def calling(function: Any, count: int = 8, **options: Any) -> Any:
    numbers = [np.asarray([[n], [n + 1]], np.int32) for n in range(0, count, 2)]
    source = fn.external_source(source=numbers, cycle="quiet")
    return fn.python_function(source, function=function, **options), source  # line of the functions


def test_an_exception_in_the_users_function() -> None:
    for options in ({}, {"batch_processing": False}):
        with calling(failing, **options) as pipe:
            assert labels_of(pipe.run()) == [0, 1]
            with pytest.raises(DataError) as raised:
                pipe.run()
            assert labels_of(pipe.run()) == [4, 5]
        error = raised.value
        found = fields(error)
        assert found["text"] == "KeyError: 'no such thing'"
        assert (found["operator"], found["row"]) == ("python_function", "1")
        assert int(found["line"]) == line_of("line of the functions")
        assert isinstance(error.__cause__, KeyError)
        assert error.__cause__.__traceback__ is not None
        assert inspect.getinnerframes(error.__cause__.__traceback__)[-1].function == "failing"


@pytest.mark.parametrize("error", [SystemExit(3), KeyboardInterrupt(), GeneratorExit()], ids=repr)
def test_base_exceptions_fail_their_batch_too(error: BaseException) -> None:
    def function(x: Any) -> Any:
        if x[0] == 3:
            raise error
        return x

    with calling(function) as pipe:
        assert labels_of(pipe.run()) == [0, 1]
        with pytest.raises(DataError, match=type(error).__name__) as raised:
            pipe.run()
        assert raised.value.__cause__ is error
        assert labels_of(pipe.run()) == [4, 5]


@pytest.mark.parametrize(
    ("result", "text"),
    [
        (np.zeros(1, np.float32), "expected int32 with 1 axes as for the first row, got float32 with 1"),
        (np.zeros((1, 2), np.int32), "expected int32 with 1 axes as for the first row, got int32 with 2"),
        (object(), "object"),
        (None, "None|object"),
    ],
    ids=["type", "axes", "object", "none"],
)
def test_results_that_do_not_fit(result: Any, text: str) -> None:
    def function(x: Any) -> Any:
        return result if x[0] == 3 else x

    with calling(function) as pipe:
        pipe.run()
        with pytest.raises(DataError, match=text):
            pipe.run()
        assert labels_of(pipe.run()) == [4, 5]


def test_a_function_that_never_succeeds() -> None:
    def function(x: Any) -> Any:
        raise ZeroDivisionError("never")

    with calling(function) as pipe:
        for _ in range(3):
            with pytest.raises(
                DataError, match=r"ZeroDivisionError: never.*at least one row of it must succeed"
            ) as raised:
                pipe.run()
        assert isinstance(raised.value.__cause__, ZeroDivisionError)


def test_the_arguments_of_a_function_are_copies() -> None:
    arrays: list[Any] = []

    def function(x: Any) -> Any:
        arrays.append(x)
        x += 100
        return x

    with calling(function) as pipe:
        for n in range(0, 24, 2):
            out, source = pipe.run()
            assert [int(x[0]) for x in source] == [n % 8, n % 8 + 1], "other consumers get the original"
            assert [int(x[0]) for x in out] == [n % 8 + 100, n % 8 + 101]
    assert [int(x[0]) for x in arrays[:24]] == [n % 8 + 100 for n in range(24)], "it stays valid after the call"


def test_an_exception_in_a_source() -> None:
    def source(n: int) -> Any:
        if n == 2:
            raise LookupError("the disk is gone")
        return np.asarray([n], np.int32)

    @pipeline_def(batch_size=1, num_threads=1)
    def pulling() -> Any:
        # Two sources: after the failure, their rows must match again.
        return fn.external_source(source=lambda n: np.asarray([n], np.int32)), fn.external_source(source=source)

    with pulling() as pipe:
        rows = []
        for _ in range(6):
            try:
                a, b = pipe.run()
                rows.append((int(a[0]), int(b[0])))
            except LookupError as error:
                assert str(error) == "the disk is gone"
                rows.append((-1, -1))
    assert [a for a, _ in rows] == [b for _, b in rows]
    assert rows[:3] == [(0, 0), (1, 1), (-1, -1)]


def test_a_source_must_not_run_its_own_pipeline() -> None:
    pipes: list[Pipeline] = []

    def source(n: int) -> Any:
        if n == 1:
            pipes[0].run()
        return np.asarray([n], np.int32)

    @pipeline_def(batch_size=1, num_threads=1)
    def asking() -> Any:
        return fn.external_source(source=source)

    pipes.append(asking())
    with pipes[0] as pipe:
        pipe.run()
        with pytest.raises(StateError, match="own source cannot request batches from it, or change its position"):
            pipe.run()


# ---- calls at the wrong time ----


def test_a_closed_pipeline(files: list[str]) -> None:
    for started in (False, True):
        pipe = reading(files).build()
        if started:
            pipe.run()
        state = pipe.get_state()
        pipe.close()
        for call in (pipe.run, pipe.next, pipe.reset, lambda pipe=pipe, state=state: pipe.set_state(state)):
            with pytest.raises(StateError, match="the pipeline is closed"):
                call()
        assert pipe.get_state() == state
        assert pipe.epoch_size() == {"__readers.file_0": 9}


def test_the_tree_of_errors() -> None:
    assert issubclass(ArgumentError, ValueError)
    assert issubclass(DataError, RuntimeError)
    assert issubclass(StateError, RuntimeError)
    for error in (ArgumentError, DataError, StateError, UnsupportedError, stoker.GraphError):
        assert issubclass(error, StokerError)
