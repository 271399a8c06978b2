# SPDX-License-Identifier: Apache-2.0
"""Image processors of transformers, on a module of their form; `tests/frameworks/processors_loops.py` has real ones."""

from __future__ import annotations

import contextlib
import importlib.util
import io
import sys
import types
from collections import UserDict
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from photographs import photograph
from PIL import Image, ImageFile
from torch.utils.data import DataLoader
from torchvision.transforms import functional as v1
from torchvision.transforms.v2 import functional as F

import stoker.torchvision
from stoker.frontends.torchvision import counts
from stoker.frontends.torchvision.hooks import calls, imports, processors, templates
from tests.takeover.conftest import exactly
from tests.takeover.lazily import lazily

MODULE, LEGACY = processors.CLASSES


class Base:
    """Owner of the call, as in transformers."""

    def preprocess(self, images: Any, *args: Any, **kwargs: Any) -> Any:
        """Return the batch of an image or a list."""
        images = images if isinstance(images, list) else [images]
        return self._preprocess([self.process_image(x, do_convert_rgb=True) for x in images], **kwargs)


class Backend(Base):
    """Processors with torchvision."""

    def process_image(
        self, image: Any, do_convert_rgb: Any = None, input_data_format: Any = None, device: Any = None, **kwargs: Any
    ) -> Any:
        """Return ``(channels, height, width)``."""
        array = np.array(image.convert("RGB") if do_convert_rgb else image)
        return torch.from_numpy(array).permute(2, 0, 1).contiguous()

    def _preprocess(self, images: Any, size: int = 40, **kwargs: Any) -> Any:
        made = []
        for image in images:
            resized = F.resize(image.unsqueeze(0), [size, size], antialias=True)[0]
            made.append(F.normalize(resized.unsqueeze(0).to(torch.float32), [120.0], [60.0], inplace=True)[0])
        return UserDict(pixel_values=torch.stack(made), mask=torch.zeros_like(made[0], dtype=torch.int64)[0])


class Patches(Backend):
    """Processor that divides its batch into patches."""

    def _preprocess(self, images: Any, **kwargs: Any) -> Any:
        batch = super()._preprocess(images, **kwargs)
        batch["pixel_values"] = batch["pixel_values"].reshape(-1, 3, 4, 10, 40).permute(0, 2, 1, 3, 4).reshape(-1, 1200)
        return batch


class Sequences(Backend):
    """Processor whose images have any number of patches, as Qwen2-VL's."""

    def _preprocess(self, images: Any, **kwargs: Any) -> Any:
        made = []
        for image in images:
            height, width = (8 * (side // 8) for side in image.shape[-2:])
            resized = F.resize(image.unsqueeze(0), [height, width], antialias=True)
            values = F.normalize(resized.to(torch.float32), [120.0], [60.0], inplace=True)
            patches = values.reshape(1, 3, height // 8, 8, width // 8, 8).permute(0, 2, 4, 1, 3, 5).unsqueeze(4)
            made.append(patches.expand(-1, -1, -1, -1, 2, -1, -1).reshape(1, height * width // 64, 384)[0])
        return UserDict(pixel_values=torch.cat(made, dim=0), first=made[0])


class Padded(Backend):
    """Processor that pads its images and makes masks, as DETR's."""

    def _preprocess(self, images: Any, size: int = 900, **kwargs: Any) -> Any:
        made, masks = [], []
        for at, image in enumerate(images):
            height, width = size - 100 * (at % 2), size
            resized = F.resize(image.unsqueeze(0), [height, width], antialias=True)
            values = F.normalize(resized.to(torch.float32), [120.0], [60.0], inplace=True)
            made.append(F.pad(values, [0, 0, 0, size - height], fill=0)[0])
            mask = torch.zeros((1, size, size), dtype=torch.int64)
            mask[..., :height, :width] = 1
            masks.append(mask[0])
        return UserDict(pixel_values=torch.stack(made), pixel_mask=torch.stack(masks, dim=0))


@pytest.fixture
def module(monkeypatch: pytest.MonkeyPatch) -> Iterator[Any]:
    """The module, imported."""
    made = types.ModuleType(MODULE)
    made.TorchvisionBackend = Backend  # type: ignore[attr-defined]
    monkeypatch.setitem(sys.modules, MODULE, made)
    counts.reset()
    yield made
    counts.reset()


@pytest.fixture
def photos(tmp_path: Path) -> list[Path]:
    """Colour photographs, a gray one and one that is not JPEG."""
    for at in range(6):
        Image.fromarray(photograph(at, 90 + at, 120)).save(tmp_path / f"{at}.jpg", quality=90)
    Image.fromarray(photograph(7, 90, 120)).convert("L").save(tmp_path / "6.jpg")
    Image.fromarray(photograph(8, 90, 120)).save(tmp_path / "7.png")
    return sorted(tmp_path.iterdir())


def same(a: Any, b: Any) -> None:
    """Assert that two batches of a processor are equal and plain."""
    assert type(a) is type(b)
    for key in (*a, *b):
        assert type(b[key]) is torch.Tensor and a[key].stride() == b[key].stride()
        exactly(a[key], b[key])


def _opened(kind: str, photos: list[Path]) -> list[Any]:
    images: list[Any] = [Image.open(io.BytesIO(p.read_bytes()) if kind == "bytes" else p) for p in photos]
    if kind == "loaded":
        for image in images:
            image.load()
    return [x.transpose(0) for x in images] if kind == "results" else images


@pytest.mark.parametrize("kind", ["files", "bytes", "loaded", "results"])
@pytest.mark.parametrize("owner", [Backend, Patches, Sequences, Padded])
def test_a_call(module: Any, photos: list[Path], owner: Any, kind: str) -> None:
    expected = owner().preprocess(_opened(kind, photos))
    with stoker.torchvision.enabled():
        images = _opened(kind, photos)
        ours = owner().preprocess(images)
        assert all(type(image).__module__.startswith("PIL") for image in images)
    same(expected, ours)
    total = counts.totals()
    assert total[counts.RETRIED] == 0
    assert total[counts.PIXELS] == 0, "no image is decoded for itself, apart from the result"
    assert total[counts.NATIVE] + total[counts.FORCED] >= len(photos), "Pillow decodes, and Stoker computes, the PNG"
    for path, image in zip(photos, images, strict=True):
        if kind != "results":
            exactly(np.asarray(Image.open(path)), np.asarray(image))


def test_a_single_image_and_its_file(module: Any, photos: list[Path]) -> None:
    expected = Backend().preprocess(Image.open(photos[0]), size=30)
    with stoker.torchvision.enabled(), Image.open(photos[0]) as image:
        file = image.fp
        same(expected, Backend().preprocess(image, size=30))
        assert file is not None and file.closed, "as after decoding"
        photos[0].unlink()
        exactly(np.asarray(image), np.asarray(image.copy()))
    assert counts.totals()[counts.NATIVE] == 1


def test_errors_are_the_scripts(module: Any, photos: list[Path]) -> None:
    data = photos[0].read_bytes()
    photos[0].write_bytes(data[: len(data) // 2])
    with stoker.torchvision.enabled():
        with pytest.raises(OSError, match="truncated"):
            Backend().preprocess(_opened("bytes", photos))
        with pytest.raises(TypeError):
            Backend().preprocess(_opened("bytes", photos[1:]), size="large")
        assert not counts.totals()[counts.RETRIED]


def test_a_file_that_is_damaged_in_the_middle(module: Any, photos: list[Path]) -> None:
    data = photos[0].read_bytes()
    at = data.index(b"\xff\xda") + 400
    photos[0].write_bytes(data[:at] + b"\xff\xc4\x00\x04\x00\x00" + data[at:])

    def outcome() -> Any:
        try:
            return Backend().preprocess([Image.open(photos[0])])["pixel_values"]
        except OSError as error:
            return str(error)

    expected = outcome()
    with stoker.torchvision.enabled():
        ours = outcome()
    assert type(ours) is type(expected)
    exactly(expected, ours)


class Processed(torch.utils.data.Dataset[Any]):
    """Data set like that of the ``datasets`` package with ``set_transform``, which processes a batch at a time."""

    def __init__(self, files: list[Path], owner: Any) -> None:
        self.files = files
        self.processor = owner()

    def __len__(self) -> int:
        return len(self.files)

    def __getitem__(self, index: int) -> Any:
        return self.__getitems__([index])[0]

    def __getitems__(self, indices: list[int]) -> list[Any]:
        images = [Image.open(self.files[i]).convert("RGB") for i in indices]
        batch = self.processor.preprocess(images)
        return [{"pixel_values": batch["pixel_values"][i]} for i in range(len(indices))]


@pytest.mark.parametrize("workers", [0, 2])
def test_within_a_data_set(module: Any, photos: list[Path], workers: int) -> None:
    def batches() -> list[Any]:
        return list(DataLoader(Processed(photos, Backend), batch_size=4, num_workers=workers))

    expected = batches()
    with stoker.torchvision.enabled():
        for one, other in zip(expected, batches(), strict=True):
            same(one, other)
        total = counts.totals()
    assert total[counts.NATIVE] == len(photos) and not total[counts.FORCED]


class Collated:
    """Collation that calls a processor."""

    def __init__(self, owner: Any) -> None:
        self.processor = owner()

    def __call__(self, images: list[Any]) -> Any:
        return self.processor.preprocess(images)


class Opened(Processed):
    """Data set of opened images."""

    __getitems__: Any = None

    def __getitem__(self, index: int) -> Any:
        return Image.open(self.files[index])


@pytest.mark.parametrize("workers", [0, 2])
@pytest.mark.parametrize("owner", [Backend, Patches, Sequences, Padded])
def test_within_a_collation(module: Any, photos: list[Path], owner: Any, workers: int) -> None:
    def batches() -> list[Any]:
        loader = DataLoader(Opened(photos, owner), batch_size=4, collate_fn=Collated(owner), num_workers=workers)
        return list(loader)

    expected = batches()
    with stoker.torchvision.enabled():
        for one, other in zip(expected, batches(), strict=True):
            same(one, other)
        total = counts.totals()
    assert total[counts.NATIVE] + total[counts.FORCED] >= len(photos)


def test_disabled_is_untouched(module: Any) -> None:
    before = Base.preprocess, Backend.process_image.__code__
    with stoker.torchvision.enabled():
        assert Base.preprocess is not before[0]
    assert (Base.preprocess, Backend.process_image.__code__) == before


def test_a_module_that_is_imported_later(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "later_module.py").write_text("value = 1\n")
    monkeypatch.syspath_prepend(str(tmp_path))
    seen: list[Any] = []
    finders = list(sys.meta_path)
    imports.after_import("later_module", seen.append)
    imports.after_import("later_module", seen.append)
    assert importlib.util.find_spec("later_module") is not None, "a search, as packages do to see what is installed"
    assert not seen
    import later_module  # type: ignore[import-not-found]

    assert seen == [later_module] and sys.meta_path == finders
    imports.after_import("later_module", seen.append)
    assert seen == [later_module, later_module]


def _size(path: Path) -> tuple[int, int]:
    with Image.open(path) as image:
        return image.size


class Batch(UserDict[str, Any]):
    """Result, as in transformers."""

    def __init__(self, data: Any, tensor_type: Any = None) -> None:
        super().__init__(data)
        if tensor_type == "pt":
            self.data = {k: v if isinstance(v, torch.Tensor) else torch.stack(v) for k, v in data.items()}


class OneByOne(Backend):
    """Processor that computes each image alone."""

    __module__ = "transformers.models.one_by_one"

    def __init__(self, mean: float = 120.0) -> None:
        self.mean = mean
        self.calls = 0

    def _preprocess(self, images: Any, size: int = 40, return_tensors: Any = None, **kwargs: Any) -> Any:
        OneByOne.runs += len(images)
        made = []
        for image in images:
            resized = F.center_crop(F.resize(image.unsqueeze(0), [size], antialias=True), [30, 30])
            made.append(F.normalize(resized.to(torch.float32), [self.mean], [60.0], inplace=True)[0])
        return Batch({"pixel_values": made}, return_tensors)

    runs = 0


@pytest.fixture
def one_by_one(module: Any, monkeypatch: pytest.MonkeyPatch) -> Any:
    """The module, with the processor that computes each image alone."""
    module.TorchvisionBackend = OneByOne
    monkeypatch.setattr(OneByOne, "runs", 0)
    monkeypatch.setattr(OneByOne, "process_image", Backend.process_image, raising=False)
    monkeypatch.setattr(templates, "_templates", {})
    return module


@pytest.mark.parametrize("kind", ["files", "loaded"])
def test_images_of_one_size_share_their_steps(one_by_one: Any, photos: list[Path], kind: str) -> None:
    def calls() -> list[Any]:
        return [
            OneByOne(mean).preprocess(_opened(kind, photos), size=size, return_tensors="pt")
            for mean in (120.0, 99.0)
            for size in (40, 50, 40)
        ]

    expected = calls()
    before = OneByOne.runs
    with stoker.torchvision.enabled():
        for one, other in zip(expected, calls(), strict=True):
            same(one, other)
        runs = OneByOne.runs - before
        assert runs == 4 * len(set(map(_size, photos))), "each size, with each setting"
        assert not counts.totals()[counts.RETRIED]


class Batches(Batch):
    """Result, from a module of transformers."""

    __module__ = "transformers.feature_extraction_utils"


class Repeated(Backend):
    """Processor whose later calls run without its Python. It counts the images of the others."""

    __module__ = "transformers.models.repeated"
    seen = 0

    def __init__(self, mean: Any = 120.0, **settings: Any) -> None:
        self.mean = mean
        self._valid_kwargs_names = ["mean", "size", "extra", "return_tensors"]
        vars(self).update(settings)

    def preprocess(self, images: Any, *args: Any, **kwargs: Any) -> Any:
        """Return the batch of an image or a list."""
        Repeated.seen += len(images) if isinstance(images, list) else 1
        result = super().preprocess(images, *args, **{"mean": self.mean, **kwargs})
        if kwargs.get("extra"):
            result["extra"] = torch.arange(3)
        return result

    def process_image(
        self, image: Any, do_convert_rgb: Any = None, input_data_format: Any = None, device: Any = None, **kwargs: Any
    ) -> Any:
        """Return ``(channels, height, width)``."""
        return Backend.process_image(self, image, do_convert_rgb, input_data_format, device, **kwargs)

    def _preprocess(
        self, images: Any, size: int = 40, mean: Any = 120.0, return_tensors: Any = None, **kwargs: Any
    ) -> Any:
        made = []
        for image in images:
            resized = F.center_crop(F.resize(image.unsqueeze(0), [size], antialias=True), [30, 30])
            made.append(F.normalize(resized.to(torch.float32), [float(mean)], [60.0], inplace=True)[0])
        return Batches({"pixel_values": made}, return_tensors)


for _method in (Repeated.process_image, Repeated._preprocess):
    _method.__module__ = Repeated.__module__  # a script's own methods would not be skipped


@pytest.fixture
def repeated(module: Any, monkeypatch: pytest.MonkeyPatch) -> Any:
    """The module, with the processor that counts the images which its Python has seen."""
    module.TorchvisionBackend = Repeated
    monkeypatch.setattr(templates, "_templates", {})
    monkeypatch.setattr(calls, "_known", {})
    return module


def _call(images: Any, processor: Any = None, **settings: Any) -> tuple[Any, int]:
    """Return a result, and the number of images that the processor's Python has seen."""
    before = Repeated.seen
    result = (processor or Repeated()).preprocess(images, **{"return_tensors": "pt", **settings})
    return result, Repeated.seen - before


@pytest.mark.parametrize("kind", ["files", "bytes", "loaded"])
def test_later_calls_run_without_the_processors_python(repeated: Any, photos: list[Path], kind: str) -> None:
    photos = photos if kind == "loaded" else photos[:7]  # the last one is no JPEG file
    expected = {size: _call(_opened(kind, photos), size=size)[0] for size in (40, 50)}
    single = _call(_opened(kind, photos[:1])[0], size=40)[0]
    with stoker.torchvision.enabled():
        made = []
        for size, seen in ((40, len(photos)), (50, len(photos)), (40, 0), (50, 0)):
            images = _opened(kind, photos)
            result, now_seen = _call(images, size=size)
            same(expected[size], result)
            assert now_seen == seen
            made.append(result["pixel_values"])
            for path, image in zip(photos, images, strict=True):
                assert type(image).__module__.startswith("PIL")
                exactly(np.asarray(Image.open(path)), np.asarray(image))
        result, seen = _call(_opened(kind, photos[:1])[0], size=40)
        same(single, result)
        made[2].zero_()
        result, seen_later = _call(_opened(kind, photos), size=40)
        same(expected[40], result)
        assert (seen, seen_later) == (0, 0)
        assert counts.totals()[counts.NATIVE] == 5 * len(photos) + 1 and not counts.totals()[counts.RETRIED]


def test_a_file_of_a_later_call_is_closed_as_after_decoding(repeated: Any, photos: list[Path]) -> None:
    with stoker.torchvision.enabled():
        for seen in (1, 0):
            with Image.open(photos[0]) as image:
                file = image.fp
                assert _call(image)[1] == seen
                assert file is not None and file.closed
                exactly(np.asarray(Image.open(photos[0])), np.asarray(image))


def test_other_settings_are_recorded(repeated: Any, photos: list[Path], monkeypatch: pytest.MonkeyPatch) -> None:
    photos = photos[:2]

    def values(mean: Any, **settings: Any) -> Any:
        return _call(_opened("loaded", photos), Repeated(mean), **settings)

    means = [120.0, 120.00001, torch.tensor(119.99991), torch.tensor(119.99992)]  # the last two look alike in print
    assert repr(means[2]) == repr(means[3])
    expected = [values(mean)[0] for mean in means]
    with stoker.torchvision.enabled():
        for _ in range(2):
            for one, mean in zip(expected, means, strict=True):
                same(one, values(mean)[0])
        assert [values(mean)[1] for mean in means] == [0, 0, 2, 2], "a tensor is no key"
        assert values(120.0, size=41)[1] == 2
        assert [values(120.0, size=41, extra=True)[1] for _ in range(2)] == [2, 2], "results with other parts"
        assert [values(120.0, hook=len)[1] for _ in range(2)] == [2, 2]
        assert [_call(_opened("loaded", photos), hook=1)[1] for _ in range(2)] == [2, 2], "an unknown argument"
        assert values(120.0)[1] == 0
        monkeypatch.setattr(ImageFile, "LOAD_TRUNCATED_IMAGES", True)
        assert values(120.0)[1] == 2
        monkeypatch.setattr(ImageFile, "LOAD_TRUNCATED_IMAGES", False)
        monkeypatch.setattr(Repeated, "fetch_images", lambda images: images, raising=False)  # a script's own
        assert values(120.0)[1] == 2


def test_no_result_of_a_call_is_kept(repeated: Any, photos: list[Path]) -> None:
    with stoker.torchvision.enabled():
        for size in (40, 40, [40]):  # the last one fails
            with contextlib.suppress(TypeError):
                _call(_opened("loaded", photos[:2]), size=size)
            assert templates._thread.latest is None and not templates._thread.keeps_latest
        with lazily():
            result = _call(_opened("loaded", photos[:2]))[0]["pixel_values"]
        assert type(result) is not torch.Tensor and templates._thread.latest is None


def test_unusual_images_of_a_later_call_are_recorded(repeated: Any, photos: list[Path]) -> None:
    size = _size(photos[0])

    def images() -> list[Any]:
        whole, rotated = io.BytesIO(), io.BytesIO()
        image = Image.open(photos[0])
        exif = Image.Exif()
        exif[0x0112] = 6
        image.save(whole, "JPEG", quality=90)
        image.save(rotated, "JPEG", quality=90, exif=exif)
        small = image.resize((50, 40))
        return [
            Image.open(whole), Image.open(rotated), Image.open(io.BufferedReader(io.BytesIO(whole.getvalue()))),
            image.convert("P"), image.convert("RGBA"), small, image.convert("L"),
        ]  # fmt: skip

    expected = [_call([image])[0] for image in images()]
    with stoker.torchvision.enabled():
        for _ in range(2):
            for one, image in zip(expected, images(), strict=True):
                same(one, _call([image])[0])
        _, seen = _call(images()[:1])
        assert seen == 0 and images()[0].size == size


def test_errors_of_later_calls_are_the_scripts(repeated: Any, photos: list[Path]) -> None:
    data = photos[0].read_bytes()
    at = data.index(b"\xff\xda") + 400
    damaged = data[:at] + b"\xff\xc4\x00\x04\x00\x00" + data[at:]

    def outcomes() -> list[Any]:
        found: list[Any] = []
        for content in (data, data[: len(data) // 2], damaged, data):
            try:
                found.append(_call([Image.open(io.BytesIO(content))])[0]["pixel_values"])
            except OSError as error:
                found.append(str(error))
        closed = Image.open(photos[1])
        assert closed.fp is not None
        closed.fp.close()
        with pytest.raises(ValueError, match="closed file"):
            _call([closed])
        return found

    expected = outcomes()
    with stoker.torchvision.enabled():
        assert [_call([Image.open(p)])[1] for p in photos[:2]] == [1, 1]
        assert [_call([Image.open(p)])[1] for p in photos[:2]] == [0, 0]
        for one, other in zip(expected, outcomes(), strict=True):
            assert type(one) is type(other)
            exactly(one, other)


class Grids(Backend):
    """Processor of patches, one image after the other, in the form of Qwen2-VL's."""

    __module__ = "transformers.models.qwen2_vl.image_processing_qwen2_vl"
    runs = 0

    def _preprocess(self, images: Any, side: int = 8, return_tensors: Any = None, **kwargs: Any) -> Any:
        Grids.runs += len(images)
        made, grids = [], []
        for image in images:
            rows, columns = (n // side for n in image.shape[-2:])
            resized = F.resize(image.unsqueeze(0), [side * rows, side * columns], antialias=True)
            values = F.normalize(resized.to(torch.float32), [120.0], [60.0], inplace=True)
            patches = values.reshape(1, 3, rows, side, columns, side).permute(0, 2, 4, 1, 3, 5).unsqueeze(4)
            patches = patches.expand(-1, -1, -1, -1, 2, -1, -1).reshape(1, rows * columns, 6 * side * side)
            made.append(patches[0])
            grids.append([1, rows, columns])
        values = made[0] if len(made) == 1 else torch.cat(made, dim=0)
        return Batch({"pixel_values": values, "image_grid_thw": torch.tensor(grids)}, return_tensors)


@pytest.fixture
def grids(module: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    """The module of the processor of patches, imported."""
    (name, kind), *_ = templates.PATCH_CLASSES.items()
    made = types.ModuleType(name)
    setattr(made, kind, Grids)
    monkeypatch.setitem(sys.modules, name, made)
    monkeypatch.setattr(templates, "_templates", {})


@pytest.mark.parametrize("kind", ["files", "loaded"])
def test_patches_of_images_of_one_size_share_their_steps(grids: None, photos: list[Path], kind: str) -> None:
    def calls() -> list[Any]:
        return [
            Grids().preprocess(_opened(kind, photos[:count]), side=side, return_tensors="pt")
            for side in (8, 4, 8)
            for count in (len(photos), 2, 1)
        ]

    expected = calls()
    before = Grids.runs
    with stoker.torchvision.enabled():
        for one, other in zip(expected, calls(), strict=True):
            same(one, other)
        assert Grids.runs - before == 2 * len(set(map(_size, photos))) + 3, "each size and side, and single images"
        assert not counts.totals()[counts.RETRIED]


def test_steps_of_changed_methods_are_not_shared(
    one_by_one: Any, photos: list[Path], monkeypatch: pytest.MonkeyPatch
) -> None:
    processor = OneByOne()
    with stoker.torchvision.enabled():
        processor.preprocess(_opened("files", photos), return_tensors="pt")
        monkeypatch.setattr(OneByOne, "resize", lambda image: image, raising=False)  # a script's own method
        before = OneByOne.runs
        processor.preprocess(_opened("files", photos), return_tensors="pt")
        assert OneByOne.runs - before == len(photos)
        processor.preprocess(_opened("files", photos), return_tensors=None)


def test_an_image_that_is_kept_has_its_own_pixels(module: Any, photos: list[Path]) -> None:
    class Keeping(Backend):
        """Processor that keeps its images."""

        kept: Any = None

        def preprocess(self, images: Any, *args: Any, **kwargs: Any) -> Any:
            return super().preprocess(images, *args, **kwargs)

        def _preprocess(self, images: Any, **kwargs: Any) -> Any:
            return super()._preprocess(images, **kwargs)

    class Owner(Base):
        """Class whose call is replaced."""

        kept: Any = None

        def preprocess(self, images: Any, *args: Any, **kwargs: Any) -> Any:
            type(self).kept = images
            return Keeping()._preprocess([Keeping().process_image(x) for x in images])

        process_image = Backend.process_image

    module.TorchvisionBackend = Owner
    image = Image.open(photos[0])
    image.load()
    expected = np.array(image)
    with stoker.torchvision.enabled():
        Owner().preprocess([image])
        image.paste((0, 0, 0), (0, 0, 50, 50))
        exactly(expected, np.asarray(Owner.kept[0]))


def test_a_large_image_in_pieces(module: Any) -> None:
    image = Image.fromarray(photograph(3, 64, 96)).resize((2300, 2000))
    with pytest.raises(ValueError, match="contiguous"):
        image.im.__arrow_c_array__()
    expected = Backend().preprocess(image)
    with stoker.torchvision.enabled():
        same(expected, Backend().preprocess(image))
    assert counts.totals()[counts.NATIVE] == 1


class Legacy(Base):
    """Base class of processors before transformers 5."""

    def _process_image(self, image: Any) -> Any:
        return v1.pil_to_tensor(image.convert("RGB"))

    def preprocess(self, images: Any, *args: Any, **kwargs: Any) -> Any:
        """Return the batch of a list."""
        batch = Backend()._preprocess([self._process_image(x) for x in images], **kwargs)
        return UserDict(pixel_values=batch["pixel_values"])


@pytest.mark.parametrize("kind", ["files", "loaded"])
def test_processors_before_transformers_5(monkeypatch: pytest.MonkeyPatch, photos: list[Path], kind: str) -> None:
    made = types.ModuleType(LEGACY)
    made.BaseImageProcessorFast = Legacy  # type: ignore[attr-defined]
    monkeypatch.setitem(sys.modules, LEGACY, made)
    expected = Legacy().preprocess(_opened(kind, photos))
    counts.reset()
    with stoker.torchvision.enabled():
        same(expected, Legacy().preprocess(_opened(kind, photos)))
    assert counts.totals()[counts.NATIVE] == len(photos) and not counts.totals()[counts.RETRIED]


# ---- lazy tensors: one of a batch, and tensors of the same shape ----


def test_an_image_of_a_batch_shares_its_memory(photo: Path) -> None:
    def result() -> Any:
        image = F.pil_to_tensor(Image.open(photo).convert("RGB"))
        batch = torch.stack([image.contiguous(), image.flip(-1), image.flip(-2)])
        one, last = batch[1], batch[-1]
        layout = one.storage_offset(), one.stride(), last.storage_offset()
        one += 3
        return batch, one, last[..., 4:20, 5:30], layout, batch[2:].shape

    expected = result()
    with lazily():
        batch, one, window, layout, shape = result()
        assert (layout, shape) == expected[3:]
        for x, y in zip(expected[:3], (batch, one, window), strict=True):
            exactly(x, y.clone())
    with pytest.raises(IndexError), lazily():
        result()[0][3]


@pytest.mark.parametrize("name", ["zeros_like", "ones_like", "empty_like"])
@pytest.mark.parametrize("options", [{}, {"dtype": torch.int64}, {"device": "meta"}])
def test_tensors_like_a_lazy_one(photo: Path, name: str, options: Any) -> None:
    def result() -> Any:
        image = F.pil_to_tensor(Image.open(photo).convert("RGB"))
        return [getattr(torch, name)(x, **options) for x in (image, image.contiguous(), image[:, 3:50])]

    expected = result()
    with lazily():
        for x, y in zip(expected, result(), strict=True):
            assert (x.stride(), x.dtype, x.device) == (y.stride(), y.dtype, y.device)
            assert name == "empty_like" or x.is_meta or torch.equal(x, y)
