# SPDX-License-Identifier: Apache-2.0
"""Batches in a GPU's memory: the untouched script's values. The null device is GPU 0 unless there is one."""

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
from stoker.frontends.torchvision import counts, delivery, grouping, packing, place, plans, recipe
from stoker.frontends.torchvision.place import Place, PlacedMaking, taken
from stoker.frontends.torchvision.recipe import Node
from stoker.frontends.torchvision.source import Source
from stoker.frontends.torchvision.tensor import LazyTensor, image_tensor
from stoker.native import _native
from tests.takeover.collations import loader_of
from tests.takeover.scripts import Tolerant, Views, classification, erasing, run, second_generation

STAYS = pytest.mark.leaks("CUDA keeps its thread and files as long as the process")


@pytest.fixture(params=["null", pytest.param("cuda", marks=[emulated_stages.NEEDS_GPU, STAYS])])
def placed(kernel_folder: Path, monkeypatch: pytest.MonkeyPatch, request: pytest.FixtureRequest) -> Iterator[Place]:
    """The take-over is on, with batches on GPU 0."""
    if request.param == "null":
        monkeypatch.setattr(
            Gpu, "open", staticmethod(lambda number, limit=None: emulated_stages.EmulatedStages(kernel_folder))
        )
        monkeypatch.setattr(plans, "GPU_LOAD", 0.0)
        monkeypatch.setattr(plans, "LINES", 1)  # an emulated kernel runs one launch at a time
    place = Place(torch.device("cuda:0" if request.param == "cuda" else "cpu"), 0, 1)
    monkeypatch.setattr(delivery, "place", lambda workers: place)
    monkeypatch.setattr(delivery, "is_elsewhere", lambda: True)
    monkeypatch.setattr(grouping, "_FEW", 2)
    yield place
    place.close()


def equal(a: Any, b: Any, place: Place) -> None:
    if isinstance(a, torch.Tensor):
        assert a.dtype == b.dtype and a.shape == b.shape
        assert torch.equal(a, b.cpu())
        if a.ndim > 3:
            assert b.device == place.device and type(b) is type(a)
    elif isinstance(a, (list, tuple)):
        for x, y in zip(a, b, strict=True):
            equal(x, y, place)
    else:
        assert a == b


@pytest.mark.parametrize("workers", [0, 2])
@pytest.mark.parametrize("script", ["classification", "second_generation", "erasing"])
def test_the_same_batches(files: Path, placed: Place, script: str, workers: int) -> None:
    loaders: dict[str, Callable[[], Any]] = {
        "classification": lambda: classification(str(files), workers),
        "second_generation": lambda: second_generation(str(files), workers, "pil"),
        "erasing": lambda: erasing(str(files), workers),
    }
    untouched = run(loaders[script](), epochs=2)
    counts.reset()
    with stoker.torchvision.enabled():
        equal(untouched, run(loaders[script](), epochs=2), placed)
    total = counts.total()
    assert total[counts.PLACED] + total[counts.SENT] >= 2 * 15
    if script == "classification":
        assert total[counts.PLACED] >= 20, "all whole JPEG files, in every batch with some of them"


def test_many_views(files: Path, placed: Place) -> None:
    def loader() -> Any:
        return torch.utils.data.DataLoader(Views(files), batch_size=5, shuffle=True)

    untouched = run(loader())
    with stoker.torchvision.enabled():
        equal(untouched, run(loader()), placed)


@pytest.mark.parametrize("workers", [0, 2])
@pytest.mark.parametrize("name", ["mixed_up", "padded_and_mixed", "bytes_added", "bytes_mixed", "bytes_cut"])
def test_collations(files: Path, placed: Place, name: str, workers: int) -> None:
    """What a collation does with images is done where they are, rounding them to bytes too."""
    untouched = run(loader_of(files, workers, name))
    counts.reset()
    with stoker.torchvision.enabled():
        equal(untouched, run(loader_of(files, workers, name)), placed)
    assert counts.total()[counts.REAL] == 0
    assert counts.total()[counts.PLACED] >= 6, "images that are copied or mixed one by one, too"


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
def test_a_damaged_file_is_met_where_it_was(
    with_damage: Path, placed: Place, workers: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    by_the_cpu: list[int] = []

    class Counted(place.Making):
        def __init__(self, tensors: Any, *args: Any) -> None:
            by_the_cpu.extend(len(tensor._rows) for tensor in tensors)
            super().__init__(tensors, *args)

    monkeypatch.setattr(place, "Making", Counted)

    def loader() -> Any:
        return torch.utils.data.DataLoader(Tolerant(with_damage), batch_size=8, num_workers=workers)

    untouched = run(loader())
    with stoker.torchvision.enabled():
        equal(untouched, run(loader()), placed)
    assert by_the_cpu == [1], "the damaged one, once"


@pytest.mark.parametrize("bad", [{0}, {2, 3, 7}, {1, 2, 3, 4, 5, 6, 7}, set(range(8))])
def test_what_a_plan_cannot_make_is_mended(with_damage: Path, placed: Place, bad: set[int]) -> None:
    """Two views of each file: those of files that the plan finds damaged come from the CPU, which finds them whole."""
    damaged = np.frombuffer((with_damage / "5.jpg").read_bytes(), np.uint8)
    rows: list[Any] = []
    wholes = []
    for i in range(8):
        whole = np.frombuffer((with_damage / f"{i if i != 5 else 0}.jpg").read_bytes(), np.uint8)
        root = Node.decode(Source(damaged if i in bad else whole), (100, 80), 3)
        rows += image_tensor(root.then(recipe.CROP, (i, 2, i + 40, 32), (40, 30)))._rows
        rows += image_tensor(root.then(recipe.CROP, (9, i, 49, i + 30), (40, 30)))._rows
        wholes.append((root.source, whole))
    tensor = LazyTensor(rows, (16,))
    making = PlacedMaking([tensor], placed)
    job = making._parts[0].job
    assert job is not None
    job.wait()
    assert set(job.skipped) == bad
    for source, whole in wholes:
        source._data = whole
    making.finish()
    want = LazyTensor([row._replace() for row in rows], (16,))
    assert tensor._real is not None and torch.equal(tensor._real.cpu(), want + 0)


def made_alone(place: Place, node: Node) -> np.ndarray[Any, Any]:
    """One image, by a plan."""
    width, height = node.size
    images, supply = place.memory((1, node.channels, height, width), torch.uint8)
    packed = packing.pack_alone([packing.Row(node, None, 0, 0)])
    form = plans.Form(int(node.root.params[0]), False, (images.numel(),))
    job = plans.Job(form, grouping.Files.of([node.root.source]), grouping.Recipes.of([packed]), [supply])
    place.plans.submit(job)
    error = job.wait()
    if error is not None:
        raise error
    return images.cpu().numpy()[0]


def test_plans_are_bounded(placed: Place, files: Path) -> None:
    data = np.frombuffer((files / "bee" / "3.jpg").read_bytes(), np.uint8)
    with Image.open(files / "bee" / "3.jpg") as image:
        whole = image.convert("RGB")
    width, height = whole.size
    for side in range(8, 8 + 12):
        node = Node.decode(Source(data), (width, height), 3)
        node = node.then(recipe.RESIZE, (side, side, 0.0, float(height), 0.0, float(width), 1, 0), (side, side))
        want = np.asarray(whole.resize((side, side), Image.Resampling.BILINEAR))
        assert np.array_equal(made_alone(placed, node).transpose(1, 2, 0), want)
    assert len(placed.plans._known) <= plans._KEPT_FORMS


@pytest.mark.parametrize("rows_first", [0, 1])
def test_either_order_of_resampling(placed: Place, files: Path, rows_first: int) -> None:
    data = np.frombuffer((files / "bee" / "3.jpg").read_bytes(), np.uint8)
    with Image.open(files / "bee" / "3.jpg") as image:
        width, height = image.size
    for number in (1, 2, 3):
        node = Node.decode(Source(data), (width, height), 3)
        params = (height // 4, width - 2, 0.0, float(height), 0.0, float(width), number, rows_first)
        node = node.then(recipe.RESIZE, params, (width - 2, height // 4))
        out = np.zeros(3 * (height // 4) * (width - 2), np.uint8)
        packed = packing.pack([packing.Row(node, None, 0, 0)], [out])
        _native.recipe.make(packed.order)
        assert np.array_equal(made_alone(placed, node).reshape(-1), out)


def test_what_is_no_recipe_is_left_out(placed: Place, files: Path) -> None:
    """And the CPU says what is wrong with it."""
    data = np.frombuffer((files / "bee" / "3.jpg").read_bytes(), np.uint8)
    with Image.open(files / "bee" / "3.jpg") as image:
        size = image.size
    node = Node.decode(Source(data), size, 3)
    wrong = node.then(recipe.TRANSPOSE, (0,)).then(recipe.CROP, (0, 0, size[0] + 1, 4), (size[0] + 1, 4))
    making = PlacedMaking([image_tensor(wrong)], placed)
    job = making._parts[0].job
    assert job is not None and job.wait() is None and job.skipped == (0,)
    with pytest.raises(RuntimeError, match="a crop that leaves the image"):
        making.finish()


def blurred(image: Any) -> Any:
    """As Pillow does it; torch's sums depend on its build, so that they are not recorded everywhere."""
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
    """All files of a folder with a script's steps."""

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
    """Colour, gray, decoded by Pillow, and one of few pixels, which stays Pillow's."""
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
def test_all_steps_are_done_there(photographs: Path, placed: Place, script: str, after: bool) -> None:
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
    total = counts.total()
    assert total[counts.PLACED] + total[counts.SENT] == 9
    assert total[counts.PLACED] >= 8, "all but the one of few pixels"


class Crops:
    """Two large crops and eight small ones of an image, each with colours of its own."""

    def __init__(self, library: Any) -> None:
        end = [library.ColorJitter(0.4, 0.4, 0.4, 0.1), library.RandomGrayscale(0.2), library.ToTensor()]
        self.transforms = [library.Compose([library.RandomResizedCrop(n), *end]) for n in [48] * 2 + [24] * 8]

    def __call__(self, image: Any) -> Any:
        return [transform(image) for transform in self.transforms]


@pytest.mark.parametrize("workers", [0, 2])
def test_ten_crops_of_a_file_are_one_row(
    photographs: Path, placed: Place, workers: int, monkeypatch: pytest.MonkeyPatch
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
    assert counts.total()[counts.PLACED] >= 8 * 10
    assert all(len(job.form.sizes) == 10 for job in jobs)
    assert sum(len(job._fed["files"]) for job in jobs) in (8, 9), "every file once"


def test_a_damaged_file_beside_all_kinds_of_steps(photographs: Path, tmp_path: Path, placed: Place) -> None:
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


def test_what_fails_is_told(placed: Place, files: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def refused(*args: Any) -> Any:
        raise DeviceError("no such GPU")

    monkeypatch.setattr(plans, "_pipeline", refused)
    with stoker.torchvision.enabled(), pytest.raises(DeviceError, match="no such GPU"):
        run(classification(str(files), 0))


def test_what_is_there_already_is_pinned_alone(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(torch.Tensor, "pin_memory", lambda self: self + 1)
    plain, other = torch.zeros(2), torch.empty(2, device="meta")
    data = {"a": [plain, other], "b": (plain, "text")}
    pinned = taken(data, pins=True)
    assert pinned["a"][1] is other and pinned["a"][0].sum() == 2 and pinned["b"][0].sum() == 2
    assert taken(data, pins=False) is data
