# SPDX-License-Identifier: Apache-2.0
"""DALI's imperative mode, ``stoker.dali.experimental.dynamic``."""

from __future__ import annotations

import importlib
import threading
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from PIL import Image

import stoker
import stoker.dali.experimental.dynamic as ndd
from stoker import eager
from stoker.contract.errors import ArgumentError, StateError
from stoker.dali import types
from stoker.frontends import planned_call
from stoker.frontends.dali.dynamic import devices

X = np.arange(12, dtype=np.uint8).reshape(2, 2, 3)


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    rng = np.random.default_rng(0)
    for i in range(7):
        path = tmp_path / "ab"[i % 2] / f"{i}.jpg"
        path.parent.mkdir(exist_ok=True)
        Image.fromarray(rng.integers(0, 256, (20 + i, 30, 3), np.uint8)).save(path)
    return tmp_path


def test_tensors_have_dalis_facts_and_text() -> None:
    """Text and types that DALI 2.4 prints."""
    t = ndd.tensor(X, layout="HWC")
    assert (t.shape, t.ndim, t.layout, str(t.dtype), t.size, t.nbytes) == ((2, 2, 3), 3, "HWC", "u8", 12, 12)
    assert repr(t) == (
        "Tensor(\n    [[[ 0  1  2]\n      [ 3  4  5]]\n\n     [[ 6  7  8]\n      [ 9 10 11]]],\n"
        '    dtype=u8,\n    layout="HWC",\n    device="cpu",\n    shape=(2, 2, 3))'
    )
    assert [str(ndd.tensor(v).dtype) for v in (3, [1, 2], 1.5, True, np.zeros(2))] == [
        "i32",
        "i32",
        "f32",
        "bool",
        "f64",
    ]
    assert ndd.tensor(3).item() == 3 and ndd.tensor([1.5, 2.5], dtype=ndd.float16).dtype == types.FLOAT16
    assert ndd.dtype("float32") == ndd.dtype(np.float32) == ndd.dtype(types.FLOAT) == ndd.float32
    assert str(ndd.bfloat16) == "bf16" and (ndd.float32.exponent_bits, ndd.float32.significand_bits) == (8, 23)
    assert ndd.int16([1, 2]).dtype == ndd.int16
    copied, shared = ndd.tensor(X), ndd.as_tensor(X)
    assert not np.shares_memory(np.asarray(copied), X) and np.shares_memory(np.asarray(shared), X)
    assert np.from_dlpack(t).shape == X.shape


def test_arithmetic_promotes_as_pipelines_do() -> None:
    t = ndd.tensor(X, layout="HWC")
    for result, dtype, want in (
        (t + 1, "i32", X + 1), (2 - t, "i32", 2 - X.astype(int)), (t * 1.5, "f32", X * 1.5), (t > 3, "bool", X > 3),
        (t == t, "bool", X == X), (-ndd.tensor([1]), "i32", [-1]), (t // 5, "i32", X // 5),
        (t + np.ones(3, np.uint8), "u8", X + 1), (np.ones(3, np.uint8) + t, "u8", X + 1),
        (ndd.math.clamp(t, 2, 4), "i32", X.clip(2, 4)), (ndd.math.sqrt(ndd.tensor([4, 9])), "f32", [2, 3]),
    ):  # fmt: skip
        assert str(result.dtype) == dtype and np.array_equal(result, want)
    b = ndd.batch([X, X[:1]], layout="HWC")
    assert [r.shape for r in b + ndd.batch([1, 2])] == [(2, 2, 3), (1, 2, 3)]
    assert np.array_equal((b + ndd.batch([1, 2])).select(1), X[:1] + 2)
    with pytest.raises(ArgumentError, match="one element as a condition"):
        bool(t > 3)


def test_subscripts() -> None:
    t = ndd.tensor(X, layout="HWC")
    for found, want, layout in (
        (t[0], X[0], "WC"), (t[0, :, 1:], X[0, :, 1:], "WC"), (t[..., 0], X[..., 0], "HW"), (t[::2], X[::2], "HWC"),
        (t[ndd.tensor(1)], X[1], "WC"), (t[-1, 0, 0], X[-1, 0, 0], None),
    ):  # fmt: skip
        assert np.array_equal(found, want) and found.layout == layout
    b = ndd.batch([X, X[:1]], layout="HWC")
    assert b.slice[0:1].shape == [(1, 2, 3), (1, 2, 3)]
    chosen = b.slice[:, ndd.batch([0, 1])]
    assert np.array_equal(chosen.select(1), X[:1, 1]) and chosen.layout == "HC"
    assert b.select([1, 0]).shape == [(1, 2, 3), (2, 2, 3)] and b.tensors[1].shape == (1, 2, 3)
    for wrong in (lambda: t[5], lambda: t[0, 0, 0, 0], lambda: t["a"], lambda: t[b]):
        with pytest.raises(ArgumentError):
            wrong()
    with pytest.raises(TypeError, match=r"batch\.tensors"):
        b[0]


def test_batches() -> None:
    b = ndd.as_batch([X, X[:1]], layout="HWC")
    assert (b.batch_size, b.ndim, b.layout, str(b.dtype)) == (2, 3, "HWC", "u8")
    assert 'dtype=u8,\n    layout="HWC",\n    device="cpu",\n    num_samples=2,' in repr(b)
    assert ndd.as_tensor(b, pad=True).shape == (2, 2, 2, 3) and ndd.as_tensor(b, pad=True).layout == "NHWC"
    assert ndd.as_batch(X).shape == [(2, 3), (2, 3)] and ndd.Batch.broadcast(X, 3).batch_size == 3
    assert ndd.batch(b, dtype=ndd.float32).dtype == ndd.float32
    with pytest.raises(ValueError, match="one shape"):
        ndd.as_tensor(b)
    mixed = ndd.batch([X, X.astype(np.float32) + 300])
    assert mixed.dtype == ndd.uint8 and np.array_equal(mixed.tensors[1], np.full_like(X, 255))
    with pytest.raises(ArgumentError, match="of one type, number of axes"):
        ndd.batch([X, X[0]])


def test_operators_take_tensors_batches_and_arrays() -> None:
    t, b = ndd.tensor(X, layout="HWC"), ndd.batch([X, X[:1]], layout="HWC")
    one = ndd.resize(t, size=[4, 5])
    assert isinstance(one, ndd.Tensor) and np.array_equal(one, eager.resize(X, size=(4, 5)))
    many = ndd.resize(b, resize_x=ndd.batch([3.0, 4.0]))
    assert isinstance(many, ndd.Batch) and many.shape == [(3, 3, 3), (2, 4, 3)] and many.layout == "HWC"
    assert np.array_equal(ndd.resize(X, size=[4, 5]), one)
    assert ndd.flip(t, device="cpu", batch_size=3).batch_size == 3
    assert ndd.rotate(t, angle=ndd.tensor(30.0)).shape == (4, 4, 3)
    assert ndd.zeros(shape=[2], batch_size=3).shape == [(2,)] * 3 and ndd.zeros(shape=[2]).shape == (2,)
    assert ndd.reductions.mean(t).item() == 5.5 and ndd.cat(t, t).shape == (4, 2, 3)
    assert ndd.cast(t, dtype=ndd.float16).dtype == ndd.float16
    assert np.array_equal(ndd.transpose(ndd.tensor(X.transpose(2, 0, 1).copy(), layout="CHW"), perm=[1, 2, 0]), X)
    with pytest.raises(TypeError, match="bogus"):
        ndd.resize(t, size=[4, 5], bogus=3)
    with pytest.raises(RuntimeError, match="crop_h"):
        ndd.crop(t, crop=[40, 50])
    with pytest.raises(ArgumentError, match="batches of one size"):
        ndd.rotate(b, angle=ndd.batch([1.0, 2.0, 3.0]))
    with pytest.raises(AttributeError, match="no operator"):
        ndd.bogus  # noqa: B018
    with pytest.raises(AttributeError, match="is a source"):
        ndd.external_source  # noqa: B018


def test_generators_repeat() -> None:
    rng = ndd.random.RNG(seed=5)
    twin = rng.clone()
    draws = [np.asarray(ndd.random.uniform(shape=[3], rng=r)) for r in (rng, twin, rng)]
    assert np.array_equal(draws[0], draws[1]) and not np.array_equal(draws[0], draws[2])
    state = rng.get_state()
    later = np.asarray(ndd.noise.gaussian(ndd.tensor(X), stddev=9.0, rng=rng))
    rng.set_state(state)
    assert np.array_equal(ndd.noise.gaussian(ndd.tensor(X), stddev=9.0, rng=rng), later)
    rows = ndd.random.uniform(batch_size=3, rng=rng)
    assert len({x.item() for x in rows}) == 3, "rows draw different numbers"
    advanced, other = ndd.random.RNG(seed=1), ndd.random.RNG(seed=1)
    advanced.advance(2)
    assert [other() for _ in range(3)][2] == advanced()
    ndd.random.set_seed(3)
    first = ndd.random.normal().item()
    ndd.random.set_seed(3)
    assert ndd.random.normal().item() == first
    with pytest.raises(TypeError, match="seed"):
        ndd.random.uniform(seed=3)
    with pytest.raises(TypeError, match="it draws nothing"):
        ndd.flip(ndd.tensor(X), rng=rng)
    with pytest.raises(StateError, match="state of a generator"):
        rng.set_state("Philox")


def epoch(reader: Any, batch_size: int | None) -> list[list[int]]:
    rows = []
    for _, labels in reader.next_epoch(batch_size=batch_size):
        rows.append([x.item() for x in labels] if batch_size else [labels.item()])
    return rows


def test_readers_are_iterables(folder: Path) -> None:
    reader = ndd.readers.File(file_root=str(folder))
    assert epoch(reader, 7) == [[0] * 4 + [1] * 3] == epoch(reader, 7)
    assert epoch(reader, None) == [[0]] * 4 + [[1]] * 3, "another batch size continues with the next epoch"
    assert reader.get_metadata()["epoch_size"] == 7
    for jpegs, labels in reader.next_epoch(batch_size=7):
        images = ndd.decoders.image(jpegs)
        assert sorted(images.shape) == [(20 + i, 30, 3) for i in range(7)] and labels.shape == [(1,)] * 7
    reader.close()
    files = sorted(str(p) for p in folder.glob("*/*.jpg"))
    assert ndd.imread(files[0]).ndim == 3 and ndd.imread(files, output_type=types.GRAY).shape[0][2] == 1
    with pytest.raises(ValueError, match="batch_size"):
        reader.next_epoch(batch_size=0)
    with pytest.raises(AttributeError, match="no reader"):
        ndd.readers.Bogus  # noqa: B018


STUCK = {"num_shards": 2, "shard_id": 1, "stick_to_shard": True}
PADDED = {"num_shards": 3, "shard_id": 2, "stick_to_shard": True, "pad_last_batch": True}


@pytest.mark.parametrize(
    ("count", "batch_size", "settings", "want"),
    [  # three epochs, as DALI 2.4 delivers them
        (5, 2, {}, [[[0, 1], [2, 3], [4, 0]], [[1, 2], [3, 4], [0, 1]], [[2, 3], [4, 0], [1, 2]]]),
        (5, 7, {}, [[[0, 1, 2, 3, 4, 0, 1]], [[2, 3, 4, 0, 1, 2, 3]], [[4, 0, 1, 2, 3, 4, 0]]]),
        (4, 2, {}, [[[0, 1], [2, 3]]] * 3),
        (5, None, {}, [[0, 1, 2, 3, 4]] * 3),
        (5, 2, {"pad_last_batch": True}, [[[0, 1], [2, 3], [4, 4]]] * 3),
        (7, 3, {"pad_last_batch": True}, [[[0, 1, 2], [3, 4, 5], [6, 6, 6]]] * 3),
        (6, 2, {"num_shards": 2}, [[[0, 1], [2, 3]], [[4, 5], [0, 1]], [[2, 3], [4, 5]]]),
        (6, 2, {"num_shards": 2, "shard_id": 1}, [[[3, 4], [5, 0]], [[1, 2], [3, 4]], [[5, 0], [1, 2]]]),
        (6, 2, STUCK, [[[3, 4], [5, 3]], [[4, 5], [3, 4]], [[5, 3], [4, 5]]]),
        (6, None, STUCK, [[3, 4, 5]] * 3),
        (7, 3, {"num_shards": 2, "pad_last_batch": True}, [[[0, 1, 2], [2, 2, 2]], [[3, 4, 5], [6, 6, 6]]] * 2),
        (10, 2, PADDED, [[[6, 7], [8, 9]]] * 3),
    ],
)  # fmt: skip
def test_epochs_are_full_batches(
    tmp_path: Path, count: int, batch_size: int | None, settings: dict[str, Any], want: list[Any]
) -> None:
    files = numbered(tmp_path, count)
    reader = ndd.readers.File(files=files, sharding="contiguous", **settings)
    assert [numbers(reader.next_epoch(batch_size=batch_size)) for _ in want] == want
    reader.close()


def numbered(folder: Path, count: int) -> list[str]:
    """Write files of one byte, their number."""
    files = [folder / f"{i:02}.bin" for i in range(count)]
    for i, path in enumerate(files):
        path.write_bytes(bytes([i]))
    return [str(path) for path in files]


def numbers(rows: Any) -> list[Any]:
    found = []
    for data, _ in rows:
        found.append([x.item() for x in data] if isinstance(data, ndd.Batch) else data.item())
    return found


def test_a_broken_off_epoch_leaves_the_position(tmp_path: Path) -> None:
    """The next loop, and a reader with the state, give as many batches as an epoch has, as in DALI 2.4."""
    files = numbered(tmp_path, 5)
    reader = ndd.readers.File(files=files)
    first = reader.next_epoch(batch_size=2)
    assert next(first)[0].select(1).item() == 1
    assert numbers(reader.next_epoch(batch_size=2)) == [[2, 3], [4, 0], [1, 2]]
    assert numbers(first) == [[3, 4], [0, 1]]
    assert numbers(reader.next_epoch(batch_size=2)) == [[2, 3], [4, 0], [1, 2]]
    assert numbers(reader.next_epoch(batch_size=3)) == [[3, 4, 0], [1, 2, 3]], "another size of batches goes on"
    state = reader.get_state()
    other = ndd.readers.File(files=files)
    other.set_state(state)
    assert numbers(other.next_epoch(batch_size=2)) == [[4, 0], [1, 2], [3, 4]]
    for one in (reader, other):
        one.close()


def test_a_state_brings_the_seed_of_its_order(tmp_path: Path) -> None:
    settings = {"files": numbered(tmp_path, 12), "random_shuffle": True}
    reader = ndd.readers.File(**settings)
    begun = reader.next_epoch(batch_size=4)
    next(begun)
    state = reader.get_state()
    rest = numbers(begun)
    for other in (ndd.readers.File(**settings), ndd.readers.File(**settings, seed=-1)):
        assert len(numbers(other.next_epoch(batch_size=4))) == 3
        other.set_state(state)
        assert numbers(other.next_epoch(batch_size=4))[:2] == rest
        other.close()
    fixed = ndd.readers.File(**settings, seed=1)
    with pytest.raises(StateError, match="another seed"):
        fixed.set_state(state)
    shorter = ndd.readers.File(files=settings["files"][:9], random_shuffle=True)
    seed = shorter._seed
    with pytest.raises(StateError, match="another data set"):
        shorter.set_state(state)
    assert shorter._seed == seed and sorted(numbers(shorter.next_epoch(batch_size=9))[0]) == list(range(9))
    for one in (reader, fixed, shorter):
        one.close()


def test_rows_are_those_of_a_pipeline(folder: Path) -> None:
    settings = {"file_root": str(folder), "random_shuffle": True}
    reader = ndd.readers.File(**settings, seed=11)
    found = [epoch(reader, 7) for _ in range(2)]
    reader.close()
    pipe = stoker.Pipeline(batch_size=7, num_threads=1, seed=11)
    with pipe:
        pipe.set_outputs(*stoker.fn.readers.file(**settings))
    with pipe:
        want = [[np.asarray(pipe.run()[1].as_array()).reshape(-1).tolist()] for _ in range(2)]
    assert found == want


def test_sources_in_python() -> None:
    source = ndd.ExternalSource(lambda: np.ones(3))
    assert source().shape == (3,) and source(batch_size=2).shape == [(3,), (3,)]
    once = ndd.ExternalSource([np.zeros(2), np.ones(2)], layout="F", dtype=ndd.float32)
    assert [x.item() for x in once()] == [0, 0] and (once().layout, str(once._types[0].name)) == ("F", "float32")
    with pytest.raises(StopIteration):
        once()
    again = ndd.ExternalSource([1, 2], cycle=True)
    assert [again().item() for _ in range(5)] == [1, 2, 1, 2, 1]
    two = ndd.ExternalSource(lambda: ([1, 2], [3.0, 4.0]), num_outputs=2)
    a, b = two(batch_size=2)
    assert (a.select(1).item(), b.select(0).item()) == (2, 3.0)
    with pytest.raises(ArgumentError, match="begin again"):
        ndd.ExternalSource(iter([1]), cycle=True)


def test_checkpoints(folder: Path, tmp_path: Path) -> None:
    def objects() -> tuple[Any, Any]:
        return ndd.readers.File(file_root=str(folder), random_shuffle=True, seed=4), ndd.random.RNG(seed=42)

    reader, rng = objects()
    checkpoint = ndd.checkpoint.Checkpoint()
    assert checkpoint.register(reader, "reader") == "reader" and checkpoint.register(rng, "rng") == "rng"
    rows = reader.next_epoch(batch_size=2)
    next(rows)
    rng()
    checkpoint.collect()
    pattern = str(tmp_path / "state_{seq:03d}.json")
    assert [Path(checkpoint.save(pattern)).name for _ in range(2)] == ["state_000.json", "state_001.json"]
    assert checkpoint.is_complete and checkpoint.names == ("reader", "rng") and len(checkpoint) == 2
    rest = [[x.item() for x in labels] for _, labels in rows]
    drawn = rng()
    full = rest + epoch(reader, 2)[:1]  # a restored reader gives a whole epoch's number of batches

    other_reader, other_rng = objects()
    loaded = ndd.checkpoint.Checkpoint()
    assert loaded.load(pattern).endswith("state_001.json") and loaded.is_loaded
    loaded.register(other_reader, "reader")
    loaded.register(other_rng, "rng")
    assert epoch(other_reader, 2) == full and other_rng() == drawn
    loaded.restore()
    assert epoch(other_reader, 2) == full
    for one in (reader, other_reader):
        one.close()
    with pytest.raises(StateError, match="'RNG'"):
        loaded.register(ndd.random.RNG(), "reader")
        loaded.restore()
    with pytest.raises(RuntimeError, match="text of `serialize`"):
        loaded.deserialize("{}")


def test_contexts_and_devices() -> None:
    with ndd.EvalContext(num_threads=2) as context:
        assert ndd.EvalContext.current() is context and context.num_threads == 2
        assert ndd.checkpoint.current() is context.checkpoint
    assert ndd.EvalContext.current() is ndd.EvalContext.default()
    with ndd.EvalMode.deferred:
        assert ndd.EvalMode.current() is ndd.EvalMode.deferred
    assert ndd.EvalMode.current() is ndd.EvalMode.default is ndd.EvalMode.eager
    with ndd.Device("cpu") as device:
        assert ndd.Device.current() == device and str(device) == "cpu"
    t = ndd.tensor(X)
    assert t.cpu() is t and t.evaluate() is t and t.to_device("cpu") is t
    assert ndd.device(None) is None and ndd.device("cpu") == ndd.Device.CPU and repr(ndd.Device.CPU).count("cpu") == 1
    assert ndd.Device.from_dlpack(X) == ndd.Device.CPU and ndd.Device.type_from_dlpack(2) == "gpu"
    for wrong in ("tpu", "mixed", "gpu:x", "cpu:0"):
        with pytest.raises(ValueError, match="expected"):
            ndd.Device(wrong)
    with pytest.raises(TypeError, match="a device or its name"):
        ndd.device(3)


def test_without_a_gpu_devices_are_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(devices, "count_gpus", lambda: 0)
    t = ndd.tensor(X)
    assert ndd.Device.current() == ndd.Device.CPU and ndd.get_current_stream() is ndd.get_default_stream() is None
    for wrong in (t.gpu, lambda: ndd.tensor(X, device="gpu"), lambda: ndd.flip(t, device="gpu"), ndd.stream):
        with pytest.raises(RuntimeError, match="no CUDA GPU"):
            wrong()


def test_operators_obey_the_number_of_threads(monkeypatch: pytest.MonkeyPatch) -> None:
    """Every thread of the context computes a part of the rows; results do not change."""
    images = ndd.batch([np.full((4, 5, 3), i, np.uint8) for i in range(12)], layout="HWC")
    parts: list[int] = []
    run = planned_call.RowThreads.map

    def counted(pool: Any, function: Any, firsts: Any, ends: Any) -> Any:
        parts.append(len(ends))
        return run(pool, function, firsts, ends)

    monkeypatch.setattr(planned_call.RowThreads, "map", counted)
    with ndd.EvalContext(num_threads=1):
        want = ndd.as_tensor(ndd.resize(images, size=[3, 2]))
        assert not parts
    pool = ndd.ThreadPool(3)
    for context in (ndd.EvalContext(num_threads=3), ndd.EvalContext(thread_pool=pool)):
        with context:
            assert context.num_threads == 3
            assert np.array_equal(ndd.as_tensor(ndd.resize(images, size=[3, 2])), want)
    assert parts == [3, 3] and context.thread_pool is pool
    before = ndd.get_num_threads()
    ndd.set_num_threads(4)
    try:
        assert ndd.EvalContext.default().num_threads == ndd.get_num_threads() == 4
    finally:
        ndd.set_num_threads(None)
    assert ndd.get_num_threads() == before
    with pytest.raises(ValueError, match="got both"):
        ndd.EvalContext(num_threads=2, thread_pool=pool)


def test_a_context_is_active_in_one_thread_at_a_time() -> None:
    raised: list[BaseException] = []
    context = ndd.EvalContext()

    def enter() -> None:
        try:
            with context:
                pass
        except RuntimeError as error:
            raised.append(error)

    with context, context:
        thread = threading.Thread(target=enter)
        thread.start()
        thread.join()
    assert len(raised) == 1
    enter()
    assert len(raised) == 1


def test_captured_loops_give_the_same(folder: Path) -> None:
    def files() -> Any:
        return ndd.readers.File(file_root=str(folder))

    plain, captured = files(), files()
    want = [labels for _, labels in plain.next_epoch(batch_size=3)]
    context = ndd.EvalContext(num_threads=2)
    got = []
    for _, labels in captured.next_epoch(batch_size=3, capture=True, ctx=context):
        assert ndd.EvalContext.current() is context
        got.append(labels)
    assert ndd.EvalContext.current() is not context
    assert all(np.array_equal(ndd.as_tensor(a), ndd.as_tensor(b)) for a, b in zip(got, want, strict=True))
    assert ndd.capture.invariant(folder) is folder
    with pytest.raises(RuntimeError, match="as in earlier epochs"):
        captured.next_epoch(batch_size=3)
    with pytest.raises(ValueError, match="`batch_size` with `capture=True`"):
        files().next_epoch(capture=True)
    source = ndd.ExternalSource([[X, X], [X + 1, X + 1]])
    assert [b.select(0)[0, 0, 0].item() for b in source.captured(2)] == [0, 1]
    assert len(list(source.captured(2))) == 2, "a second loop begins again"


def test_nodes_of_torchdata(folder: Path) -> None:
    torch = pytest.importorskip("torch")
    pytest.importorskip("torchdata.nodes")
    import torchdata.nodes

    nodes = importlib.import_module("stoker.dali.experimental.dynamic.pytorch").nodes

    def loader() -> Any:
        node = nodes.Reader(ndd.readers.File, batch_size=2, seed=5, file_root=str(folder), pad_last_batch=True)
        node = nodes.DictMapper(node, lambda x: ndd.resize(ndd.decoders.image(x), size=[4, 5]))
        return torchdata.nodes.Loader(nodes.ToTorch(node))

    one = loader()
    epochs = [list(one), list(one)]
    images, labels = epochs[0][0]
    assert isinstance(images, torch.Tensor) and images.shape == (2, 4, 5, 3) and labels.shape == (2, 1)
    assert [len(e) for e in epochs] == [4, 4]
    other = loader()
    begun = iter(other)
    next(begun)
    state = other.state_dict()
    resumed = loader()
    resumed.load_state_dict(state)
    rest = list(resumed)
    assert len(rest) == 3 and len(list(resumed)) == 4, "the rest of the epoch, and the next one"
    assert all(torch.equal(a, b) for x, y in zip(rest, epochs[0][1:], strict=True) for a, b in zip(x, y, strict=True))
    with pytest.raises(ValueError, match="names of 2 outputs"):
        nodes.Reader(ndd.readers.File, batch_size=2, file_root=str(folder), output_names=["x"])
    with pytest.raises(RuntimeError, match="reset"):
        nodes.Reader(ndd.readers.File, batch_size=2, file_root=str(folder)).next()
