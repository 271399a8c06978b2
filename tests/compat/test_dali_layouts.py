# SPDX-License-Identifier: Apache-2.0
"""Axis names of outputs whose input has none, against NVIDIA DALI, which ``tools/dali_layouts.py`` recorded."""

from __future__ import annotations

import json
from typing import Any

import numpy as np
import pytest

import stoker.dali.experimental.dynamic as ndd
from dali_layouts import CASES, RECORD, SHAPES, make_input, run_case
from stoker import fn, pipeline_def, types
from stoker.contract.errors import StokerError
from stoker.contract.operator import COLOURS, IMAGES, IMAGES_AND_VOLUMES, Operator
from stoker.frontends.registry import find

FACTS = json.loads(RECORD.read_text(encoding="utf-8"))
# Rows of docs/migrating_from_dali.md: three numbers as `crop` of an image, the axes of `grid_mask`, and axes that the
# tensor lacks. Stoker refuses these.
REFUSED = [("crop, volume", 3), ("grid_mask", 1), ("grid_mask", 5), ("erase", 1)]
ANSWERED = [
    (name, int(rank))
    for name, answers in FACTS["cases"].items()
    for rank, answer in answers.items()
    if isinstance(answer, list) and (name, int(rank)) not in REFUSED and name != "per_frame"
]
UNFIT = [
    (name, int(rank))
    for name, answers in FACTS["cases"].items()
    for rank, answer in answers.items()
    if isinstance(answer, str) and answer.startswith("ValueError: The number of dimensions")
]
DALIS = ("fast_resize_crop_mirror", "experimental.equalize", "experimental.filter", "experimental.debayer")  # aliases
IMPERATIVE = ("resize", "flip", "flip, without effect", "crop", "hue", "equalize", "sphere", "pad", "transpose, 3 axes")
# Names that Stoker gives where DALI refuses the input. Operators of any shape name no axes.
MORE = {
    **{(name, 2): "HW" for name in (
        "resize", "resize_crop_mirror", "fast_resize_crop_mirror", "random_resized_crop", "rotate", "warp_affine",
        "flip", "flip, depth", "flip, without effect", "flip and slice", "flip and crop", "crop", "crop, whole",
        "crop and resize", "paste", "clahe", "sphere", "water",
    )},
    **{(name, 4): "FHWC" for name in ("paste", "clahe", "sphere", "water")},
    **{
        (name, rank): ""
        for name in ("brightness", "contrast", "brightness_contrast", "brightness_contrast, without effect")
        for rank in (1, 2, 5)
    },
    **{(name, 1): "" for name in ("flip, depth", "flip, without effect", "crop, whole")},
}  # fmt: skip


def test_the_record_has_the_cases() -> None:
    """The record is of DALI 2, and has an answer for each case and number of axes."""
    assert FACTS["version"].startswith("2.")
    assert list(FACTS["cases"]) == list(CASES)
    assert all(set(answers) == {str(rank) for rank in SHAPES} for answers in FACTS["cases"].values())
    assert len(ANSWERED) > 250 and {x[0] for x in REFUSED} <= set(CASES)


@pytest.mark.parametrize(("name", "rank"), ANSWERED)
def test_axis_names_are_dalis(name: str, rank: int) -> None:
    want, extents = FACTS["cases"][name][str(rank)]
    found = run_case("stoker.dali", name, rank)
    assert found == (want, extents or found[1])


def test_wildcards_are_no_names() -> None:
    """DALI names the axes of a frame ``*``, Stoker does not (a row of docs/migrating_from_dali.md)."""
    for rank, (layout, extents) in FACTS["cases"]["per_frame"].items():
        assert layout == "F" + "*" * (int(rank) - 1)
        assert run_case("stoker.dali", "per_frame", int(rank)) == ("", extents)


@pytest.mark.parametrize(("name", "rank"), REFUSED)
def test_refusals_that_the_page_names(name: str, rank: int) -> None:
    assert isinstance(FACTS["cases"][name][str(rank)], list)
    with pytest.raises(ValueError, match="expected"):
        run_case("stoker.dali", name, rank)


@pytest.mark.parametrize(("name", "rank"), UNFIT)
def test_inputs_of_other_numbers_of_axes(name: str, rank: int) -> None:
    """For a number of axes that DALI refuses, Stoker gives a result with the names that it took, or an error."""
    try:
        found = run_case("stoker.dali", name, rank)[0]
    except (ValueError, NotImplementedError) as error:
        assert isinstance(error, StokerError) and (name, rank) not in MORE
    else:
        assert found == MORE[name, rank]


@pytest.mark.parametrize(("name", "rank"), [x for x in ANSWERED if CASES[x[0]][0] not in DALIS])
def test_pipelines_of_stoker(name: str, rank: int) -> None:
    """``stoker.fn`` gives the names of ``stoker.dali``."""
    row = make_input(name, rank)

    @pipeline_def(batch_size=2, num_threads=1)
    def pipeline() -> Any:
        return CASES[name][1](fn, types, fn.external_source(source=lambda info: row, batch=False))

    with pipeline() as pipe:
        (out,) = pipe.run()
        assert out.layout == FACTS["cases"][name][str(rank)][0]


@pytest.mark.parametrize(("name", "rank"), [x for x in ANSWERED if x[0] in IMPERATIVE])
def test_imperative_mode(name: str, rank: int) -> None:
    found = CASES[name][1](ndd, types, ndd.tensor(make_input(name, rank)))
    assert (found.layout or "") == FACTS["cases"][name][str(rank)][0]


def test_the_input_stays_without_names() -> None:
    """The names are those of the output alone, also of an operator that returns its input."""
    row = make_input("flip", 3)

    @pipeline_def(batch_size=2, num_threads=1)
    def pipeline() -> Any:
        x = fn.external_source(source=lambda info: row, batch=False)
        return x, fn.flip(x, horizontal=0), fn.flip(x), x + 0, fn.crop(x)

    with pipeline() as pipe:
        outputs = pipe.run()
        assert [x.layout for x in outputs] == ["", "HWC", "HWC", "", "HWC"]
        np.testing.assert_array_equal(outputs[0][1], outputs[1][1])
        np.testing.assert_array_equal(outputs[0][1][:, ::-1], outputs[2][1])


@pytest.mark.parametrize("layout", ["CHW", "HWC", "WHC", "DHW"])
def test_names_of_the_input_stay(layout: str) -> None:
    row = make_input("flip", 3)

    @pipeline_def(batch_size=2, num_threads=1)
    def pipeline() -> Any:
        x = fn.external_source(source=lambda info: row, batch=False, layout=layout)
        return fn.flip(x), fn.brightness(x, brightness=1.5)

    with pipeline() as pipe:
        assert [x.layout for x in pipe.run()] == [layout, layout]


def test_a_crop_of_each_frame() -> None:
    """Four axes are a volume to ``crop``, as in DALI, and a video if an argument has numbers for each frame."""
    row = make_input("crop", 4)

    @pipeline_def(batch_size=1, num_threads=1)
    def pipeline() -> Any:
        x = fn.external_source(source=lambda info: row, batch=False)
        each = fn.per_frame(fn.constant(fdata=[0.0, 0.5, 1.0, 0.0], shape=[4]))
        return fn.crop(x, crop=(3, 4)), fn.crop(x, crop=(3, 4), crop_pos_x=each)

    with pipeline() as pipe:
        whole, framed = pipe.run()
        assert (whole.layout, framed.layout) == ("DHWC", "FHWC")
        starts = [0, 4, 8, 0]
        want = np.stack([frame[4:7, x : x + 4] for frame, x in zip(row, starts, strict=True)])
        np.testing.assert_array_equal(framed[0], want)


def test_the_first_fitting_layout() -> None:
    crop = find("crop")
    assert [crop.default_layout(rank) for rank in range(7)] == ["", "", "HW", "HWC", "DHWC", "", ""]
    assert [crop.default_layout(rank, per_frame=True) for rank in (3, 4)] == ["", "FHWC"]
    assert Operator.default_layouts == () and Operator.default_layout(3) == ""
    assert set(COLOURS) < set(IMAGES) < set(IMAGES_AND_VOLUMES)


@pytest.mark.parametrize("name", sorted(FACTS["schemas"]))
def test_operators_of_gpus_obey_the_schema(name: str) -> None:
    """DALI has these operators for GPUs alone: the first layout of the schema with as many axes counts."""
    for rank in SHAPES:
        first = next((x for x in FACTS["schemas"][name] if len(x) == rank), None)
        if first is not None:
            assert find(name).default_layout(rank) == first
