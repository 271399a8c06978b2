# SPDX-License-Identifier: Apache-2.0
"""The page about coverage says what is so."""

from __future__ import annotations

from pathlib import Path

import emulated_stages
import pytest
import torch

from stoker.frontends.torchvision.place import Place
from tests.takeover import table


def test_the_page_is_what_the_transforms_give(kernel_folder: Path) -> None:
    with table.emulated_place(kernel_folder) as place:
        text = table.page(place)
    assert "differs by" not in text.split("### Images")[1]
    if table.RELEASE in text:  # another release has other transforms, and its page is not kept
        assert table.PAGE.read_text(encoding="utf-8") == text, "run `.venv/bin/python -m tests.takeover.table`"


@emulated_stages.NEEDS_GPU
@pytest.mark.leaks("CUDA keeps its thread and files as long as the process")
def test_a_gpu_gives_what_the_page_says() -> None:
    place = Place(torch.device("cuda:0"), 0, 2)
    try:
        with table.few_rows():
            text = table.page(place)
    finally:
        place.close()
    assert "differs by" not in text.split("### Images")[1]
    assert text.count("| equal |") > 100


def test_a_difference_would_be_seen() -> None:
    class Careless:
        calls = 0

        def __call__(self, image: object) -> object:
            self.calls += 1
            return image.point(lambda v: min(v + (self.calls > 5), 255))  # type: ignore[attr-defined]

    assert table.cell(lambda library: Careless(), None) == "differs by 1"


def test_a_difference_of_the_gpu_would_be_seen(kernel_folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    made = table._placed

    def careless(lazies, place):  # type: ignore[no-untyped-def]
        images, count = made(lazies, place)
        images[-1] = images[-1] ^ 1
        return images, count

    monkeypatch.setattr(table, "_placed", careless)
    with table.emulated_place(kernel_folder) as place:
        assert table.cells(lambda t: t.CenterCrop(48), table.v1, place) == ("covered", "differs by 1")
