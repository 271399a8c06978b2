# SPDX-License-Identifier: Apache-2.0
"""Errors of the system are no bad samples, and leaving rows out has a limit."""

from __future__ import annotations

import errno
import os
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from stoker import DataError, Pipeline, fn, pipeline_def, types
from stoker.contract.errors import is_system_failure
from tests.idle_clock import HANG_S
from tests.run.pipelines import files_of

_OF_SYSTEM = (
    errno.EMFILE, errno.ENFILE, errno.ENOMEM, errno.ENOSPC, errno.ENODEV, errno.ENOTCONN, errno.ETIMEDOUT, errno.EDQUOT,
)  # fmt: skip


@pipeline_def(batch_size=4, num_threads=1, seed=1)
def computed(function: Any, count: int, files: list[str]) -> Any:
    _, labels = fn.readers.file(files=files[:1] * count, labels=list(range(count)))
    return fn.python_function(labels, function=function, output_dtypes=types.INT32, output_ndims=1)


def skipping(function: Any, count: int, files: list[str], **settings: Any) -> Pipeline:
    return computed(function, count, files, on_error="skip", **settings)


@pytest.fixture
def files(jpegs: Path) -> list[str]:
    return files_of(jpegs)


def delivered(pipe: Pipeline) -> list[int]:
    labels: list[int] = []
    with pipe:
        while (batch := pipe.next()) is not None:
            labels += [int(np.asarray(x).reshape(-1)[0]) for x in batch.outputs[0]]
    return labels


@pytest.mark.parametrize("code", _OF_SYSTEM, ids=errno.errorcode.get)
def test_system_errors_are_recognized(code: int) -> None:
    assert is_system_failure(OSError(code, os.strerror(code)))
    assert not is_system_failure(OSError(errno.ENOENT, "")) and not is_system_failure(OSError(errno.EACCES, ""))


@pytest.mark.parametrize("error", [MemoryError(), OSError(errno.ENOSPC, "no room"), OSError(errno.ENOTCONN, "gone")])
@pytest.mark.parametrize("policy", ["skip", "replace"])
def test_an_error_of_the_system_fails_the_batch(error: Exception, policy: str, files: list[str]) -> None:
    def failing(x: Any) -> Any:
        if int(x[0]) == 5:
            raise error
        return x

    with computed(failing, 40, files, on_error=policy, error_limit=1) as pipe:
        pipe.run()
        with pytest.raises(DataError) as raised:
            pipe.run()
        assert raised.value.__cause__ is error and not pipe.errors
        assert len(pipe.run()[0]) == 4


def bad_below(count: int) -> Any:
    def function(x: Any) -> Any:
        if int(x[0]) < count:
            raise ValueError("bad")
        return x

    return function


@pytest.mark.parametrize(("count", "tolerated"), [(1, 1), (8, 4), (40, 16), (200, 20)])
def test_skipping_rows_has_a_limit(count: int, tolerated: int, files: list[str]) -> None:
    assert delivered(skipping(bad_below(tolerated), count, files)) == list(range(tolerated, count))
    with pytest.raises(DataError, match=r"`on_error`: expected at most .* of the rows to fail"):
        delivered(skipping(bad_below(tolerated + 1), count + (count == 1), files))


def test_the_limit_can_be_chosen(files: list[str]) -> None:
    assert delivered(skipping(bad_below(40), 40, files, error_limit=1)) == []
    with pytest.raises(DataError, match="of the rows to fail"):
        delivered(skipping(bad_below(1), 40, files, error_limit=0))


def test_a_data_set_that_may_not_be_read_is_an_error(tmp_path: Path, files: list[str]) -> None:
    missing = [str(tmp_path / f"{n}.jpg") for n in range(30)]

    @pipeline_def(batch_size=4, num_threads=1, seed=1, on_error="skip")
    def reading() -> Any:
        return fn.decoders.image(fn.readers.file(files=missing)[0])

    with reading() as pipe, pytest.raises(DataError, match="of the rows to fail"):
        while pipe.next() is not None:
            pass


# ---- input/output errors: of a file, or of the disk ----


def unreadable(numbers: set[int]) -> Any:
    def function(x: Any) -> Any:
        if int(x[0]) in numbers:
            raise OSError(errno.EIO, os.strerror(errno.EIO))
        return x

    return function


def test_one_input_output_error_is_a_bad_sample(files: list[str]) -> None:
    """Two in a row as well, also at the end of one batch and the start of the next."""
    bad = {1, 3, 4, 7, 8, 20, 39}
    assert delivered(skipping(unreadable(bad), 40, files)) == [n for n in range(40) if n not in bad]
    with computed(unreadable({5}), 40, files, on_error="replace", error_limit=1) as pipe:
        for _ in range(10):
            pipe.run()
        assert {e.index for e in pipe.errors} == {5}
    with computed(unreadable({5}), 40, files) as pipe, pytest.raises(DataError, match="Input/output error"):
        for _ in range(10):
            pipe.run()


@pytest.mark.parametrize("policy", ["skip", "replace"])
@pytest.mark.parametrize("first", [0, 2, 5, 30])
def test_several_in_a_row_are_the_disk(first: int, policy: str, files: list[str]) -> None:
    pipe = computed(unreadable(set(range(first, first + 3))), 40, files, on_error=policy, error_limit=1)
    text = "got input/output errors for 3 samples in a row, the last of them: .*Input/output error"
    with pipe, pytest.raises(DataError, match=text) as raised:
        for _ in range(10):
            pipe.run()
    assert raised.value.sample == first + 2


PROGRAM = """
import errno, os, sys
from stoker import DataError, fn, pipeline_def
from stoker.contract import errors

good, root = sys.argv[1], sys.argv[2]

@pipeline_def(batch_size=4, num_threads=2, seed=1, error_limit=1, device_id=None)
def reading(files):
    data, labels = fn.readers.file(files=files, labels=list(range(len(files))))
    return data, labels

def failing(code, name=""):
    return f"{root}/errno-{code}-{name}.jpg"

for policy in ("skip", "replace"):
    for code in sorted(errors._OF_SYSTEM):
        with reading([good, failing(code), good, good], on_error=policy) as pipe:
            try:
                pipe.run()
            except DataError as error:
                assert os.strerror(code) in str(error), error
            else:
                raise AssertionError(f"{errno.errorcode[code]}: no error of the system")
            assert not pipe.errors
    for code in (errno.EIO, errno.EACCES, errno.ENOENT):
        with reading([good, failing(code), good, failing(code, "b")], on_error=policy) as pipe:
            assert len(pipe.run()[0]) == (2 if policy == "skip" else 4)
            assert len(pipe.errors) == 2
with reading([good, *(failing(errno.EIO, n) for n in range(3))], on_error="skip") as pipe:
    try:
        pipe.run()
    except DataError as error:
        assert "for 3 samples in a row" in str(error), error
    else:
        raise AssertionError("no error of the disk")
"""


def test_native_reads_follow_the_same_list(tmp_path: Path, files: list[str]) -> None:
    compiler = os.environ.get("CC") or shutil.which("cc") or shutil.which("gcc")
    if compiler is None:
        pytest.skip("no C compiler, which builds the library that the test preloads")
    library, source = tmp_path / "failing.so", Path(__file__).with_name("failing_opens.c")
    subprocess.run(
        [compiler, "-O1", "-shared", "-fPIC", "-o", str(library), str(source), "-ldl"], check=True, timeout=HANG_S
    )
    run_program(PROGRAM, files[0], str(tmp_path), LD_PRELOAD=str(library))


def run_program(program: str, *arguments: str, **environment: str) -> None:
    command = [sys.executable, "-c", program, *arguments]
    done = subprocess.run(
        command, env={**os.environ, **environment}, capture_output=True, text=True, check=False, timeout=HANG_S
    )
    assert done.returncode == 0, done.stdout + done.stderr[-4000:]


# ---- no memory in native code ----

NO_MEMORY = """
import resource, sys
from stoker import ResourceError, fn, pipeline_def, types

GIB = 1 << 30

@pipeline_def(batch_size=4, num_threads=2, seed=1, error_limit=1, device_id=None, max_batch_bytes=0)
def huge(where):
    data, labels = fn.readers.file(files=[sys.argv[1]] * 8, labels=list(range(8)))
    side = 100 + fn.cast(labels == 5, dtype=types.INT32) * 60_000
    image = fn.resize(fn.zeros(shape=(8, 8, 3), dtype=types.UINT8, layout="HWC"), size=fn.cat(side, side))
    return (fn.reductions.max(image), labels) if where == "a row" else (image, labels)

with huge(sys.argv[2], on_error=sys.argv[3], exec_async=sys.argv[4] == "threads") as pipe:
    pipe.build()
    pages = int(open("/proc/self/statm").read().split()[0])
    resource.setrlimit(resource.RLIMIT_AS, (pages * resource.getpagesize() + 2 * GIB,) * 2)
    assert len(pipe.run()[0]) == 4
    try:
        pipe.run()
    except ResourceError as error:
        assert "there is not enough memory — a batch of 4" in str(error), error
    else:
        raise AssertionError(f"no error of the system: {pipe.errors}")
    assert not pipe.errors
    assert len(pipe.run()[0]) == 4
"""


@pytest.mark.parametrize("way", ["threads", "here"])
@pytest.mark.parametrize("policy", ["raise", "skip", "replace"])
@pytest.mark.parametrize("where", ["a row", "an output"])
def test_no_memory_in_native_code_is_an_error_of_the_system(
    where: str, policy: str, way: str, files: list[str]
) -> None:
    """11 GB for one row of the second batch, of 2 GB that are left."""
    run_program(NO_MEMORY, files[0], where, policy, way)
