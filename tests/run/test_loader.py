# SPDX-License-Identifier: Apache-2.0
"""The PyTorch loader, with real tensors."""

from __future__ import annotations

import contextlib
import gc
import itertools
import threading
import weakref
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch

from stoker import ArgumentError, DataError, Pipeline, StateError, fn, pipeline_def
from stoker.executor.flight import SuppliedMemory
from stoker.torch import Loader, to_torch
from tests.run.pipelines import decoding, files_of, labels_of, training


@pytest.fixture(scope="module")
def files(jpegs: Path) -> list[str]:
    return files_of(jpegs)[:13]


@pytest.fixture
def loader(files: list[str]) -> Iterator[Loader]:
    loader = Loader(training(files))
    yield loader
    loader.close()


def labels(batches: Any) -> list[int]:
    return [int(x) for _, y in batches for x in y]


# ---- loops ----


def test_every_loop_is_an_epoch(loader: Loader, files: list[str]) -> None:
    assert len(loader) == 3
    epochs = [list(loader) for _ in range(3)]
    assert [len(e) for e in epochs] == [3, 3, 3]
    for batches in epochs:
        assert sorted(labels(batches)) == list(range(len(files))), "every sample exactly once"
    assert labels(epochs[0]) != labels(epochs[1]) != labels(epochs[2]), "in another order each time"
    assert not torch.equal(epochs[0][0][0], epochs[1][0][0])


def test_the_contents_of_a_batch(loader: Loader) -> None:
    for n, (x, y) in enumerate(loader):
        rows = 3 if n == 2 else 5
        assert (x.shape, x.dtype) == ((rows, 3, 16, 16), torch.float32)
        assert (y.shape, y.dtype) == ((rows,), torch.int64)
        assert x.is_contiguous()
        assert x.device.type == "cpu"


def test_names_make_dictionaries(files: list[str]) -> None:
    loader = Loader(training(files), ["image", "label"])
    batch = next(iter(loader))
    assert list(batch) == ["image", "label"]
    assert batch["image"].shape == (5, 3, 16, 16)
    loader.close()
    with pytest.raises(ArgumentError, match=r"expected different names in `output_map`, got \['x', 'x'\]"):
        Loader(training(files), ["x", "x"])
    with pytest.raises(ArgumentError, match=r"expected one name per output \(2\) in `output_map`, got \['x'\]"):
        Loader(training(files), ["x"])


def test_one_output_is_no_tuple() -> None:
    loader = Loader(uniform(), size=2)
    assert [x.shape for x in loader] == [(4,), (4,)]
    loader.close()


@pipeline_def(batch_size=4, num_threads=1, seed=3)
def uniform() -> Any:
    return fn.random.uniform(range=[0.0, 1.0])


def test_length_needs_a_reader_or_a_size() -> None:
    loader = Loader(uniform())
    with pytest.raises(TypeError, match="give `size=`"):
        len(loader)
    assert len(Loader(loader.pipeline, size=9)) == 9
    loader.close()


@pytest.mark.parametrize(
    ("policy", "sizes"),
    [("even", [5, 5, 3]), ("partial", [5, 5, 3]), ("drop", [5, 5]), ("fill", [5, 5, 5]), ("PARTIAL", [5, 5, 3])],
)
def test_the_last_batch(files: list[str], policy: str, sizes: list[int]) -> None:
    loader = Loader(training(files), last_batch_policy=policy)
    first, second = list(loader), list(loader)
    assert [len(y) for _, y in first] == [len(y) for _, y in second] == sizes
    assert len(loader) == len(sizes)
    order = labels(first)
    if policy == "fill":
        assert sorted(order[:13]) == list(range(13))
        assert order[13:] == labels(second)[:2], "filled with the first samples of the next epoch"
        assert torch.equal(first[-1][0][3:], second[0][0][:2])
    else:
        assert sorted(order) == sorted(set(order))
    loader.close()


def test_a_batch_larger_than_the_data_set_is_filled(files: list[str]) -> None:
    loader = Loader(training(files[:3], batch_size=8), last_batch_policy="fill")
    for _ in range(2):
        (batch,) = list(loader)
        assert sorted(batch[1][:3].tolist()) == sorted(batch[1][3:6].tolist()) == [0, 1, 2]
        assert len(batch[1]) == 8
    loader.close()


def test_another_policy_is_refused(files: list[str]) -> None:
    for policy in ("keep", None, 1):
        expected = rf"expected last_batch_policy in .*'partial', 'drop', 'fill'.*, got {policy!r}"
        with pytest.raises(ArgumentError, match=expected):
            Loader(training(files), last_batch_policy=policy)  # type: ignore[arg-type]
    with pytest.raises(ArgumentError, match="expected a Pipeline, got list"):
        Loader([])  # type: ignore[arg-type]


def test_set_epoch_reproduces(files: list[str], loader: Loader) -> None:
    epochs = [list(loader) for _ in range(3)]
    for n in (1, 0, 2):
        loader.set_epoch(n)
        again = list(loader)
        assert all(torch.equal(a, b) for p, q in zip(epochs[n], again, strict=True) for a, b in zip(p, q, strict=True))
    other = Loader(training(files, batch_size=2, num_threads=1))
    other.set_epoch(2)
    assert labels(other) == labels(epochs[2])
    other.close()


def test_leaving_a_loop_early(loader: Loader, files: list[str]) -> None:
    epochs = [labels(loader) for _ in range(3)]
    loader.set_epoch(0)
    for _x, y in loader:
        assert y.tolist() == epochs[0][:5]
        break
    assert labels(loader) == epochs[1], "the next loop is the next epoch, whole"
    assert labels(loader) == epochs[2]


def test_leaving_early_does_not_depend_on_prefetched_batches(files: list[str]) -> None:
    orders = []
    for depth in (1, 2, 6):
        for policy in ("partial", "fill", "drop"):
            loader = Loader(training(files, prefetch_queue_depth=depth), last_batch_policy=policy)
            for n, _ in enumerate(loader):
                if n == 1:
                    break
            orders.append(labels(loader)[:10])
            loader.close()
    assert all(s == orders[0] for s in orders)


def test_an_unused_iterator_takes_no_epoch(loader: Loader) -> None:
    iter(loader)
    iter(loader)
    first = labels(loader)
    loader.set_epoch(0)
    assert labels(loader) == first


def test_a_loader_serves_one_loop(loader: Loader) -> None:
    first, second = iter(loader), iter(loader)
    next(first)
    next(second)
    with pytest.raises(StateError, match="a Loader serves one loop at a time"):
        next(first)
    assert len(list(second)) == 2
    with pytest.raises(StopIteration):
        next(second)
    third = iter(loader)
    next(third)
    loader.set_epoch(5)
    with pytest.raises(StateError):
        next(third)


def test_a_loop_continues_after_a_bad_sample(jpegs: Path, tmp_path: Path) -> None:
    bad = tmp_path / "bad.jpg"
    bad.write_bytes(b"\xff\xd8\xff")
    files = files_of(jpegs)[:9]
    loader = Loader(training([*files[:4], str(bad), *files[4:]], shuffle=False, batch_size=2))
    loop, labels_read, failed = iter(loader), [], 0
    while True:
        try:
            labels_read += next(loop)[1].tolist()
        except DataError as error:
            failed += 1
            assert error.sample == 4
        except StopIteration:
            break
    assert failed == 1
    assert labels_read == [0, 1, 2, 3, 6, 7, 8, 9]
    loader.close()


# ---- memory ----


def test_batches_are_shared_without_a_copy(loader: Loader, monkeypatch: pytest.MonkeyPatch) -> None:
    taken: list[int] = []
    original = torch.from_numpy

    def from_numpy(array: Any) -> Any:
        taken.append(array.ctypes.data)
        return original(array)

    monkeypatch.setattr(torch, "from_numpy", from_numpy)
    pointers = []
    for x, _ in loader:
        assert x.data_ptr() in taken
        x.zero_()
        pointers.append(x.data_ptr())
        del x
    list(loader)
    assert set(pointers) & set(taken[6:]), "memory that was released is used again"


def test_pinned_batches_are_written_into_memory_that_torch_allocated(
    files: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    allocated: list[int] = []
    original = torch.empty

    def empty(*args: Any, pin_memory: bool, **kwargs: Any) -> Any:
        assert pin_memory
        tensor = original(*args, **kwargs)
        allocated.append(tensor.data_ptr())
        return tensor

    plain = Loader(training(files))
    batches = list(plain)
    plain.close()
    monkeypatch.setattr(torch.cuda, "is_available", lambda: True)
    monkeypatch.setattr(torch, "empty", empty)
    monkeypatch.setattr(torch.Tensor, "pin_memory", lambda self: pytest.fail("all outputs have one shape"))
    loader = Loader(training(files), pin_memory=True)
    for n, (x, y) in enumerate(loader):
        assert x.data_ptr() in allocated, "no copy"
        assert x.untyped_storage().resizable(), "torch's own memory, not borrowed"
        assert torch.equal(x, batches[n][0])
        assert torch.equal(y, batches[n][1])
        assert y.data_ptr() in allocated, "labels of torch's type are pinned, too"
    assert len(allocated) == 3 * 3
    loader.close()


def test_a_thread_of_a_loop_pins_memory_on_the_loops_device(files: list[str], monkeypatch: pytest.MonkeyPatch) -> None:
    current = threading.local()  # CUDA's current device is the thread's own
    current.device = 3
    pinned: list[tuple[bool, int]] = []

    @contextlib.contextmanager
    def device(number: int) -> Iterator[None]:
        before, current.device = getattr(current, "device", 0), number
        yield
        current.device = before

    def empty(*args: Any, pin_memory: bool, original: Any = torch.empty, **kwargs: Any) -> Any:
        is_main = threading.current_thread() is threading.main_thread()
        pinned.append((is_main, getattr(current, "device", 0)))
        return original(*args, **kwargs)

    monkeypatch.setattr(torch.cuda, "is_available", lambda: True)
    monkeypatch.setattr(torch.cuda, "current_device", lambda: current.device)
    monkeypatch.setattr(torch.cuda, "device", device)
    monkeypatch.setattr(torch, "empty", empty)
    loader = Loader(training(files), pin_memory=True, background=True)
    assert len(list(loader)) == 3
    loader.close()
    assert set(pinned) == {(False, 3)}


def test_memory_for_a_batch_that_fails_is_released(jpegs: Path, tmp_path: Path) -> None:
    tensors: list[weakref.ref[Any]] = []

    def allocate(output: int, planned: Any, rows: int) -> SuppliedMemory:
        tensor = torch.full((rows, *planned.shape), 9, dtype=[torch.float32, torch.int32][output])
        tensors.append(weakref.ref(tensor))
        return SuppliedMemory(tensor.data_ptr(), tensor)

    with training([*files_of(jpegs)[:4], str(tmp_path / "none.jpg"), *files_of(jpegs)[4:9]], shuffle=False) as pipe:
        with pytest.raises(DataError):
            pipe.next("stop", allocate)
        delivered = pipe.next("stop", allocate)
        assert delivered is not None
        assert delivered.outputs[1].reshape(-1).tolist() == [5, 6, 7, 8, 9]
        del delivered
        assert pipe.next("stop", allocate) is None
    gc.collect()
    assert len(tensors) == 4
    assert all(ref() is None for ref in tensors)


def test_delivered_batches_do_not_change(files: list[str]) -> None:
    loader = Loader(training(files, batch_size=2, prefetch_queue_depth=3))
    kept, copies = [], []
    for _ in range(3):
        for batch in loader:
            kept.append(batch)
            copies.append([t.clone() for t in batch])
    loader.close()
    assert all(torch.equal(a, b) for p, q in zip(kept, copies, strict=True) for a, b in zip(p, q, strict=True))


def test_rows_of_different_shapes_are_lists(files: list[str]) -> None:
    loader = Loader(decoding(files))
    kept = list(loader)
    for images, numbers in kept:
        assert isinstance(images, list)
        assert len(images) == len(numbers)
        assert {t.dtype for t in images} == {torch.uint8}
    assert len({tuple(t.shape) for images, _ in kept for t in images}) > 3
    with decoding(files) as pipe:
        same = pipe.run()[0]
        assert all(np.array_equal(a.numpy(), b) for a, b in zip(kept[0][0], same, strict=True))
        assert isinstance(to_torch(same), list)
        assert to_torch(pipe.run()[1]).shape == (5, 1)
    loader.close()


def test_a_batch_outlives_its_pipeline(files: list[str]) -> None:
    loader = Loader(decoding(files))
    images, _ = next(iter(loader))
    copies = [t.clone() for t in images]
    alive = weakref.ref(loader.pipeline)
    loader.close()
    del loader
    gc.collect()
    assert alive() is None
    assert all(torch.equal(a, b) for a, b in zip(images, copies, strict=True))
    images[0].zero_()


def test_integers_of_one_element_are_labels() -> None:
    @pipeline_def(batch_size=3, num_threads=1)
    def integers() -> Any:
        source = fn.external_source(source=[[np.uint8(200), np.uint8(1), np.uint8(2)]], cycle="quiet")
        return source, source - 5, fn.cast(source, dtype=np.float32), fn.stack(source, source)

    loader = Loader(integers(), size=1)
    small, signed, real, pair = next(iter(loader))
    assert (small.dtype, small.tolist()) == (torch.int64, [200, 1, 2])
    assert (signed.dtype, signed.tolist()) == (torch.int64, [195, -4, -3])
    assert (real.dtype, real.shape) == (torch.float32, (3,))
    assert (pair.dtype, pair.shape) == (torch.uint8, (3, 2))
    loader.close()


def test_pinning_needs_cuda(files: list[str], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(torch.cuda, "is_available", lambda: False)
    with pytest.raises(ArgumentError, match=r"`Loader`: expected a machine with CUDA for `pin_memory=True`, got none"):
        Loader(training(files), pin_memory=True)


def test_a_loader_of_a_closed_pipeline(files: list[str]) -> None:
    loader = Loader(training(files))
    loop = iter(loader)
    next(loop)
    loader.close()
    loader.close()
    with pytest.raises(StateError, match="the pipeline is closed"):
        next(loop)
    with pytest.raises(StateError, match="the pipeline is closed"):
        next(iter(loader))


def test_a_loader_after_runs_takes_the_rest(files: list[str]) -> None:
    pipe: Pipeline = training(files, shuffle=False)
    first = labels_of(pipe.run())
    loader = Loader(pipe)
    assert first + labels(loader)[: 13 - 5] == list(range(13))
    loader.close()


# ---- channels last ----


@pipeline_def(batch_size=5, num_threads=2, seed=3)
def normalised(files: list[str], output_layout: str, resized: bool = True) -> Any:
    data, labels = fn.readers.file(files=files)
    images = fn.decoders.image(data)
    images = fn.resize(images, resize_x=12, resize_y=8) if resized else images
    return fn.crop_mirror_normalize(images, mean=[9.0, 8.0, 7.0], std=[3.0], output_layout=output_layout), labels


@pytest.mark.parametrize("resized", [True, False])
@pytest.mark.parametrize("form", ["channels_last", torch.channels_last])
def test_channels_last_is_the_same_memory(files: list[str], resized: bool, form: Any) -> None:
    last = Loader(normalised(files, "HWC", resized), memory_format=form)
    first = Loader(normalised(files, "CHW", resized))
    for (x, y), (want, label) in zip(last, first, strict=True):
        for a, b in zip(x, want, strict=True):
            assert torch.equal(a, b)
        if resized:
            assert x.shape == (len(x), 3, 8, 12)
            assert x.is_contiguous(memory_format=torch.channels_last)
            assert x.data_ptr() == x.to(memory_format=torch.channels_last).data_ptr(), "nothing is left to convert"
        else:
            assert all(a.stride(0) == 1 for a in x)
        assert torch.equal(y, label)
    last.close()
    first.close()


def test_channels_last_needs_them_last(files: list[str]) -> None:
    loader = Loader(normalised(files, "CHW"), memory_format="channels_last")
    with pytest.raises(ArgumentError, match=r'layout HWC .*, got CHW.*output_layout="HWC"'):
        next(iter(loader))
    loader.close()
    with pytest.raises(ArgumentError, match='expected `memory_format` "channels_last"'):
        Loader(normalised(files, "HWC"), memory_format="nhwc")


def test_trainers_find_the_attributes_of_a_data_loader(files: list[str]) -> None:
    """A DataLoader made of the loader's parts, as trainers make one to skip batches, gives the loader's batches."""
    with training(files) as pipe:
        loader = Loader(pipe, last_batch_policy="drop")
        expected = [labels.tolist() for _, labels in loader]
        assert (loader.batch_size, loader.num_workers, loader.drop_last, loader.pin_memory) == (None, 0, True, False)
        assert len(loader.dataset) == len(files) and len(loader.batch_sampler) == len(loader) == len(expected)
        with pytest.raises(StateError, match="no loop over it has begun, got a request for batch 0"):
            loader.dataset[0]

        class Skip:
            def __iter__(self) -> Any:
                return itertools.islice(loader.batch_sampler, 1, None)

        for sampler, batches in ((loader.batch_sampler, expected), (Skip(), expected[1:])):
            loader.batch_sampler.set_epoch(0)
            again = torch.utils.data.DataLoader(loader.dataset, batch_sampler=sampler, collate_fn=loader.collate_fn)
            assert [labels.tolist() for _, labels in again] == batches
        with pytest.raises(StateError, match="expected batch 2 or a later one, got a request for batch 0"):
            loader.dataset[0]
