# SPDX-License-Identifier: Apache-2.0
"""Whole scripts give equal samples, order and augmentation, for any number of workers and any start method."""

from __future__ import annotations

import hashlib
import inspect
import os
import signal
import threading
from pathlib import Path
from typing import Any

import pytest
import torch
import torchvision.transforms as transforms
from idle_clock import HANG_S
from PIL import Image, ImageEnhance, ImageOps

import stoker.torchvision
from stoker.frontends.torchvision import counts
from stoker.frontends.torchvision.hooks import switch
from stoker.frontends.torchvision.ir import packing
from stoker.frontends.torchvision.tensors.tensor import LazyTensor
from tests.forked import ForkServer
from tests.takeover.conftest import exactly
from tests.takeover.lazily import lazily
from tests.takeover.scripts import (
    Slow,
    Tolerant,
    Views,
    WorkerNames,
    classification,
    erasing,
    release,
    run,
    second_generation,
)  # fmt: skip

ROOT = Path(__file__).resolve().parents[2]


def equal(a: Any, b: Any) -> None:
    """Assert that batches are equal in structure, types and bits."""
    assert type(a) is type(b)
    if isinstance(a, torch.Tensor):
        exactly(a, b)
    elif isinstance(a, (list, tuple)):
        assert len(a) == len(b)
        for x, y in zip(a, b, strict=True):
            equal(x, y)
    else:
        assert a == b


@pytest.mark.parametrize("workers", [0, 1, 2])
def test_the_classification_script(files: Path, workers: int) -> None:
    untouched = run(classification(str(files), workers), epochs=2)
    counts.reset()
    with stoker.torchvision.enabled():
        ours = run(classification(str(files), workers), epochs=2)
    equal(untouched, ours)
    total = counts.totals()
    assert total[counts.NATIVE] == 2 * 17, "all stay lazy to the end, those that Pillow decodes too"
    assert not total[counts.PIXELS] and not total[counts.TORCH]


@pytest.mark.parametrize("workers", [0, 2])
@pytest.mark.parametrize("backend", ["pil", "tensor"])
def test_the_second_generation(files: Path, workers: int, backend: str) -> None:
    untouched = run(second_generation(str(files), workers, backend))
    with stoker.torchvision.enabled():
        equal(untouched, run(second_generation(str(files), workers, backend)))


@pytest.mark.parametrize("workers", [0, 2])
def test_erased_windows_and_colours_stay_lazy(files: Path, workers: int) -> None:
    untouched = run(erasing(str(files), workers))
    counts.reset()
    with stoker.torchvision.enabled():
        equal(untouched, run(erasing(str(files), workers)))
    assert counts.totals()[counts.NATIVE] == 17
    assert not counts.totals()[counts.PIXELS] and not counts.totals()[counts.TORCH]


@pytest.mark.leaks("Python's fork server lives as long as the process")
def test_spawned_workers(files: Path) -> None:
    untouched = run(classification(str(files), 1))
    counts.reset()
    with stoker.torchvision.enabled():
        ours = run(classification(str(files), 1, multiprocessing_context="forkserver"))
    equal(untouched, ours)
    assert counts.totals()[counts.NATIVE] == 17


def test_persistent_workers(files: Path) -> None:
    untouched = run(classification(str(files), 2, persistent_workers=True), epochs=3)
    with stoker.torchvision.enabled():
        equal(untouched, run(classification(str(files), 2, persistent_workers=True), epochs=3))


def test_an_epoch_that_is_left_early(files: Path, taken_over: None) -> None:
    loader = classification(str(files), 2)
    first = next(iter(loader))
    assert type(first[0]) is torch.Tensor
    del loader


@pytest.mark.parametrize("workers", [0, 2])
def test_views_share_one_decode(files: Path, workers: int, monkeypatch: pytest.MonkeyPatch) -> None:
    def loader() -> Any:
        return torch.utils.data.DataLoader(Views(files), batch_size=5, shuffle=True, num_workers=workers)

    untouched = run(loader())
    batches: list[Any] = []
    pack = packing.pack
    monkeypatch.setattr(packing, "pack", lambda *args: batches.append(pack(*args)) or batches[-1])
    counts.reset()
    with stoker.torchvision.enabled():
        equal(untouched, run(loader()))
    assert counts.totals()[counts.NATIVE] == 3 * 16
    travelling = 2 if workers else 0  # a worker sends one recipe per view of pixels that Pillow has decoded
    assert sum(len(packed.rows) for packed in batches) == 16 + travelling, (
        "one recipe, with one decoding, for three views"
    )


def test_ten_crops(files: Path) -> None:
    def ten(image: Image.Image) -> Any:
        crops = transforms.TenCrop(24)(transforms.Resize(40)(image))
        return torch.stack([transforms.ToTensor()(crop) for crop in crops])

    image_file = files / "bee" / "3.jpg"
    untouched = ten(Image.open(image_file).convert("RGB"))
    with lazily():
        lazy = ten(Image.open(image_file).convert("RGB"))
        assert issubclass(type(lazy), LazyTensor) and lazy.shape == (10, 3, 24, 24)
        exactly(untouched, lazy.clone().numpy())


@pytest.mark.parametrize("workers", [0, 2])
@pytest.mark.parametrize("damage", ["truncated", "corrupt"])
def test_a_damaged_file_raises_at_its_sample(tmp_path: Path, workers: int, damage: str) -> None:
    from photographs import photograph

    for i in range(8):
        Image.fromarray(photograph(i, 80, 100)).save(tmp_path / f"{i}.jpg")
    data = bytearray((tmp_path / "5.jpg").read_bytes())
    if damage == "truncated":
        data = data[: len(data) // 2]
    else:  # header and end marker are intact, but there is no picture
        at = data.index(b"\xff\xda")
        data = data[: at + 14] + b"\xff\xd9"
    (tmp_path / "5.jpg").write_bytes(bytes(data))

    def loader() -> Any:
        return torch.utils.data.DataLoader(Tolerant(tmp_path), batch_size=8, num_workers=workers)

    untouched = run(loader())
    with stoker.torchvision.enabled():
        equal(untouched, run(loader()))


@pytest.mark.leaks("torch keeps its threads")
@pytest.mark.parametrize("workers", [0, 2])
def test_a_damaged_file_is_reported_by_its_worker(tmp_path: Path, workers: int) -> None:
    from photographs import photograph

    for i in range(12):
        Image.fromarray(photograph(i, 80, 100)).save(tmp_path / f"{i:02}.jpg")
    data = bytearray((tmp_path / "05.jpg").read_bytes())
    data[data.index(b"\xff\xda") - 186] = 221  # an invalid code, found by decoding
    (tmp_path / "05.jpg").write_bytes(bytes(data))

    def loader() -> Any:
        return torch.utils.data.DataLoader(WorkerNames(tmp_path), batch_size=4, num_workers=workers)

    torch.set_num_threads(2)  # a worker has one thread
    try:
        untouched = run(loader())
        assert any("of 2" in name if workers else "main" in name for _, names in untouched for name in names)
        counts.reset()
        with stoker.torchvision.enabled():
            equal(untouched, run(loader()))
        assert torch.get_num_threads() == 2
    finally:
        torch.set_num_threads(1)
    assert counts.totals()[counts.RETRIED] == 1
    assert torch.utils.data.get_worker_info() is None


@pytest.mark.parametrize("on", [False, True])
def test_a_loader_that_times_out(tmp_path: Path, on: bool) -> None:
    def script() -> list[int]:
        data = Slow(tmp_path / f"rest-{on}")
        batches = iter(torch.utils.data.DataLoader(data, num_workers=1, timeout=int(HANG_S)))
        samples = [next(batches).item() for _ in range(2)]  # a busy machine may take more than a second for these
        batches._timeout = 0.2
        with pytest.raises(RuntimeError, match=r"timed out after 0\.2"):
            next(batches)
        data.rest.touch()
        return samples

    if on:
        with stoker.torchvision.enabled():
            assert script() == [0, 1]
    else:
        assert script() == [0, 1]


def leaks_with_older_torch(test: Any) -> Any:
    """Exempt a test from the check of open files with releases whose loader keeps a pipe, without Stoker too."""
    release = tuple(map(int, torch.__version__.split(".")[:2]))
    return pytest.mark.leaks("torch keeps a queue's pipe after Ctrl-C")(test) if release < (2, 10) else test


@leaks_with_older_torch
@pytest.mark.parametrize("on", [False, True])
def test_ctrl_c_while_the_consumer_waits(tmp_path: Path, on: bool) -> None:
    def script() -> list[int]:
        samples: list[int] = []
        data = Slow(tmp_path / f"rest-{on}")
        timer = threading.Timer(0.7, os.kill, (os.getpid(), signal.SIGINT))
        with pytest.raises(KeyboardInterrupt) as caught:
            for x in torch.utils.data.DataLoader(data, num_workers=1):
                samples += x.tolist()
                if len(samples) == 2:
                    timer.start()
        data.rest.touch()
        release(caught.value)
        timer.join(HANG_S)
        return samples

    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    try:
        if on:
            with stoker.torchvision.enabled():
                assert script() == [0, 1]
        else:
            assert script() == [0, 1]
    finally:
        signal.signal(signal.SIGINT, before)


def test_an_error_of_a_worker_is_raised_as_it_was(tmp_path: Path, files: Path) -> None:
    (tmp_path / "ant").mkdir()
    data = (files / "ant" / "0.jpg").read_bytes()
    (tmp_path / "ant" / "0.jpg").write_bytes(data[: len(data) // 2])
    for workers in (0, 1):
        texts = []
        for on in (False, True):
            if on:
                stoker.torchvision.enable()
            try:
                with pytest.raises(OSError, match="truncated") as caught:
                    run(classification(str(tmp_path), workers))
                texts.append(str(caught.value).splitlines()[0])
                release(caught.value)
            finally:
                stoker.torchvision.disable()
        assert texts[0] == texts[1]


def mixed(batch: list[Any]) -> Any:
    """Collate with arithmetic across samples."""
    images = torch.stack([image for image, _ in batch])
    return images * 0.75 + images.flip(0) * 0.25, [label for _, label in batch]


def forced_early(batch: list[Any]) -> Any:
    """Collate with a branch on values."""
    images = torch.stack([image for image, _ in batch])
    return images, images.amax((1, 2, 3))


@pytest.mark.parametrize("workers", [0, 2])
def test_a_custom_collate_function(files: Path, workers: int) -> None:
    untouched = run(classification(str(files), workers, collate_fn=mixed))
    with stoker.torchvision.enabled():
        equal(untouched, run(classification(str(files), workers, collate_fn=mixed)))


def test_the_module_runs_a_script_with_spawned_workers(files: Path, tmp_path: Path, forked: ForkServer) -> None:
    script = tmp_path / "train.py"
    script.write_text(
        "import sys, hashlib\n"
        "from tests.takeover.scripts import classification, run\n"
        "class Here:\n"
        "    def __call__(self, worker): pass\n"
        "if __name__ == '__main__':\n"
        "    loader = classification(sys.argv[1], 1, worker_init_fn=Here(), multiprocessing_context='spawn')\n"
        "    print(hashlib.sha256(b''.join(x.numpy().tobytes() for x, _ in run(loader))).hexdigest())\n"
        "    import stoker.torchvision; print(stoker.torchvision.is_enabled(), __name__, sys.argv[2:])\n"
    )
    launch = "import runpy; runpy.run_module('stoker.torchvision', run_name='__main__', alter_sys=True)"
    untouched = b"".join(x.numpy().tobytes() for x, _ in run(classification(str(files), 1)))
    done = forked.run("-c", launch, script, files, "--lr", "1")
    assert done.returncode == 0, done.stderr
    assert done.stdout.splitlines() == [hashlib.sha256(untouched).hexdigest(), "True __main__ ['--lr', '1']"]


def changed_by_fetches() -> list[Any]:
    """Return what a fetch changes in other libraries."""
    from torch.utils.data._utils import collate

    return [
        Image.OPEN["JPEG"],
        transforms.ToTensor.__call__.__code__,
        transforms.functional.to_tensor.__code__,
        ImageOps.expand.__code__,
        ImageEnhance.Contrast,
        LazyTensor in collate.default_collate_fn_map,
    ]


def test_only_a_fetch_changes_other_libraries(files: Path) -> None:
    before, seen = changed_by_fetches(), []

    class Watching(torch.utils.data.Dataset[Any]):
        def __len__(self) -> int:
            return 3

        def __getitem__(self, index: int) -> Any:
            seen.append(changed_by_fetches())
            inspect.getsource(transforms.functional.to_tensor)
            return index

    with stoker.torchvision.enabled():
        assert changed_by_fetches() == before
        for _ in torch.utils.data.DataLoader(Watching()):
            assert changed_by_fetches() == before
            with switch.fetching(), switch.fetching():
                pass
            assert changed_by_fetches() == before
    assert len(seen) == 3 and all(a != b for now in seen for a, b in zip(now, before, strict=True))
    assert changed_by_fetches() == before


def test_disabling_within_a_fetch_restores_all_changes() -> None:
    before = changed_by_fetches()
    with stoker.torchvision.enabled():
        with switch.fetching():
            stoker.torchvision.disable()
            assert changed_by_fetches() == before
        assert changed_by_fetches() == before


def test_disabling_restores_all_patches() -> None:
    def patched() -> tuple[Any, ...]:
        from torch.utils.data._utils import fetch

        return torch.utils.data.DataLoader._get_iterator, fetch._MapDatasetFetcher.fetch

    before = patched()
    with stoker.torchvision.enabled():
        stoker.torchvision.enable()  # a second call has no effect
        assert all(a != b for a, b in zip(before, patched(), strict=True))
        with stoker.torchvision.enabled():
            pass
        assert stoker.torchvision.is_enabled(), "an outer take-over stays enabled"
    assert patched() == before


def test_the_report_counts(files: Path, taken_over: None, caplog: pytest.LogCaptureFixture) -> None:
    run(classification(str(files), 2, collate_fn=forced_early))
    report = stoker.torchvision.report()
    assert report.counts["files that Pillow decodes (another format or kind of JPEG, damaged, truncated)"] == 2
    assert report.counts["another operation of torch"] > 0
    assert "another operation of torch" in str(report)
    assert sum("another operation of torch" in r.message for r in caplog.records) == 1, "said once"
