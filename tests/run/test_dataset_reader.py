# SPDX-License-Identifier: Apache-2.0
"""``readers.dataset``: samples of map-style data sets from worker processes."""

from __future__ import annotations

import os
import time
from typing import Any

import numpy as np
import pytest
from idle_clock import IdleClock
from PIL import Image

from stoker import ArgumentError, DataError, fn, samplers
from tests.containers.data import epoch, pipeline, rows

COUNT = 20


class Squares:
    """Data set with ragged arrays, numbers and the process that made them."""

    def __len__(self) -> int:
        return COUNT

    def __getitem__(self, index: int) -> tuple[Any, ...]:
        return np.full((index % 4, 2), index, np.float32), index * index, os.getpid()


class Dicts(Squares):
    def __getitem__(self, index: int) -> dict[str, Any]:  # type: ignore[override]
        image = Image.fromarray(np.full((3, 4 + index % 2, 3), index, np.uint8))
        return {"image": image, "text": f"ü{index}", "bytes": bytes([index] * index), "flag": index % 2 == 0}


class Faulty(Squares):
    def __getitem__(self, index: int) -> Any:
        if index == 3:
            raise KeyError("no such sample")
        if index == 7:
            os._exit(3)
        return np.asarray(index)


class Shaky(Squares):
    def __getitem__(self, index: int) -> Any:
        time.sleep(0.02 if index % 3 == 0 else 0)
        return np.asarray(index)


def squares(source: Any = None, **arguments: Any) -> Any:
    return fn.readers.dataset(source or Squares(), num_outputs=3, **arguments)


@pytest.mark.parametrize("start_method", ["fork", "spawn"])
def test_samples_come_from_processes(start_method: str) -> None:
    settings = {"batch_size": 6, "py_num_workers": 2, "py_start_method": start_method}
    found = rows(squares, **settings)
    assert len(found) == COUNT
    for i, (array, square, process) in enumerate(found):
        assert (array.dtype, array.tolist()) == (np.float32, np.full((i % 4, 2), i).tolist())
        assert (square.dtype, square.shape, int(square)) == (np.int64, (), i * i)
        assert int(process) != os.getpid()


def test_the_order_is_that_of_all_readers() -> None:
    def numbers(**arguments: Any) -> list[int]:
        return [int(r[0]) for r in rows(lambda: fn.readers.dataset(Shaky(), **arguments))]

    def wanted(**arguments: Any) -> list[int]:
        table = [np.asarray([i]) for i in range(COUNT)]
        return [int(r[0][0]) for r in rows(lambda: fn.readers.dataset(table, **arguments))]

    for arguments in ({"random_shuffle": True, "seed": 5}, {"sampler": [4, 4, 0]}, {"num_shards": 3, "shard_id": 2},
                      {"sampler": samplers.Windowed(3, 2)}):  # fmt: skip
        assert numbers(**arguments) == wanted(**arguments)
    assert numbers(num_shards=3, shard_id=2)[:6] == [2, 5, 8, 11, 14, 17]
    assert sorted(numbers(random_shuffle=True)) == list(range(COUNT)) != numbers(random_shuffle=True)


def test_samples_that_are_dicts() -> None:
    columns = ["flag", "image", "text", "bytes"]
    for i, (flag, image, text, content) in enumerate(rows(lambda: fn.readers.dataset(Dicts(), columns=columns))):
        assert (flag.dtype, bool(flag)) == (np.bool_, i % 2 == 0)
        assert image.shape == (3, 4 + i % 2, 3) and (image == i).all()
        assert (text.tobytes().decode(), content.tobytes()) == (f"ü{i}", bytes([i] * i))
    with pytest.raises(DataError, match=r"sample with the key 'label', got .*bytes.*text"):
        rows(lambda: fn.readers.dataset(Dicts(), columns="label"))


def test_states_resume_for_any_number_of_processes() -> None:
    def define() -> Any:
        return fn.readers.dataset(Shaky(), random_shuffle=True)

    with pipeline(define, batch_size=3, py_num_workers=3) as pipe:
        pipe.next()
        state = pipe.get_state()
        rest = epoch(pipe)
    with pipeline(define, batch_size=5, py_num_workers=1) as pipe:
        pipe.set_state(state)
        assert [int(r[0]) for r in epoch(pipe)] == [int(r[0]) for r in rest]


def test_bad_samples_and_dead_processes_are_rows() -> None:
    settings = {"batch_size": 4, "py_num_workers": 2}
    with pytest.raises(DataError, match=r"KeyError.*no such sample"):
        rows(lambda: fn.readers.dataset(Faulty()), **settings)
    with pipeline(lambda: fn.readers.dataset(Faulty(), on_error="skip"), **settings) as pipe:
        assert [int(r[0]) for r in epoch(pipe)] == [i for i in range(COUNT) if i not in (3, 7)]
        assert {bad.index for bad in pipe.errors} == {3, 7}
        assert any("exit code 3" in bad.reason for bad in pipe.errors)


def test_random_numbers_differ_between_processes() -> None:
    class Random(Squares):
        def __getitem__(self, index: int) -> Any:
            time.sleep(0.01)
            return np.random.rand(2)

    found = rows(lambda: fn.readers.dataset(Random()), py_num_workers=4)
    assert len({float(r[0][0]) for r in found}) == COUNT


def test_a_closed_pipeline_ends_its_processes() -> None:
    class Slow(Squares):
        def __getitem__(self, index: int) -> Any:
            time.sleep(30 if index > 8 else 0)
            return np.asarray(index)

    clock = IdleClock()
    with pipeline(lambda: fn.readers.dataset(Slow()), batch_size=4, py_num_workers=2) as pipe:
        pipe.next()
        pipe.next()
        clock.tick()
    assert clock.tick() < 20


def test_sources_that_are_refused() -> None:
    def fault(text: str, *args: Any, **arguments: Any) -> None:
        with pytest.raises(ArgumentError, match=text):
            rows(lambda: fn.readers.dataset(*args, **arguments))

    fault("`__getitem__` and `__len__`.*external_source", iter([1]))
    fault("at least one sample", [])
    fault("num_outputs. >= 1", [1], num_outputs=0)
    fault("one of `num_outputs` and `columns`", [1], num_outputs=2, columns=["a"])
    with pytest.raises(DataError, match="sample of 2 values, got a int"):
        rows(lambda: fn.readers.dataset([1, 2], num_outputs=2))
    with pytest.raises(ArgumentError, match="can be sent to another process"):
        rows(lambda: fn.readers.dataset([lambda: 1]), py_start_method="spawn")
