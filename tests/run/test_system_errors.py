# SPDX-License-Identifier: Apache-2.0
"""Errors of the system are no bad samples, and leaving rows out has a limit."""

from __future__ import annotations

import errno
import os
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from stoker import DataError, Pipeline, fn, pipeline_def, types
from stoker.contract.errors import is_system_failure
from tests.run.pipelines import files_of

_OF_SYSTEM = (
    errno.EMFILE, errno.ENFILE, errno.ENOMEM, errno.EIO, errno.ENOSPC, errno.ENODEV, errno.ENOTCONN, errno.ETIMEDOUT,
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
