# SPDX-License-Identifier: Apache-2.0
"""Batches in a GPU's memory equal the untouched script's. The null device is GPU 0 unless there is one."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import emulated_stages
import numpy as np
import pytest
import torch
from PIL import Image, ImageFilter

import stoker.torchvision
from stoker import DeviceError
from stoker.device.gpu import Gpu
from stoker.frontends.torchvision import counts
from stoker.frontends.torchvision.gpu import destination, grouping, plans
from stoker.frontends.torchvision.gpu.destination import Destination, GpuMaterialization, pin_batch
from stoker.frontends.torchvision.ir import packing, steps
from stoker.frontends.torchvision.ir.recipe import Node
from stoker.frontends.torchvision.loader import delivery
from stoker.frontends.torchvision.tensors.tensor import LazyTensor, image_tensor
from stoker.frontends.torchvision.transport.source import Source
from stoker.native import _native
from tests.takeover import trials
from tests.takeover.collations import loader_of
from tests.takeover.scripts import Tolerant, Views, classification, erasing, run, second_generation

STAYS = pytest.mark.leaks("CUDA keeps its thread and files as long as the process")


@pytest.fixture(params=["null", pytest.param("cuda", marks=[emulated_stages.NEEDS_GPU, STAYS])])
def placed(
    kernel_folder: Path, monkeypatch: pytest.MonkeyPatch, request: pytest.FixtureRequest
) -> Iterator[Destination]:
    """The take-over, enabled with batches on GPU 0."""
    if request.param == "null":
        monkeypatch.setattr(
            Gpu, "open", staticmethod(lambda number, limit=None: emulated_stages.EmulatedStages(kernel_folder))
        )
        monkeypatch.setattr(plans, "GPU_LOAD", 0.0)
        monkeypatch.setattr(plans, "JOBS_IN_FLIGHT", 1)  # an emulated kernel runs one launch at a time
    destination = Destination(torch.device("cuda:0" if request.param == "cuda" else "cpu"), 0, 1)
    monkeypatch.setattr(delivery, "destination", lambda workers: destination)
    monkeypatch.setattr(delivery, "is_on_gpu", lambda: True)
    monkeypatch.setattr(grouping, "_MIN_FILES", 2)
    yield destination
    destination.close()


def equal(a: Any, b: Any, destination: Destination) -> None:
    if isinstance(a, torch.Tensor):
        assert a.dtype == b.dtype and a.shape == b.shape
        assert torch.equal(a, b.cpu())
        if a.ndim > 3:
            assert b.device == destination.device and type(b) is type(a)
    elif isinstance(a, (list, tuple)):
        for x, y in zip(a, b, strict=True):
            equal(x, y, destination)
    else:
        assert a == b


@pytest.mark.parametrize("workers", [0, 2])
@pytest.mark.parametrize("script", ["classification", "second_generation", "erasing"])
def test_the_same_batches(files: Path, placed: Destination, script: str, workers: int) -> None:
    loaders: dict[str, Callable[[], Any]] = {
        "classification": lambda: classification(str(files), workers),
        "second_generation": lambda: second_generation(str(files), workers, "pil"),
        "erasing": lambda: erasing(str(files), workers),
    }
    untouched = run(loaders[script](), epochs=2)
    counts.reset()
    with stoker.torchvision.enabled():
        equal(untouched, run(loaders[script](), epochs=2), placed)
    total = counts.totals()
    assert total[counts.ON_GPU] + total[counts.TO_GPU] >= 2 * 15
    if script == "classification":
        assert total[counts.ON_GPU] >= 20, "all whole JPEG files, in every batch with some of them"


def test_many_views(files: Path, placed: Destination) -> None:
    def loader() -> Any:
        return torch.utils.data.DataLoader(Views(files), batch_size=5, shuffle=True)

    untouched = run(loader())
    with stoker.torchvision.enabled():
        equal(untouched, run(loader()), placed)


@pytest.mark.parametrize("workers", [0, 2])
@pytest.mark.parametrize("name", ["mixed_up", "padded_and_mixed", "bytes_added", "bytes_mixed", "bytes_cut"])
def test_collations(files: Path, placed: Destination, name: str, workers: int) -> None:
    """A collation's operations run where the images are, including the rounding to bytes."""
    untouched = run(loader_of(files, workers, name))
    counts.reset()
    with stoker.torchvision.enabled():
        equal(untouched, run(loader_of(files, workers, name)), placed)
    assert counts.totals()[counts.FORCED] == 0
    assert counts.totals()[counts.ON_GPU] >= 6, "images that are copied or mixed one by one, too"


@pytest.fixture
def with_damage(tmp_path: Path) -> Path:
    """Eight photographs, the sixth of which has a wrong segment in the middle of its image."""
    from photographs import photograph

    for i in range(8):
        Image.fromarray(photograph(i, 80, 100)).save(tmp_path / f"{i}.jpg")
    data = (tmp_path / "5.jpg").read_bytes()
    at = data.index(b"\xff\xda") + 400
    (tmp_path / "5.jpg").write_bytes(data[:at] + b"\xff\xc4\x00\x04\x00\x00" + data[at:])
    return tmp_path


@pytest.mark.parametrize("workers", [0, 2])
def test_a_damaged_file_raises_at_its_sample(
    with_damage: Path, placed: Destination, workers: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    by_the_cpu: list[int] = []

    class Counted(destination.Materialization):
        def __init__(self, tensors: Any, *args: Any) -> None:
            by_the_cpu.extend(len(tensor._rows) for tensor in tensors)
            super().__init__(tensors, *args)

    monkeypatch.setattr(destination, "Materialization", Counted)

    def loader() -> Any:
        return torch.utils.data.DataLoader(Tolerant(with_damage), batch_size=8, num_workers=workers)

    untouched = run(loader())
    with stoker.torchvision.enabled():
        equal(untouched, run(loader()), placed)
    assert by_the_cpu == [1], "the damaged one, once"


@pytest.mark.parametrize("bad", [{0}, {2, 3, 7}, {1, 2, 3, 4, 5, 6, 7}, set(range(8))])
def test_rows_that_fail_in_a_plan_run_on_the_cpu(with_damage: Path, placed: Destination, bad: set[int]) -> None:
    """The CPU replaces both views of files that the plan finds damaged, and finds them whole."""
    damaged = np.frombuffer((with_damage / "5.jpg").read_bytes(), np.uint8)
    rows: list[Any] = []
    wholes = []
    for i in range(8):
        whole = np.frombuffer((with_damage / f"{i if i != 5 else 0}.jpg").read_bytes(), np.uint8)
        root = Node.decode(Source(damaged if i in bad else whole), (100, 80), 3)
        rows += image_tensor(root.then(steps.Crop(i, 2, i + 40, 32), (40, 30)))._rows
        rows += image_tensor(root.then(steps.Crop(9, i, 49, i + 30), (40, 30)))._rows
        wholes.append((root.source, whole))
    tensor = LazyTensor(rows, (16,))
    materialization = GpuMaterialization([tensor], placed)
    job = materialization._parts[0].job
    assert job is not None
    job.wait()
    assert set(job.skipped) == bad
    for source, whole in wholes:
        source._data = whole
    materialization.finish()
    want = LazyTensor([row._replace() for row in rows], (16,))
    assert tensor._materialized is not None and torch.equal(tensor._materialized.cpu(), want + 0)


def compute_alone(destination: Destination, node: Node) -> np.ndarray[Any, Any]:
    """Return one image, computed by a plan."""
    width, height = node.size
    images, supply = destination.allocate((1, node.channels, height, width), torch.uint8)
    packed = packing.pack_single([packing.Row(node, None, 0, 0)])
    form = plans.Form(node.root.step.channels, False, (images.numel(),))
    job = plans.Job(form, grouping.Files.of([node.root.source]), grouping.Recipes.of([packed]), [supply])
    destination.plans.submit(job)
    error = job.wait()
    if error is not None:
        raise error
    return images.cpu().numpy()[0]


def test_plans_are_bounded(placed: Destination, files: Path) -> None:
    data = np.frombuffer((files / "bee" / "3.jpg").read_bytes(), np.uint8)
    with Image.open(files / "bee" / "3.jpg") as image:
        whole = image.convert("RGB")
    width, height = whole.size
    for side in range(8, 8 + 12):
        node = Node.decode(Source(data), (width, height), 3)
        node = node.then(steps.Resize(side, side, 0.0, float(height), 0.0, float(width), 1, 0), (side, side))
        want = np.asarray(whole.resize((side, side), Image.Resampling.BILINEAR))
        assert np.array_equal(compute_alone(placed, node).transpose(1, 2, 0), want)
    assert len(placed.plans._known) <= plans._MAX_FORMS


@pytest.mark.parametrize("rows_first", [0, 1])
def test_either_order_of_resampling(placed: Destination, files: Path, rows_first: int) -> None:
    data = np.frombuffer((files / "bee" / "3.jpg").read_bytes(), np.uint8)
    with Image.open(files / "bee" / "3.jpg") as image:
        width, height = image.size
    for number in (1, 2, 3):
        node = Node.decode(Source(data), (width, height), 3)
        params = (height // 4, width - 2, 0.0, float(height), 0.0, float(width), number, rows_first)
        node = node.then(steps.Resize(*params), (width - 2, height // 4))
        out = np.zeros(3 * (height // 4) * (width - 2), np.uint8)
        packed = packing.pack([packing.Row(node, None, 0, 0)], [out])
        _native.recipe.materialize(packed.native_batch)
        assert np.array_equal(compute_alone(placed, node).reshape(-1), out)


def test_invalid_recipes_are_left_out(placed: Destination, files: Path) -> None:
    """The plan skips an invalid recipe, and the CPU raises its error."""
    data = np.frombuffer((files / "bee" / "3.jpg").read_bytes(), np.uint8)
    with Image.open(files / "bee" / "3.jpg") as image:
        size = image.size
    node = Node.decode(Source(data), size, 3)
    wrong = node.then(steps.Transpose(0)).then(steps.Crop(0, 0, size[0] + 1, 4), (size[0] + 1, 4))
    materialization = GpuMaterialization([image_tensor(wrong)], placed)
    job = materialization._parts[0].job
    assert job is not None and job.wait() is None and job.skipped == (0,)
    with pytest.raises(RuntimeError, match="a crop that leaves the image"):
        materialization.finish()


def blurred(image: Any) -> Any:
    """Blur like Pillow; torch's sums depend on its build, so that they are not recorded everywhere."""
    return image.filter(ImageFilter.GaussianBlur(1.5)) if isinstance(image, Image.Image) else image


SCRIPTS: dict[str, Callable[..., Any]] = {
    "every kind of step": lambda t: [t.RandomResizedCrop(48), t.RandAugment(4), t.ColorJitter(0.4, 0.4, 0.4, 0.1)],
    "drawn policies": lambda t: [
        t.Resize(60),
        t.CenterCrop(56),
        t.RandomChoice([t.AutoAugment(), t.TrivialAugmentWide()]),
    ],
    "warps": lambda t: [t.RandomAffine(20, (0.1, 0.1), (0.8, 1.2), 9), t.RandomPerspective(p=1.0), t.Resize((40, 44))],
    "edges": lambda t: [t.CenterCrop(150), t.Pad(3, padding_mode="reflect"), t.RandomGrayscale(0.5)],
    "blurs": lambda t: [t.Resize((40, 44)), t.Lambda(blurred)],
}


class Augmented(torch.utils.data.Dataset[Any]):
    """All files of a folder, with the steps of a script."""

    def __init__(self, folder: Path, transform: Any) -> None:
        self.paths = sorted(folder.iterdir())
        self.transform = transform

    def __len__(self) -> int:
        return len(self.paths)

    def __getitem__(self, i: int) -> Any:
        torch.manual_seed(i)
        with Image.open(self.paths[i]) as image:
            return self.transform(image.convert("RGB"))


@pytest.fixture(scope="module")
def photographs(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Files in colour, in gray and of other formats, and a small one that Pillow keeps."""
    from photographs import photograph

    folder = tmp_path_factory.mktemp("steps")
    for i in range(8):
        image = Image.fromarray(photograph(i, 70 + i, 90))
        if i < 6:
            (image.convert("L") if i in (1, 3) else image).save(folder / f"{i}.jpg", quality=90)
        else:
            image.save(folder / f"{i}.png")
    Image.fromarray(photograph(9, 40, 50)).save(folder / "small.png")
    return folder


@pytest.mark.parametrize("script", SCRIPTS)
@pytest.mark.parametrize("after", [False, True], ids=["Pillow", "tensor"])
def test_all_steps_run_on_the_gpu(photographs: Path, placed: Destination, script: str, after: bool) -> None:
    import torchvision.transforms as v1
    from torchvision.transforms import v2

    library = v2 if after else v1
    steps = SCRIPTS[script](library)
    end = [v2.ToDtype(torch.float32, scale=True)] if after else [v1.ToTensor()]
    normal = library.Normalize([0.4, 0.5, 0.6], [0.2, 0.3, 0.4])
    start = [v2.ToImage()] if after else []
    transform = library.Compose([*start, *steps, *end, normal, library.RandomErasing(p=0.5, value="random")])

    def loader() -> Any:
        return torch.utils.data.DataLoader(Augmented(photographs, transform), batch_size=9)

    untouched = run(loader())
    counts.reset()
    with stoker.torchvision.enabled():
        equal(untouched, run(loader()), placed)
    total = counts.totals()
    known = trials.all_known(lambda: [Augmented(photographs, transform)[i] for i in range(9)])
    assert total[counts.ON_GPU] + total[counts.TO_GPU] == 9 or not known
    assert total[counts.ON_GPU] >= 8 or not known, "all but the one of few pixels"


class Crops:
    """Two large crops and eight small ones of an image, each with its own colours."""

    def __init__(self, library: Any) -> None:
        end = [library.ColorJitter(0.4, 0.4, 0.4, 0.1), library.RandomGrayscale(0.2), library.ToTensor()]
        self.transforms = [library.Compose([library.RandomResizedCrop(n), *end]) for n in [48] * 2 + [24] * 8]

    def __call__(self, image: Any) -> Any:
        return [transform(image) for transform in self.transforms]


@pytest.mark.parametrize("workers", [0, 2])
def test_ten_crops_of_a_file_are_one_row(
    photographs: Path, placed: Destination, workers: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    import torchvision.transforms as v1

    jobs: list[plans.Job] = []
    submit = placed.plans.submit
    monkeypatch.setattr(placed.plans, "submit", lambda job: (jobs.append(job), submit(job)))

    def loader() -> Any:
        return torch.utils.data.DataLoader(Augmented(photographs, Crops(v1)), batch_size=9, num_workers=workers)

    untouched = run(loader())
    counts.reset()
    with stoker.torchvision.enabled():
        equal(untouched, run(loader()), placed)
    assert counts.totals()[counts.ON_GPU] >= 8 * 10
    assert all(len(job.form.sizes) == 10 for job in jobs)
    assert sum(len(job._fed["files"]) for job in jobs) in (8, 9), "every file once"


def test_a_damaged_file_beside_all_kinds_of_steps(photographs: Path, tmp_path: Path, placed: Destination) -> None:
    import torchvision.transforms as v1

    for path in photographs.iterdir():
        (tmp_path / path.name).write_bytes(path.read_bytes())
    data = bytearray((tmp_path / "4.jpg").read_bytes())
    at = len(data) // 2
    data[at : at + 6] = b"\xff\xd9\xff\xd9\xff\xd9"
    (tmp_path / "4.jpg").write_bytes(data)
    transform = v1.Compose([v1.RandomResizedCrop(48), v1.RandAugment(), v1.ToTensor()])

    def loader() -> Any:
        return torch.utils.data.DataLoader(Augmented(tmp_path, transform), batch_size=9)

    def outcome() -> Any:
        try:
            return run(loader())
        except OSError as error:
            return str(error)

    untouched = outcome()
    with stoker.torchvision.enabled():
        equal(untouched, outcome(), placed)


def test_an_error_of_the_gpu_is_raised(placed: Destination, files: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def refused(*args: Any) -> Any:
        raise DeviceError("no such GPU")

    monkeypatch.setattr(plans, "_pipeline", refused)
    with stoker.torchvision.enabled(), pytest.raises(DeviceError, match="no such GPU"):
        run(classification(str(files), 0))


def test_only_tensors_of_the_cpu_are_pinned(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(torch.Tensor, "pin_memory", lambda self: self + 1)
    plain, other = torch.zeros(2), torch.empty(2, device="meta")
    data = {"a": [plain, other], "b": (plain, "text")}
    pinned = pin_batch(data, pins=True)
    assert pinned["a"][1] is other and pinned["a"][0].sum() == 2 and pinned["b"][0].sum() == 2
    assert pin_batch(data, pins=False) is data
