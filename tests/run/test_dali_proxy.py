# SPDX-License-Identifier: Apache-2.0
"""DALI Proxy with PyTorch's real worker processes, and the evaluator of loaders."""

from __future__ import annotations

import json
import pickle
import threading
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import pytest

torch = pytest.importorskip("torch", exc_type=ModuleNotFoundError)

from PIL import Image  # noqa: E402

from stoker import ArgumentError, DataError, StateError, StokerError, eager, fn, types  # noqa: E402
from stoker.dali import pipeline_def  # noqa: E402
from stoker.dali.plugin.pytorch.experimental import proxy as dali_proxy  # noqa: E402
from stoker.dali.plugin.pytorch.loader_evaluator import LoaderEvaluator  # noqa: E402


@pytest.fixture(scope="module")
def files(jpegs: Path) -> list[str]:
    return sorted(str(p) for p in jpegs.rglob("*.jpg"))[:10]


@pipeline_def(batch_size=4, num_threads=2, seed=3)
def decoding() -> Any:
    data = fn.external_source(name="data", dtype=types.UINT8, ndim=1)
    return fn.resize(fn.decoders.image(data), size=[12, 16])


@pipeline_def(batch_size=4, num_threads=2, seed=3)
def two_of_two() -> Any:
    a = fn.external_source(name="a", dtype=types.INT32, ndim=0)
    b = fn.external_source(name="b", dtype=types.INT32, ndim=0)
    return a + b, a * b


@pipeline_def(batch_size=4, num_threads=2, seed=3)
def shifting() -> Any:
    return fn.external_source(name="a", dtype=types.FLOAT, ndim=0) + fn.random.uniform(range=(0.0, 100.0))


class Files(torch.utils.data.Dataset):  # type: ignore[misc,name-defined]
    def __init__(self, files: list[str], transform: Any) -> None:
        self.files, self.transform = files, transform

    def __len__(self) -> int:
        return len(self.files)

    def __getitem__(self, i: int) -> Any:
        return self.transform(np.fromfile(self.files[i], np.uint8)), i


class Pair(NamedTuple):
    left: Any
    right: Any


class Numbers(Files):
    def __init__(self, count: int, transform: Any) -> None:
        super().__init__([""] * count, transform)

    def __getitem__(self, i: int) -> Any:
        left, right = self.transform(a=np.int32(i), b=torch.tensor(i + 1, dtype=torch.int32))
        return {"pair": Pair(left, right), "name": str(i)}


class Floats(Files):
    def __getitem__(self, i: int) -> Any:
        return self.transform(np.float32(i))


@pytest.mark.parametrize("workers", [0, 2])
def test_batches_have_the_pipelines_pixels(files: list[str], workers: int) -> None:
    with dali_proxy.DALIServer(decoding()) as server:
        loader = dali_proxy.DataLoader(server, Files(files, server.proxy), batch_size=4, num_workers=workers)
        for _ in range(2):
            seen = list(loader)
            assert [len(images) for images, _ in seen] == [4, 4, 2]
            assert torch.cat([numbers for _, numbers in seen]).tolist() == list(range(10))
            for images, numbers in seen:
                for image, i in zip(images, numbers, strict=True):
                    want = eager.resize(np.asarray(Image.open(files[i]).convert("RGB")), size=[12, 16])
                    np.testing.assert_array_equal(image.numpy(), want)
    assert not [t for t in threading.enumerate() if t.name.startswith("stoker-proxy")]


def test_several_outputs_and_named_inputs_in_nested_batches() -> None:
    with dali_proxy.DALIServer(two_of_two()) as server:
        loader = dali_proxy.DataLoader(server, Numbers(7, server.proxy), batch_size=3, num_workers=2)
        batches = list(loader)
    assert [b["name"] for b in batches] == [["0", "1", "2"], ["3", "4", "5"], ["6"]]
    assert all(isinstance(b["pair"], Pair) for b in batches)
    assert torch.cat([b["pair"].left for b in batches]).tolist() == [2 * i + 1 for i in range(7)]
    assert torch.cat([b["pair"].right for b in batches]).tolist() == [i * (i + 1) for i in range(7)]


def test_random_numbers_depend_on_no_worker() -> None:
    def run(workers: int) -> list[float]:
        with dali_proxy.DALIServer(shifting(), deterministic=True) as server:
            data = Floats([""] * 9, server.proxy)
            loader = dali_proxy.DataLoader(server, data, batch_size=2, num_workers=workers)
            return [float(x) for _ in range(2) for batch in loader for x in batch]

    numbers = run(0)
    assert len(set(numbers)) == 18
    assert run(1) == numbers and run(2) == numbers


@pytest.mark.parametrize("started", [False, True])
def test_a_loader_of_torch_and_produce_data(files: list[str], started: bool) -> None:
    server = dali_proxy.DALIServer(decoding())
    if started:
        server.start_thread()
    loader = torch.utils.data.DataLoader(Files(files, server.proxy), batch_size=4, num_workers=1)
    for batch in loader:
        images, numbers = server.produce_data(batch)
        assert images.shape == (len(numbers), 12, 16, 3)
    server.stop_thread()
    server.stop_thread()


def test_persistent_workers_and_an_early_stop(files: list[str]) -> None:
    with dali_proxy.DALIServer(decoding()) as server:
        loader = dali_proxy.DataLoader(
            server, Files(files, server.proxy), batch_size=2, num_workers=1, persistent_workers=True
        )
        first = iter(loader)
        next(first)
        first.close()
        with pytest.raises(StopIteration):
            next(first)
        for _ in range(2):
            assert torch.cat([n for _, n in loader]).tolist() == list(range(10))


class Failing(Files):
    def __getitem__(self, i: int) -> Any:
        if i == 5:
            raise ValueError("the sixth file")
        return super().__getitem__(i)


def test_errors_of_workers_and_of_the_pipeline(files: list[str], tmp_path: Path) -> None:
    with dali_proxy.DALIServer(decoding()) as server:
        loader = dali_proxy.DataLoader(server, Failing(files, server.proxy), batch_size=2, num_workers=1)
        batches = iter(loader)
        next(batches), next(batches)
        with pytest.raises(ValueError, match="the sixth file"):
            next(batches)
    bad = tmp_path / "bad.jpg"
    bad.write_bytes(b"no picture")
    with dali_proxy.DALIServer(decoding()) as server:
        loader = dali_proxy.DataLoader(server, Files([files[0], str(bad)], server.proxy), batch_size=2)
        with pytest.raises(StokerError, match="row 1"):
            list(loader)


def test_wrong_use() -> None:
    server = dali_proxy.DALIServer(two_of_two())
    with pytest.raises(ArgumentError, match=r"expected one value, or values by the names \['a', 'b'\], got 1"):
        server.proxy(1)
    with pytest.raises(ArgumentError, match=r"there is no source called 'aa'; did you mean `?a"):
        server.proxy(aa=1, b=2)
    with pytest.raises(ArgumentError, match="expected a value for 'b', got none"):
        server.proxy(a=1)
    with pytest.raises(DataError, match="got one that was not collated"):
        pickle.dumps(server.proxy(a=1, b=2))
    with pytest.raises(ArgumentError, match="expected a DALIServer, got list"):
        dali_proxy.DataLoader([], [1])  # type: ignore[arg-type]
    with pytest.raises(ArgumentError, match="expected a Pipeline"):
        dali_proxy.DALIServer(3)  # type: ignore[arg-type]

    @pipeline_def(batch_size=2, num_threads=1)
    def reading() -> Any:
        return fn.readers.file(files=["a.jpg"])[0]

    with pytest.raises(ArgumentError, match="expected sources that requests feed"):
        dali_proxy.DALIServer(reading())


def slow(count: int, seconds: float) -> Iterator[int]:
    for i in range(count):
        time.sleep(seconds)
        yield i


class Slow:
    def __init__(self, count: int, seconds: float) -> None:
        self.count, self.seconds, self.batch_size = count, seconds, 7

    def __len__(self) -> int:
        return self.count

    def __iter__(self) -> Iterator[int]:
        return slow(self.count, self.seconds)


def test_an_evaluator_logs_the_waits(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    found = LoaderEvaluator(Slow(5, 0.01), metrics_file=tmp_path / "metrics.json")
    with pytest.raises(StateError, match="expected at least one batch"):
        found.get_metrics()
    assert list(found) == [0, 1, 2, 3, 4] and len(found) == 5 and found.batch_size == 7
    metrics = found.get_metrics()
    assert metrics["total_batches"] == 5 and len(metrics["batch_times"]) == 5
    assert 0.05 <= metrics["wait_time"] <= metrics["total_time"] and metrics["min_batch_time"] >= 0.01
    assert json.loads((tmp_path / "metrics.json").read_text()) == metrics
    found.print_summary()
    assert "5 batches in" in capsys.readouterr().out
    with pytest.raises(TypeError, match="a generator has no length"):
        len(LoaderEvaluator(slow(1, 0)))


def test_an_evaluator_replays_batches() -> None:
    waits: list[float] = []
    while len(waits) < 10 and min(waits, default=1.0) >= 0.1:  # on a busy machine any wait may be long
        found = LoaderEvaluator(Slow(5, 0.2), "replay", num_cached_batches=2)
        assert list(found) == [0, 1, 0, 1, 0]
        assert list(found) == [0, 1, 0, 1, 0]
        metrics = found.get_metrics()
        assert metrics["total_batches"] == 10
        waits.append(metrics["wait_time"])
    assert min(waits) < 0.1, waits
    assert list(LoaderEvaluator([], "replay")) == []


@pytest.mark.parametrize(
    "wrong", [{"dataloader": 3}, {"mode": "both"}, {"num_cached_batches": 0}, {"metrics_file": 1.5}]
)
def test_wrong_arguments_of_an_evaluator(wrong: dict[str, Any]) -> None:
    with pytest.raises(ArgumentError, match="`LoaderEvaluator`: expected"):
        LoaderEvaluator(**{"dataloader": [1], **wrong})
