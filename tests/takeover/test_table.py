# SPDX-License-Identifier: Apache-2.0
"""The page about coverage matches the measured table."""

from __future__ import annotations

from pathlib import Path

import emulated_stages
import pytest
import torch

from stoker.frontends.torchvision.gpu.destination import Destination
from stoker.frontends.torchvision.reference.sums import product_order
from tests.takeover import table, trials


@pytest.fixture(scope="module")
def measured(kernel_folder: Path) -> str:
    """Return the page of this machine, with an emulated GPU."""
    with table.emulated_place(kernel_folder) as destination:
        return table.page(destination)


def test_the_page_matches_the_measured_table(measured: str) -> None:
    assert "differs by" not in measured.split("### Images")[1]
    if table.release_of(measured) == table.RELEASE:  # another release has other transforms, and no page
        written = table.PAGE.read_text(encoding="utf-8")
        assert written.split("### Images")[0] == measured.split("### Images")[0], _RUN
        assert other_rows(written, measured) == [], _RUN


Cells = dict[str, list[str]]
_RUN = "run `.venv/bin/python -m tests.takeover.table`"


def other_rows(written: str, text: str) -> list[str]:
    """Return the rows of two pages that no two machines may both have."""
    page, here = table.rows_of(written), table.rows_of(text)
    assert len(page) > 100 and list(page) == list(here)
    return [name for name in page if not table.may_both_be(page[name], here[name])]


def without_gpu(rows: Cells) -> Cells:
    """Return the CPU's cells."""
    return {name: cells[::2] for name, cells in rows.items()}


@pytest.fixture(scope="module")
def here(measured: str) -> Cells:
    """Return the rows of this machine."""
    return without_gpu(table.rows_of(measured))


def test_another_order_of_products_changes_the_rows_that_the_page_names(here: Cells) -> None:
    """With MKL's order on AMD processors only the marked rows change, and all results equal torch's."""
    with trials.other_sums("products", "points"):
        other = without_gpu(table.rows_of(table.page(None)))
    changed = {name.split(": ")[1] for name in here if here[name] != other[name]}
    named = table.TEXT.read_text(encoding="utf-8").split('which read "fallback":')[1].split("On a processor")[0]
    assert changed <= {line.removeprefix("- ").removesuffix(" (of tensors)") for line in named.split("\n")}
    assert changed or product_order((3, 3)) is None, "these rows depend on it"
    assert not any("differs by" in cell for cells in other.values() for cell in cells)


def test_unknown_orders_leave_everything_equal(here: Cells) -> None:
    """On a processor with unknown orders of additions, the rows that depend on trials fall back."""
    with trials.other_sums(*trials.SUMS):
        other = without_gpu(table.rows_of(table.page(None)))
    for name, cells in other.items():
        for before, now in zip(here[name], cells, strict=True):
            assert now == (f"fallback{table.TRIED}" if before.endswith(table.TRIED) else before), name


def test_a_cell_that_depends_on_no_trial_must_be_equal() -> None:
    one, tried, other = ["covered", "equal"], ["covered*", "equal"], ["fallback*", "—"]
    assert table.may_both_be(tried, other) and table.may_both_be(one, one)
    for wrong in (other, ["fallback", "—"], ["covered", "by the CPU"], tried, ["differs by 1", "—"]):
        assert not table.may_both_be(one, wrong)
    assert not table.may_both_be(tried, ["fallback", "—"]) and not table.may_both_be(tried, ["differs by 1", "equal"])


@emulated_stages.NEEDS_GPU
@pytest.mark.leaks("CUDA keeps its thread and files as long as the process")
def test_a_gpu_matches_the_page() -> None:
    destination = Destination(torch.device("cuda:0"), 0, 2)
    try:
        with table.few_rows():
            text = table.page(destination)
    finally:
        destination.close()
    assert "differs by" not in text.split("### Images")[1]
    assert text.count("| equal |") > 100


def test_a_planted_difference_is_detected() -> None:
    class Careless:
        calls = 0

        def __call__(self, image: object) -> object:
            self.calls += 1
            return image.point(lambda v: min(v + (self.calls > 5), 255))  # type: ignore[attr-defined]

    assert table.cell(lambda library: Careless(), None) == "differs by 1"


def test_a_planted_difference_of_the_gpu_is_detected(kernel_folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    original = table._placed

    def careless(lazies, destination):  # type: ignore[no-untyped-def]
        images, count = original(lazies, destination)
        images[-1] = images[-1] ^ 1
        return images, count

    monkeypatch.setattr(table, "_placed", careless)
    with table.emulated_place(kernel_folder) as destination:
        assert table.cells(lambda t: t.CenterCrop(48), table.v1, destination) == ("covered", "differs by 1")
