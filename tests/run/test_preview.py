# SPDX-License-Identifier: Apache-2.0
"""Previews: a sheet of the next samples that leaves the pipeline as it is, and descriptions of what there is."""

from __future__ import annotations

import xml.etree.ElementTree as ET
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from PIL import Image

from stoker import ArgumentError, DataError, Pipeline, StateError, fn, pipeline_def, types
from stoker.display import sheet
from stoker.frontends import preview


@pipeline_def(batch_size=5, num_threads=2, seed=3, device_id=None)
def training(folder: Path) -> Any:
    jpegs, labels = fn.readers.file(file_root=str(folder), random_shuffle=True, name="Reader")
    images = fn.resize(fn.decoders.image_random_crop(jpegs), size=(40, 40), name="image")
    return fn.crop_mirror_normalize(images, mirror=fn.random.coin_flip(), mean=[120.0], std=[58.0]), images, labels


@pytest.fixture
def cards(monkeypatch: pytest.MonkeyPatch) -> list[Any]:
    """Return a list that receives the cards of the next sheet."""
    drawn: list[Any] = []

    def draw(cards: Any, header: str, lines: Any) -> Image.Image:
        drawn[:] = cards
        return sheet.draw_cards(cards, header, lines)

    monkeypatch.setattr(preview, "draw_cards", draw)
    return drawn


def rows(pipe: Pipeline, batches: int) -> list[bytes]:
    return [row.tobytes() for _ in range(batches) for output in pipe.run() for row in output]


def test_a_preview_shows_the_next_samples_and_changes_nothing(jpegs: Path, cards: list[Any]) -> None:
    with training(jpegs) as plain, training(jpegs) as shown:
        expected = rows(plain, 9)
        shown.preview(7)  # before it is built
        assert shown._execution is None
        got = rows(shown, 2)
        state = shown.get_state()
        shown.preview(12)
        assert shown.get_state() == state
        assert got + rows(shown, 7) == expected
    pixels = [np.asarray(card.tiles[1]).tobytes() for card in cards]  # uint8 images of 40 pixels: shown as they are
    per_batch = 3 * 5
    wanted = [expected[b * per_batch + 5 + row] for b in (2, 3, 4) for row in range(5)]
    assert pixels == wanted[:12]


def test_captions_name_file_and_label(jpegs: Path, cards: list[Any]) -> None:
    with training(jpegs) as pipe:
        image = pipe.preview(3)
    assert isinstance(image, Image.Image) and image.width > 3 * sheet.TILE
    classes = sorted(path.name for path in jpegs.iterdir())
    for card in cards:
        folder, _, name = card.title.partition("/")
        assert (jpegs / folder / name).is_file() and card.lines == [f"output 2: {classes.index(folder)}"]
        assert len(card.tiles) == 2


def test_operators_that_mix_rows_see_whole_batches(jpegs: Path, cards: list[Any]) -> None:
    @pipeline_def(batch_size=6, num_threads=1, seed=5)
    def mixed() -> Any:
        jpegs_read, _ = fn.readers.file(file_root=str(jpegs))
        images = fn.resize(fn.decoders.image(jpegs_read), size=(30, 30))
        return fn.permute_batch(images, indices=fn.batch_permutation())

    with mixed() as pipe:
        pipe.preview(2)
        (batch,) = pipe.run()
        assert [np.asarray(card.tiles[0]).tolist() for card in cards] == [batch[i].tolist() for i in range(2)]


@pytest.mark.parametrize("n", [0, -1, 257, 2.5, "x", None, True])
def test_a_wrong_number_is_refused(jpegs: Path, n: Any) -> None:
    with training(jpegs) as pipe, pytest.raises(ArgumentError, match=r"`preview`: expected a number of samples from 1"):
        pipe.preview(n)


def test_sources_that_only_run_forward_are_refused() -> None:
    @pipeline_def(batch_size=2, num_threads=1)
    def numbers(source: Any) -> Any:
        return fn.external_source(source=source, batch=False, dtype=types.INT32)

    taken: list[int] = []

    def generate() -> Iterator[int]:
        for i in range(8):
            taken.append(i)
            yield i

    with numbers(generate()) as pipe, pytest.raises(StateError, match="a source that can be resumed"):
        pipe.preview(2)
    assert not taken
    with numbers([1, 2, 3, 4]) as pipe:
        pipe.preview(2)
        assert [int(x) for x in pipe.run()[0]] == [1, 2]


def test_sources_that_are_fed_by_hand_get_data(cards: list[Any]) -> None:
    @pipeline_def(batch_size=4, num_threads=1)
    def fed() -> Any:
        return fn.external_source(name="images", layout="HWC", dtype=types.UINT8, ndim=3)

    batch = [np.full((10, 12, 3), i, np.uint8) for i in (100, 200)]
    with fed() as pipe:
        pipe.preview(3, images=batch)
        assert [np.asarray(card.tiles[0]).max() for card in cards] == [100, 200]
        with pytest.raises(StateError, match="a source that can be resumed"):
            pipe.preview(3)
        with pytest.raises(ArgumentError, match=r"no source called 'image'; did you mean .images.\?"):
            pipe.preview(3, image=batch)


def test_a_bad_file_raises_or_is_replaced(jpegs: Path, tmp_path: Path, cards: list[Any]) -> None:
    good = sorted(jpegs.rglob("*.jpg"))[0]
    (tmp_path / "a").mkdir()
    for i in range(20):
        (tmp_path / "a" / f"{i:02}.jpg").write_bytes(b"\xff\xd8\xffbroken" if i == 1 else good.read_bytes())

    @pipeline_def(batch_size=4, num_threads=1, error_limit=0.5)
    def reading() -> Any:
        return fn.decoders.image(fn.readers.file(file_root=str(tmp_path))[0])

    with reading() as pipe, pytest.raises(DataError, match=r"01\.jpg"):
        pipe.preview(3)
    with reading(on_error="replace") as pipe:
        pipe.preview(3)
        assert pipe.errors == []
    titles = [card.title for card in cards]
    assert (titles[0], titles[2]) == ("a/00.jpg", "a/02.jpg")
    assert titles[1].endswith(".jpg, for a/01.jpg") and not titles[1].startswith("a/01")


def test_a_source_that_ends_gives_fewer_samples(cards: list[Any]) -> None:
    @pipeline_def(batch_size=4, num_threads=1)
    def numbers() -> Any:
        return fn.external_source(source=[[1, 2], [3]], dtype=types.INT32, cycle=None)

    with numbers() as pipe:
        pipe.preview(8)
        assert [card.lines for card in cards] == [[f"output 0: {i}"] for i in (1, 2, 3)]


def test_previews_of_dali_pipelines(jpegs: Path, cards: list[Any]) -> None:
    from stoker import dali

    @dali.pipeline_def(batch_size=4, num_threads=1, device_id=None)
    def reading() -> Any:
        jpegs_read, labels = dali.fn.readers.file(file_root=str(jpegs))
        return dali.fn.decoders.image(jpegs_read), labels

    pipe = reading()
    pipe.preview(2)
    assert len(cards) == 2 and "Pipeline 'reading'" in repr(pipe)
    images, labels = pipe.run()
    assert "data:image/png" in images._repr_html_() and "<td>" in labels._repr_html_()
    assert "data:image/png" in images[0]._repr_html_() and "int32" in labels.as_tensor()._repr_html_()
    pipe.close()


# ---- descriptions ----


def test_a_pipeline_says_what_it_is(jpegs: Path) -> None:
    pipe = training(jpegs)
    place = f"reads readers.file({str(jpegs)!r})>" if len(repr(str(jpegs))) <= 60 else "..."
    assert repr(pipe).startswith(
        "<Pipeline 'training': 5 operators, batch size 5, 2 threads; CPU; not built; reads readers.file('"
    )
    assert place in repr(pipe)
    pipe.run()
    assert "built, epoch 0, 5 rows delivered" in repr(pipe)
    pipe.close()
    assert "; closed; " in repr(pipe)
    assert repr(Pipeline(batch_size=1, num_threads=1, device_id=None)) == (
        "<Pipeline: 0 operators, batch size 1, 1 thread; CPU; no outputs yet>"
    )
    assert repr(Pipeline.__new__(Pipeline)) == "<Pipeline: not made>"


def test_a_pipeline_on_a_gpu_says_so_without_opening_it() -> None:
    @pipeline_def(batch_size=1, num_threads=1)
    def flipped() -> Any:
        return fn.flip(fn.random.uniform(shape=(2, 2)), device="gpu")

    assert "; GPU of this process; not built" in repr(flipped())
    assert "; GPU 3; not built" in repr(flipped(device_id=3)) and "; CPU; " in repr(flipped(device_id=None))


def test_the_picture_of_a_graph(jpegs: Path) -> None:
    pipe = training(jpegs)
    svg = pipe.show("svg")
    texts = list(ET.fromstring(svg).itertext())
    for name in ("readers.file", "decoders.image_random_crop", "resize", "mirror", "output 0", "output 1 'image'"):
        assert name in texts
    assert any("test_preview.py:" in text for text in texts)  # the line that made a node
    page = pipe._repr_html_()
    assert svg in page and "Pipeline &#x27;training&#x27;" in page and pipe._execution is None
    assert "no outputs yet" in Pipeline(batch_size=1)._repr_html_()


def test_a_graph_that_is_too_large_is_not_drawn() -> None:
    @pipeline_def(batch_size=1, num_threads=1)
    def long() -> Any:
        x = fn.random.uniform()
        for _ in range(301):
            x = fn.copy(x)
        return x

    page = long()._repr_html_()
    assert "<svg" not in page and "302 nodes" in page


def test_batches_in_notebooks_are_bounded(jpegs: Path) -> None:
    with training(jpegs, batch_size=20) as pipe:
        normalized, images, labels = (output._repr_html_() for output in pipe.run())
    assert normalized.count("<img") == images.count("<img") == 16 and "4 more rows" in images
    assert "black -" in normalized and "black 0, white 255" in images and labels.count("<tr>") == 17


def test_bfloat16_is_shown_as_numbers() -> None:
    @pipeline_def(batch_size=2, num_threads=1)
    def halves() -> Any:
        return fn.cast(np.float32([0.5, 1.5]), dtype=types.BFLOAT16)

    with halves() as pipe:
        assert "[0.5, 1.5]" in pipe.run()[0]._repr_html_()


def test_a_loader_says_what_it_is(jpegs: Path) -> None:
    torch_adapter = pytest.importorskip("stoker.torch", exc_type=ModuleNotFoundError)
    loader = torch_adapter.Loader(training(jpegs), last_batch_policy="partial")
    assert repr(loader).startswith("<Loader: 5 batches an epoch, last batch 'partial', of <Pipeline 'training'")
    assert "<svg" in loader._repr_html_()
    loader.close()
