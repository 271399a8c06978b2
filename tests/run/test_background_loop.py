# SPDX-License-Identifier: Apache-2.0
"""Loops with a thread of their own deliver what loops without one do, with the same positions and errors."""

from __future__ import annotations

import gc
import threading
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from idle_clock import HANG_S
from run.pipelines import counting_rows, files_of, training

from stoker import ArgumentError, DataError, StateError, UnsupportedError, fn, pipeline_def, types
from stoker.numpy import Loader

ROWS = 17


@pytest.fixture(scope="module")
def files(jpegs: Path) -> list[str]:
    return files_of(jpegs)[:ROWS]


@pytest.fixture
def spoilt(files: list[str], tmp_path: Path) -> list[str]:
    """Return 17 files, of which the seventh is damaged."""
    bad = tmp_path / "bad.jpg"
    bad.write_bytes(b"no image")
    return [*files[:7], str(bad), *files[8:]]


def content(batch: Any) -> list[bytes]:
    return [np.ascontiguousarray(x).tobytes() for x in batch]


def steps(loader: Loader, epochs: int) -> list[tuple[list[bytes], dict[str, Any]]]:
    """Return all batches of some epochs, with the state after each."""
    return [(content(batch), loader.state_dict()) for _ in range(epochs) for batch in loader]


def loop_threads() -> list[str]:
    return [t.name for t in threading.enumerate() if t.name == "stoker loop"]


@pytest.mark.parametrize("policy", ["even", "partial", "drop", "fill"])
@pytest.mark.parametrize("size", [None, 2, 0])
def test_batches_and_states_are_equal(files: list[str], policy: str, size: int | None) -> None:
    options: dict[str, Any] = {"last_batch_policy": policy, "size": size}
    with training(files) as plain, training(files) as pipe:
        loader = Loader(pipe, background=True, **options)
        expected = steps(Loader(plain, **options), 3)
        assert steps(loader, 3) == expected and len(expected) == 3 * len(loader)
        assert pipe.report().rows == plain.report().rows and pipe.report().batches == plain.report().batches


def test_states_of_stateful_operators_follow_the_delivery(files: list[str]) -> None:
    with counting_rows(files) as plain, counting_rows(files) as pipe, counting_rows(files) as other:
        expected = steps(Loader(plain), 2)
        loader = Loader(pipe, background=True)
        assert steps(loader, 1) == expected[:4]
        loop = iter(loader)
        assert (content(next(loop)), loader.state_dict()) == expected[4]
        rest = Loader(other, background=True)
        rest.load_state_dict(loader.state_dict())
        assert steps(rest, 1) == expected[5:]


def test_a_loop_that_is_left_ends_its_thread_and_loses_no_batch(files: list[str]) -> None:
    with training(files) as plain, training(files) as pipe:
        expected = steps(Loader(plain), 2)
        loader = Loader(pipe, background=True)
        for batch in loader:
            assert content(batch) == expected[0][0]
            assert loop_threads()
            break
        assert loader.state_dict() == expected[0][1]
        delivered = pipe.next()  # the batch after the delivered one, which the thread has taken too
        assert delivered is not None and content(delivered.outputs)[0] == expected[1][0][0]
        assert [content(batch) for batch in loader] == [batch for batch, _ in expected[4:]]
    del loader
    gc.collect()


def test_an_error_comes_at_its_batch(spoilt: list[str]) -> None:
    found: list[list[Any]] = []
    for background in (False, True):
        with training(spoilt, shuffle=False) as pipe:
            loop, got = iter(Loader(pipe, background=background)), []
            while True:
                try:
                    got.append(next(loop)[1].tolist())
                except DataError as error:
                    got.append(str(error).split("bad.jpg")[-1])
                except StopIteration:
                    break
            found.append(got)
    assert found[0] == found[1] and len(found[0]) == 4 and isinstance(found[0][1], str)


def test_an_error_of_the_arrays_comes_at_its_batch(files: list[str], monkeypatch: pytest.MonkeyPatch) -> None:
    with training(files, shuffle=False) as pipe:
        loader = Loader(pipe, background=True)
        arrays, calls = loader._arrays, []

        def second_fails(delivered: Any, plan: Any) -> Any:
            calls.append(delivered)
            if len(calls) == 2:
                raise MemoryError("none for the second batch")
            return arrays(delivered, plan)

        monkeypatch.setattr(loader, "_arrays", second_fails)
        loop = iter(loader)
        assert next(loop)[1].tolist() == [0, 1, 2, 3, 4]
        with pytest.raises(MemoryError, match="second"):
            next(loop)
        assert [labels.tolist() for _, labels in loop] == [[10, 11, 12, 13, 14], [15, 16]]


def test_positions_that_others_change_end_the_loop(files: list[str]) -> None:
    with training(files) as pipe:
        loader = Loader(pipe, background=True)
        loop = iter(loader)
        first = content(next(loop))
        pipe.start_epoch(0)
        with pytest.raises(StateError, match="position of the pipeline has been changed"):
            next(loop)
        again = iter(loader)
        next(again)
        with pytest.raises(StateError, match="another loop"):
            next(loop)
        loader.set_epoch(0)
        assert content(next(iter(loader))) == first


def test_a_closed_pipeline_is_an_error(files: list[str]) -> None:
    loader = Loader(training(files), background=True)
    loop = iter(loader)
    next(loop)
    loader.close()
    for _ in range(3):
        with pytest.raises(StateError, match="closed"):
            next(loop)


def test_a_loop_that_goes_on_while_its_loader_closes_ends(files: list[str], monkeypatch: pytest.MonkeyPatch) -> None:
    loader = Loader(training(files), background=True)
    loop = iter(loader)
    next(loop)
    delivered, close = [], loader.pipeline.close

    def closing() -> None:
        delivered.extend(content(next(loop)) for _ in range(2))
        close()

    monkeypatch.setattr(loader.pipeline, "close", closing)
    thread = threading.Thread(target=loader.close, daemon=True)
    thread.start()
    thread.join(HANG_S / 4)
    assert not thread.is_alive(), "the loop waits for a thread that has ended"
    assert len(delivered) == 2
    with pytest.raises(StateError, match="closed"):
        next(loop)


def test_several_threads_share_a_loop(files: list[str]) -> None:
    with training(files) as plain, training(files) as pipe:
        expected = sorted(content(batch) for batch in Loader(plain))
        loop, got = iter(Loader(pipe, background=True)), list[Any]()
        threads = [threading.Thread(target=lambda: got.extend(map(content, loop))) for _ in range(4)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join(60)
        assert sorted(got) == expected


def test_what_no_other_thread_may_do_is_refused(files: list[str]) -> None:
    @pipeline_def(batch_size=2, num_threads=1)
    def fed() -> Any:
        return fn.external_source(lambda: [np.zeros(3, np.float32)] * 2, dtype=types.FLOAT)

    with fed() as pipe, pytest.raises(UnsupportedError, match="source of the caller's data"):
        Loader(pipe, background=True)
    with training(files) as pipe, pytest.raises(ArgumentError, match="`background` True, False or None"):
        Loader(pipe, background=1)  # type: ignore[arg-type]


def test_the_consumers_waits_are_in_the_report(files: list[str]) -> None:
    with training(files) as pipe:
        for _ in Loader(pipe, background=True):
            pass
        report = pipe.report()
        assert report.rows == ROWS and 0 < report.waited <= 1
