# SPDX-License-Identifier: Apache-2.0
"""``external_source``: all kinds of sources, their ends and errors, ``feed_input``, and resuming from a state."""

from __future__ import annotations

import functools
import itertools
import threading
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
import numpy.typing as npt
import pytest

from stoker import ArgumentError, DataError, Pipeline, StateError, fn, types
from tests.idle_clock import HANG_S
from tests.sources import read_batches


def pipeline(batch_size: int = 2, depth: int = 2, asynchronous: bool = True, **source: Any) -> Pipeline:
    pipe = Pipeline(batch_size, 2, seed=1, prefetch_queue_depth=depth, exec_async=asynchronous)
    with pipe:
        out = fn.external_source(**source)
    pipe.set_outputs(*(out if isinstance(out, tuple) else (out,)))
    return pipe


def take(pipe: Pipeline, count: int = 100) -> list[Any]:
    """Return the rows of the first output, batch by batch, until the data end."""
    return [outputs[0] for outputs in read_batches(pipe, count)]


def one(x: float) -> npt.NDArray[np.float32]:
    return np.asarray([x], np.float32)


BATCHES = [[one(0), one(1)], [one(2)], [one(3), one(4)]]
WANTED = [[[0.0], [1.0]], [[2.0]], [[3.0], [4.0]]]


# ---- kinds of sources ----


def generate() -> Iterator[Any]:
    yield from BATCHES


class Reiterable:
    def __iter__(self) -> Iterator[Any]:
        return iter(BATCHES)


class Sequence:
    def __len__(self) -> int:
        return 3

    def __getitem__(self, i: int) -> Any:
        return BATCHES[i]


def no_argument() -> Callable[[], Any]:
    items = iter(BATCHES)
    return lambda: next(items)


def by_number(i: int) -> Any:
    if i == len(BATCHES):
        raise StopIteration
    return BATCHES[i]


@pytest.mark.parametrize("depth", [1, 3])
@pytest.mark.parametrize("asynchronous", [True, False])
@pytest.mark.parametrize(
    "source", [list(BATCHES), generate, generate(), Reiterable(), Sequence(), no_argument(), by_number],
    ids=["list", "generator function", "generator", "iterable", "sequence", "callback", "numbered callback"],
)  # fmt: skip
def test_batches_come_in_order_until_the_data_end(source: Any, depth: int, asynchronous: bool) -> None:
    if not callable(source) and hasattr(source, "__next__"):
        source = generate()
    elif getattr(source, "__name__", "") == "<lambda>":
        source = no_argument()
    with pipeline(depth=depth, asynchronous=asynchronous, source=source) as pipe:
        assert take(pipe) == WANTED
        with pytest.raises(StopIteration):
            pipe.run()


def test_a_callback_gets_its_position() -> None:
    infos: list[Any] = []

    def source(info: types.SampleInfo) -> Any:
        infos.append(info)
        if info.idx_in_epoch == 5:
            raise StopIteration
        return np.int64(info.idx_in_epoch)

    with pipeline(source=source, batch=False) as pipe:
        assert take(pipe) == [[0, 1], [2, 3], [4]]  # The last batch is shorter: no sample is lost.
        assert infos[:4] == [types.SampleInfo(0, 0, 0, 0), types.SampleInfo(1, 1, 0, 0), types.SampleInfo(2, 0, 1, 0),
                            types.SampleInfo(3, 1, 1, 0)]  # fmt: skip
        pipe.reset()
        assert take(pipe, 1) == [[0, 1]]
        assert types.SampleInfo(0, 0, 0, 1) in infos

    with pipeline(source=lambda info: [info.iteration, info.epoch_idx], batch_info=True) as pipe:
        assert take(pipe, 2) == [[0, 0], [1, 0]]
    with pipeline(source=lambda i, base=10: [base + i]) as pipe:  # a default is not the batch's number
        assert take(pipe, 2) == [[10], [11]]
    with pipeline(source=lambda base=10: [base]) as pipe:
        assert take(pipe, 2) == [[10], [10]]


class _Numbered:
    """Callbacks with parameters that have defaults."""

    def __call__(self, i: int = 10) -> list[int]:
        return [i]

    def method(self, i: int = 10) -> list[int]:
        return [i]


@pytest.mark.parametrize(
    ("source", "wanted"),
    [
        (lambda i=10: [i], [[0], [1]]),
        (_Numbered(), [[0], [1]]),
        (_Numbered().method, [[0], [1]]),
        (lambda i, base=10: [base + i], [[10], [11]]),
        (lambda i=1, base=10: [base + i], [[11], [11]]),
        (lambda *i: [len(i)], [[0], [0]]),
        (lambda *, i=10: [i], [[10], [10]]),
        (functools.partial(lambda i, base: [base + i], i=1, base=10), [[11], [11]]),
    ],
)
def test_an_only_parameter_with_a_default_receives_the_number_if_asked(source: Any, wanted: Any) -> None:
    with pipeline(source=source, pass_to_default=True) as pipe:
        assert take(pipe, 2) == wanted


def test_other_information_for_a_parameter_with_a_default() -> None:
    with pipeline(source=lambda info=None: [info.iteration], batch_info=True, pass_to_default=True) as pipe:
        assert take(pipe, 2) == [[0], [1]]
    with pipeline(source=lambda info=None: np.int64(info.idx_in_epoch), batch=False, pass_to_default=True) as pipe:
        assert take(pipe, 2) == [[0, 1], [2, 3]]


def test_rows_one_at_a_time() -> None:
    with pipeline(source=[one(i) for i in range(5)], batch=False, batch_size=2) as pipe:
        assert take(pipe) == [[[0.0], [1.0]], [[2.0], [3.0]], [[4.0]]]
    with pipeline(source=[one(i) for i in range(3)], batch=False, cycle="quiet") as pipe:
        assert take(pipe, 3) == [[[0.0], [1.0]], [[2.0], [0.0]], [[1.0], [2.0]]]


def test_several_outputs() -> None:
    pipe = pipeline(source=lambda i: ([one(i)], [b"ab"]), num_outputs=2)
    with pipe:
        a, b = pipe.run()
        assert a[0].tolist() == [0.0]
        assert bytes(b[0]) == b"ab"
    pipe = Pipeline(2, 1, seed=1)
    with pipe:
        (only,) = fn.external_source(lambda i: ([i],), 1)  # by position, as in DALI
        pipe.set_outputs(only)
    with pipe:
        assert take(pipe, 1) == [[0]]


@pytest.mark.parametrize("number", [1.5, 2, True])
def test_a_number_is_not_taken_for_the_bits_of_a_bfloat16(number: Any) -> None:
    text = f"expected a tensor of bfloat16 or its bits as uint16 .* got number {number} in row 0"
    with (
        pipeline(source=lambda i: [number], dtype=types.BFLOAT16, ndim=0) as pipe,
        pytest.raises(DataError, match=text),
    ):
        pipe.run()
    with pipeline(source=lambda i: [np.asarray(0x3FC0, np.uint16)], dtype=types.BFLOAT16, ndim=0) as pipe:
        assert take(pipe, 1) == [[0x3FC0]]


def test_data_may_be_arrays_tensors_bytes_and_numbers() -> None:
    torch = pytest.importorskip("torch")
    cases: list[tuple[Any, Any]] = [
        ([b"abc", bytearray(b"de")], [[97, 98, 99], [100, 101]]),
        ([1, 2], [1, 2]),
        (np.arange(4).reshape(2, 2), [[0, 1], [2, 3]]),
        (np.arange(8).reshape(2, 4)[:, ::-2], [[3, 1], [7, 5]]),
        (torch.arange(4).reshape(2, 2), [[0, 1], [2, 3]]),
        ([torch.ones(1), torch.zeros(2)], [[1.0], [0.0, 0.0]]),
        (np.arange(2, dtype=">i4"), [0, 1]),
    ]
    for data, want in cases:
        with pipeline(source=[data]) as pipe:
            assert take(pipe) == [want]


def test_rows_that_need_a_conversion_equal_those_that_need_none() -> None:
    plain = np.arange(12, dtype=np.float32)
    read_only = plain.copy()
    read_only.flags.writeable = False
    strided = np.repeat(plain, 2)[::2]
    swapped = plain.astype(plain.dtype.newbyteorder())
    unaligned = np.frombuffer(b"\0" + plain.tobytes(), np.uint8)[1:].view(np.float32)

    class Own(np.ndarray[Any, Any]):
        pass

    rows = [plain, read_only, strided, swapped, unaligned, plain.view(Own)]
    batches = [[plain] * len(rows), rows, rows[::-1], [plain] * len(rows)]
    for no_copy in (False, True):
        pipe = pipeline(len(rows), source=batches, no_copy=no_copy)
        delivered = take(pipe)
        assert len(delivered) == len(batches)
        assert all(np.array_equal(np.asarray(row), plain) for batch in delivered for row in batch)


@pytest.mark.parametrize("no_copy", [False, True])
def test_later_batches_are_checked_too(no_copy: bool) -> None:
    for wrong in (np.zeros(2, np.float64), np.zeros((2, 1), np.float32), "text"):
        right = [np.zeros(2, np.float32), np.ones(2, np.float32)]
        pipe = pipeline(source=[right, right, [right[0], wrong], right], no_copy=no_copy)
        assert [len(pipe.run()[0]) for _ in range(2)] == [2, 2]
        with pytest.raises(DataError, match="row 1"):
            pipe.run()
        assert np.asarray(pipe.run()[0][1]).tolist() == [1, 1]


def test_a_source_may_reuse_its_buffer() -> None:
    buffer = np.zeros((1, 1), np.float32)

    def source(i: int) -> Any:
        buffer[:] = i
        return buffer

    with pipeline(source=source, depth=3) as pipe:
        assert take(pipe, 4) == [[[0.0]], [[1.0]], [[2.0]], [[3.0]]]


# ---- the end ----


def test_cycles() -> None:
    with pipeline(source=BATCHES, cycle="quiet") as pipe:
        assert take(pipe, 5) == [*WANTED, *WANTED[:2]]
    for cycle in ("raise", None):
        with pipeline(source=BATCHES, cycle=cycle) as pipe:
            assert take(pipe) == WANTED
            assert take(pipe) == []
            pipe.reset()
            assert take(pipe) == WANTED
    with pipeline(source=BATCHES, cycle="no") as pipe:
        assert take(pipe) == WANTED
        pipe.reset()
        assert take(pipe) == []


def test_an_iterator_cannot_restart() -> None:
    with pipeline(source=generate()) as pipe:
        pipe.start_epoch(0)  # no batch was taken yet
        assert take(pipe) == WANTED
        pipe.reset()
        with pytest.raises(StateError, match="an iterator, which has ended and cannot begin again"):
            pipe.run()


@pytest.mark.parametrize("source", [[], iter([]), lambda: next(iter(()))], ids=["list", "iterator", "callback"])
def test_a_source_without_data_is_an_error(source: Any) -> None:
    with pipeline(source=source) as pipe, pytest.raises(DataError, match="expected data from the source, got none"):
        pipe.run()


# ---- types ----


def test_declared_types_are_checked_and_inferred_types_are_fixed() -> None:
    with pipeline(source=[[1, 2]], dtype=types.UINT8, ndim=0) as pipe:
        (batch,) = pipe.run()
        assert batch.dtype == types.UINT8
    with pipeline(source=[[np.zeros((2, 3, 1))]], layout="HWC") as pipe:
        assert pipe.run()[0].layout == "HWC"
    pipe = pipeline(source=[[one(0)], [np.zeros(1)], [one(2)]])
    with pipe:
        assert take(pipe, 1) == [[[0.0]]]
        with pytest.raises(
            DataError, match="expected float32 with 1 axes per row, got float64 with 1 in row 0 — made at"
        ):
            pipe.run()
        assert take(pipe, 1) == [[[2.0]]]  # The pipeline stays usable.


@pytest.mark.parametrize(
    ("data", "text", "declared"),
    [
        ([one(0), np.zeros(1)], "expected float32 with 1 axes per row, got float64 with 1 in row 1", {}),
        ([one(0)], "expected uint8 with 1 axes per row, got float32", {"dtype": "uint8"}),
        ([one(0)], "expected float32 with 3 axes per row, got float32 with 1", {"layout": "HWC"}),
        ([300], "out of bounds for uint8 in row 0", {"dtype": "uint8"}),
        ([2.5], "expected a number that uint8 holds, got 2.5", {"dtype": "uint8"}),
        (["abc"], "expected an array of numbers, a number or bytes, got 'str' in row 0", {}),
        ([None], "got 'NoneType'", {}),
        ([np.array([object()])], "got an array of object", {}),
        ([np.zeros(1, complex)], "got an array of complex128", {}),
        ([], "expected at least one row, got an empty batch", {}),
        ([1, 2, 3], "expected at most 2 rows", {}),
        (b"abc", "expected a batch .*, got bytes", {}),
        (5, "expected a batch .*, got int", {}),
    ],
)  # fmt: skip
def test_wrong_data_is_an_error_at_its_batch(data: Any, text: str, declared: dict[str, Any]) -> None:
    with pipeline(source=[data], **declared) as pipe, pytest.raises(DataError, match=text):
        pipe.run()


def test_outputs_must_have_one_number_of_rows() -> None:
    with pipeline(source=[([1, 2], [1])], num_outputs=2) as pipe, pytest.raises(DataError, match="got 2 and 1"):
        pipe.run()
    with pipeline(source=[[1, 2, 3]], num_outputs=2) as pipe, pytest.raises(DataError, match="a tuple of 2 batches"):
        pipe.run()
    pipe = Pipeline(4, 1, seed=1)
    with pipe:
        pipe.set_outputs(fn.external_source([[1, 2], [1, 2]]), fn.external_source([[1, 2, 3], [1]]))
    with pipe:
        for text in (
            "at most 2 rows .* or what another source gave",
            "expected 2 rows as in the rest of the batch, got 1",
        ):
            with pytest.raises(DataError, match=text):
                pipe.run()


def test_an_exception_in_a_source_is_raised_at_its_batch() -> None:
    def source(i: int) -> Any:
        if i == 1:
            raise KeyError("lost")
        return [i]

    with pipeline(source=source, depth=3) as pipe:
        assert take(pipe, 1) == [[0]]
        with pytest.raises(KeyError, match="lost") as error:
            pipe.run()
        assert "in the source of `external_source`, made at" in error.value.__notes__[0]
        assert take(pipe, 2) == [[2], [3]]


@pytest.mark.parametrize(
    ("arguments", "text"),
    [
        ({"source": 5}, "expected an iterable or a function as `source`, got int"),
        ({"source": lambda a, b: a}, "no or one argument"),
        ({"source": generate(), "cycle": "quiet"}, "an iterable that can begin again"),
        ({"source": by_number, "cycle": "raise"}, "`cycle` is for iterables"),
        ({"source": BATCHES, "cycle": "often"}, 'expected "no", "quiet" or "raise"'),
        ({"source": BATCHES, "num_outputs": 0}, "`num_outputs` >= 1"),
        ({"source": BATCHES, "repeat_last": True}, "for sources fed by hand"),
        ({"source": BATCHES, "layout": "HWC", "ndim": 2}, "a `layout` of 2 axes"),
        ({"source": BATCHES, "dtype": ["uint8"] * 2}, "one `dtype` for all or one for each of 1"),
        ({"source": BATCHES, "ndim": -1}, "a number of axes >= 0"),
        ({"cycle": "quiet"}, "expected a `source` with"),
        ({"source": BATCHES, "sorce": 1}, "did you mean `source`"),
    ],
)  # fmt: skip
def test_arguments_that_do_not_fit_are_refused_at_their_line(arguments: dict[str, Any], text: str) -> None:
    with pytest.raises(ArgumentError, match=text) as error:
        pipeline(**arguments)
    assert "test_external_source.py" in str(error.value)


# ---- feed_input ----


def test_feeding_by_hand() -> None:
    pipe = pipeline(name="images")
    with pipe:
        pipe.build()
        with pytest.raises(StateError, match=r"Call `pipe.feed_input\('images', batch\)` before every run"):
            pipe.run()
        pipe.feed_input("images", [one(1)])
        assert take(pipe, 1) == [[[1.0]]]
        pipe.feed_input("images", [one(2)])
        pipe.feed_input("images", np.ones((2, 1), np.float32))
        assert take(pipe, 2) == [[[2.0]], [[1.0], [1.0]]]
        assert pipe.run(images=[one(7)])[0][0].tolist() == [7.0]
        with pytest.raises(ArgumentError, match="there is no source called 'image'; did you mean `images`"):
            pipe.feed_input("image", [one(1)])
        with pytest.raises(DataError, match="expected float32"):
            pipe.feed_input("images", [1])
        with pytest.raises(DataError, match="at most 2 rows"):
            pipe.feed_input("images", [one(0)] * 3)
        with pytest.raises(StateError, match="can be resumed"):
            pipe.get_state()
    with pipeline(source=BATCHES, name="own") as pipe, pytest.raises(StateError, match="has its own data"):
        pipe.feed_input("own", [one(1)])


def test_the_last_batch_can_be_used_again() -> None:
    with pipeline(name="x", repeat_last=True) as pipe:
        pipe.feed_input("x", [one(1)], layout="W")
        assert take(pipe, 3) == [[[1.0]]] * 3
        assert pipe.run()[0].layout == "W"


def test_a_blocking_source_waits_for_another_thread() -> None:
    with pipeline(name="x", blocking=True) as pipe:
        pipe.build()
        timer = threading.Timer(0.05, pipe.feed_input, ("x", [one(3)]))
        timer.start()
        assert take(pipe, 1) == [[[3.0]]]
        timer.join(HANG_S)
        timer = threading.Timer(0.05, pipe.close)
        timer.start()
        with pytest.raises(StateError, match="closed while a source waited"):
            pipe.run()
        timer.join(HANG_S)


# ---- states ----


@pytest.mark.parametrize(
    ("source", "arguments"),
    [
        ([[one(i), one(i + 0.5)] for i in range(9)], {}),
        (lambda i: [one(i)], {}),
        (lambda info: one(info.idx_in_epoch), {"batch": False}),
        ([one(i) for i in range(20)], {"batch": False}),
    ],
    ids=["sequence", "numbered callback", "per-sample callback", "rows"],
)
def test_a_source_resumes_from_a_state(source: Any, arguments: dict[str, Any]) -> None:
    with pipeline(source=source, depth=3, **arguments) as pipe, pipeline(source=source, depth=1, **arguments) as other:
        take(pipe, 3)
        state = pipe.get_state()
        other.set_state(state)
        assert take(other, 3) == take(pipe, 3)


@pytest.mark.parametrize("source", [generate, generate(), Reiterable(), no_argument()])
def test_an_opaque_source_cannot_be_resumed(source: Any) -> None:
    with pipeline(source=source) as pipe:
        take(pipe, 1)
        with pytest.raises(
            StateError, match=r"expected a source that can be resumed, .* made at .*test_external_source.py"
        ):
            pipe.get_state()


def test_draws_follow_the_ordinal_of_the_row() -> None:
    def rows(batch_size: int) -> list[float]:
        pipe = Pipeline(batch_size, 2, seed=1)
        with pipe:
            pipe.set_outputs(fn.external_source(itertools.count(), batch=False) * 0 + fn.random.uniform())
        with pipe:
            return [float(x) for _ in range(12 // batch_size) for x in pipe.run()[0]]

    assert rows(3) == rows(4) == rows(12)


def test_the_code_of_a_row_may_empty_the_list() -> None:
    class Emptying:
        def __init__(self, rows: list[Any]) -> None:
            self.rows, self.data = rows, np.arange(6, dtype=np.uint8)

        def __dlpack__(self, **options: Any) -> Any:
            self.rows.clear()
            return self.data.__dlpack__(**options)

        def __dlpack_device__(self) -> tuple[int, int]:
            return self.data.__dlpack_device__()

    def source() -> list[Any]:
        rows: list[Any] = []
        rows += [Emptying(rows), *(np.full(6 + i, i, np.uint8) for i in range(1, 16))]
        return rows

    with pipeline(16, source=source) as made:
        (out,) = made.run()
        assert [len(row) for row in out] == list(range(6, 22)) and (np.asarray(out[15]) == 15).all()
