# SPDX-License-Identifier: Apache-2.0
"""Failing sources in worker processes: exceptions, dead processes, bad rows."""

from __future__ import annotations

import ctypes
import io
import os
import signal
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from PIL import Image

from stoker import DataError, Pipeline, StateError, UnsupportedError, fn, types
from tests.run.parallel_sources import ROWS, pipeline, row
from tests.sources import read_batches


class Unpicklable(Exception):
    def __init__(self) -> None:
        super().__init__("mine")
        self.lock = open(os.devnull)  # noqa: SIM115

    def __reduce__(self) -> Any:
        raise TypeError("cannot be pickled")


def raising(info: types.SampleInfo) -> Any:
    if info.idx_in_epoch == 5:
        raise KeyError("lost")
    if info.idx_in_epoch == 9:
        raise Unpicklable
    if info.idx_in_epoch == 13:
        sys.exit("stop")
    if info.idx_in_epoch == 17:
        return "text"
    return np.int64(info.idx_in_epoch)


def only_in(process: int) -> Exception:
    if os.getpid() != process:
        raise RuntimeError("another process")
    return Elsewhere("bad row")


class Elsewhere(Exception):
    """Exception that cannot be reconstructed outside the process that raised it."""

    def __reduce__(self) -> Any:
        return only_in, (os.getpid(),)


def raising_elsewhere(info: types.SampleInfo) -> Any:
    raise Elsewhere("bad row")


def test_an_exception_that_cannot_be_unpickled_keeps_its_name_and_text() -> None:
    pipe = pipeline(1, source=raising_elsewhere, batch=False)
    with pipe, pytest.raises(DataError, match="Elsewhere: bad row") as caught:
        pipe.run()
    chain, error = [], caught.value.__cause__
    while error is not None:
        chain.append(str(error))
        error = error.__cause__
    assert any("in raising_elsewhere" in text for text in chain), chain


def test_an_exception_of_a_source_is_raised_at_its_batch_with_its_traceback() -> None:
    with pipeline(2, batch_size=2, source=raising, batch=False) as pipe:
        results: list[Any] = []
        for _ in range(10):
            try:
                results += read_batches(pipe, 1)[0]
            except (KeyError, DataError) as error:
                results.append(error)
    numbers = [x for x in results if isinstance(x, list)]
    assert numbers == [[0, 1], [2, 3], [6, 7], [10, 11], [14, 15], [18, 19]]
    lost, mine, left, text = (x for x in results if not isinstance(x, list))
    assert isinstance(lost, KeyError) and 'raise KeyError("lost")' in str(lost.__cause__)
    assert "in the source of `external_source`, made at" in lost.__notes__[0]
    assert isinstance(mine, DataError) and "Unpicklable: mine" in str(mine)
    assert "SystemExit: stop" in str(left) and 'sys.exit("stop")' in str(left.__cause__)
    assert "expected an array of numbers, a number or bytes, got 'str' in row 1" in str(text)


def crash() -> None:
    sys.stderr.flush()
    ctypes.string_at(0)


ENDS: dict[str, tuple[Any, str, str]] = {
    "exit": (lambda: os._exit(3), "ended with exit code 3", ""),
    "kill": (lambda: os.kill(os.getpid(), signal.SIGKILL), r"was killed by SIGKILL \(was memory short\?\)", ""),
    "crash": (crash, "was killed by SIGSEGV", "in crash"),
}


@pytest.mark.parametrize("how", ENDS)
def test_a_process_that_dies_is_reported_and_replaced(how: str) -> None:
    end, text, trace = ENDS[how]

    def source(info: types.SampleInfo) -> Any:
        if info.idx_in_epoch == 5:
            end()
        return np.int64(info.idx_in_epoch)

    with pipeline(2, batch_size=2, source=source, batch=False) as pipe:
        assert read_batches(pipe, 2) == [[[0, 1]], [[2, 3]]]
        with pytest.raises(DataError, match=f"process [0-9]+\\) {text} while the source ran in it — made at") as error:
            pipe.run()
        assert trace in str(error.value.__cause__)
        if trace:
            assert "Segmentation fault" in str(error.value.__cause__)
        assert read_batches(pipe, 3) == [[[6, 7]], [[8, 9]], [[10, 11]]]


def test_rows_that_a_process_finished_before_it_died_are_delivered() -> None:
    def source(info: types.SampleInfo) -> Any:
        if info.idx_in_epoch == 0:
            time.sleep(0.5)  # by then the other process has computed row 1 and died of row 3
        if info.idx_in_epoch == 3:
            os._exit(1)
        return np.full(1000, info.idx_in_epoch)

    with pipeline(2, batch_size=2, source=source, batch=False) as pipe:
        assert [x[0] for x in read_batches(pipe, 1)[0][0]] == [0, 1]
        with pytest.raises(DataError, match="ended with exit code 1"):
            pipe.run()
        assert [x[0] for x in read_batches(pipe, 1)[0][0]] == [4, 5]


def test_an_iterable_whose_process_died_restarts_after_reset() -> None:
    def dying() -> Iterator[Any]:
        yield from (1, 2, 3)
        os._exit(1)

    with pipeline(1, batch_size=1, source=dying, batch=False) as pipe:
        assert read_batches(pipe, 3) == [[[1]], [[2]], [[3]]]
        with pytest.raises(DataError, match="ended with exit code 1"):
            pipe.run()
        with pytest.raises(StateError, match="its place is lost"):
            pipe.run()
        pipe.reset()
        assert read_batches(pipe, 3) == [[[1]], [[2]], [[3]]]

    class Numbers:
        def __len__(self) -> int:
            return 8

        def __getitem__(self, i: int) -> Any:
            return i if i != 3 else os._exit(1)

    with pipeline(1, batch_size=1, source=Numbers(), batch=False) as pipe:
        read_batches(pipe, 3)
        with pytest.raises(DataError, match="ended with exit code 1"):
            pipe.run()
        assert read_batches(pipe) == [[[4]], [[5]], [[6]], [[7]]]  # a sequence continues at its position


# ---- bad rows with worker processes ----


def encoded(info: types.SampleInfo) -> Any:
    """Return the bytes of a file; every fifth is no image."""
    if info.idx_in_epoch >= ROWS:
        raise StopIteration
    out = io.BytesIO()
    Image.new("RGB", (5, 4), (info.idx_in_epoch, 0, 0)).save(out, "PNG")
    data = b"this is no image" if info.idx_in_epoch % 5 == 3 else out.getvalue()
    return np.frombuffer(data, np.uint8)


def decoding(parallel: bool, on_error: str, **settings: Any) -> Pipeline:
    options = {"num_threads": 2, "seed": 1, "py_num_workers": 2, "error_limit": 1.0, **settings}
    pipe = Pipeline(batch_size=4, on_error=on_error, **options)
    with pipe:
        data = fn.external_source(encoded, batch=False, parallel=parallel)
    pipe.set_outputs(fn.decoders.image(data))
    return pipe


def colours(pipe: Pipeline) -> list[list[int]]:
    found = []
    while (delivered := pipe.next()) is not None:
        found.append([int(np.asarray(x)[0, 0, 0]) for x in delivered.outputs[0]])
    return found


@pytest.mark.parametrize("settings", [{}, {"num_threads": 1, "prefetch_queue_depth": 1}, {"exec_async": False}])
def test_bad_rows_are_skipped_as_without_processes(settings: dict[str, Any]) -> None:
    with decoding(False, "skip") as pipe:
        want = colours(pipe)
    assert [x for batch in want for x in batch] == [n for n in range(ROWS) if n % 5 != 3]
    with decoding(True, "skip", **settings) as pipe:
        assert colours(pipe) == want
        assert [e.reason[:30] for e in pipe.errors] == ["expected an image that Pillow "] * 4
        assert {(e.index, e.path, e.offset, e.action) for e in pipe.errors} == {(None, "", None, "skipped")}


def test_bad_rows_of_a_source_cannot_be_replaced() -> None:
    with pytest.raises(UnsupportedError, match=r'expected "skip" or "raise" for a source .* got "replace" with data'):
        decoding(True, "replace").build()


def test_a_reader_beside_processes_cannot_be_replaced_either(tmp_path: Path) -> None:
    """A substitute would need the other source's row of another time."""
    (tmp_path / "a.jpg").write_bytes(b"no image")
    pipe = Pipeline(batch_size=1, num_threads=1, on_error="replace", py_num_workers=1)
    with pipe:
        data, _ = fn.readers.file(files=[str(tmp_path / "a.jpg")])
        pipe.set_outputs(fn.decoders.image(data), fn.external_source(row, batch=False, parallel=True))
    with pytest.raises(UnsupportedError, match='got "replace" with data that the caller gives'):
        pipe.build()
