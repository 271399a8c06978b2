# SPDX-License-Identifier: Apache-2.0
"""Automatic augmentations: each against NumPy, the choice per row, and what is refused."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from stoker import ArgumentError, UnsupportedError, eager
from stoker.dali import Pipeline, fn
from stoker.dali.auto_aug import augmentations as a
from stoker.dali.auto_aug.auto_augment import (
    Policy,
    apply_auto_augment,
    auto_augment,
    auto_augment_image_net,
    get_svhn_policy,
)
from stoker.dali.auto_aug.rand_augment import apply_rand_augment, get_rand_augment_suite, rand_augment
from stoker.dali.auto_aug.trivial_augment import apply_trivial_augment, trivial_augment_wide

IMAGE = np.arange(6 * 7 * 3, dtype=np.uint8).reshape(6, 7, 3) * 2
MISSING = [
    "shear_x", "shear_y", "translate_x", "translate_y", "sharpness", "equalize", "auto_contrast",
]  # fmt: skip


def run(define: Callable[[Any], Any], rows: int = 8, seed: int = 5) -> list[Any]:
    pipe = Pipeline(rows, 2, None, seed=seed, exec_async=False)  # nothing is made ahead
    with pipe:
        x = fn.external_source(source=lambda: [IMAGE] * rows, layout="HWC")
        pipe.set_outputs(define(x))
    (out,) = pipe.run()
    pipe.close()
    return [np.array(out.at(i)) for i in range(rows)]


def bins(one: Any, magnitude: Any, count: int = 11) -> list[Any]:
    return run(lambda x: one(x, magnitude_bin=magnitude, num_magnitude_bins=count))


def test_augmentations_are_what_they_say() -> None:
    assert (bins(a.invert, None)[0] == 255 - IMAGE).all()
    assert (bins(a.identity, None)[0] == IMAGE).all()
    for k in range(11):
        threshold = int(256 - 25.6 * k)
        assert (bins(a.solarize, k)[0] == np.where(threshold > IMAGE, IMAGE, 255 - IMAGE)).all()
        added = np.where(IMAGE < 128, IMAGE.astype(int) + int(11 * k), IMAGE)
        assert (bins(a.solarize_add, k)[0] == np.clip(added, 0, 255)).all()
        kept = round(0.4 * k)
        assert (bins(a.posterize, k)[0] == IMAGE >> kept << kept).all()


@pytest.mark.parametrize(
    ("one", "operator", "argument", "value"),
    [(a.brightness, "brightness", "brightness", lambda m: 1 + m), (a.contrast, "contrast", "contrast", lambda m: 1 + m),
     (a.color, "saturation", "saturation", lambda m: 1 + m), (a.rotate, "rotate", "angle", lambda m: m / 0.9 * 30)],
    ids=["brightness", "contrast", "color", "rotate"],
)  # fmt: skip
def test_magnitudes_have_both_signs(one: Any, operator: str, argument: str, value: Any) -> None:
    more = {"keep_size": True, "fill_value": 128} if operator == "rotate" else {}
    wanted = [
        getattr(eager, operator)(IMAGE, **{argument: float(np.float32(value(s * 0.45)))}, **more) for s in (1, -1)
    ]
    found = {next(i for i, w in enumerate(wanted) if (row == w).all()) for row in bins(one, 5)}
    assert found == {0, 1}


def test_one_of_several_is_chosen_per_row_and_only_that_one() -> None:
    calls: list[int] = []

    def counted(data: Any, _: Any) -> Any:
        return fn.python_function(data, function=lambda x: calls.append(1) or x + 1)

    suite = [a.invert, a.identity, a.augmentation(counted, name="counted")]
    rows = run(lambda x: apply_rand_augment(suite, x, n=1, m=3), rows=40)
    kinds = [255 - IMAGE, IMAGE, IMAGE + 1]
    chosen = [next(i for i, k in enumerate(kinds) if (row == k).all()) for row in rows]
    assert set(chosen) == {0, 1, 2}
    assert chosen.count(2) == len(calls)
    twice = run(lambda x: apply_rand_augment([a.invert], x, n=2, m=0))
    assert (twice[0] == IMAGE).all()
    same = [run(lambda x: apply_rand_augment(suite[:2], x, n=3, m=1, seed=4)) for _ in range(2)]
    assert all((x == y).all() for x, y in zip(*same, strict=True))


def test_trivial_augment_draws_the_magnitude_per_row() -> None:
    rows = run(lambda x: apply_trivial_augment([a.posterize.augmentation((0, 7))], x, num_magnitude_bins=8), rows=40)
    kinds = [IMAGE >> k << k for k in range(8)]
    assert len({next(i for i, k in enumerate(kinds) if (row == k).all()) for row in rows}) >= 5


def test_suites_run_without_what_is_missing() -> None:
    for rows in (run(lambda x: rand_augment(x, n=2, m=9, excluded=MISSING)),
                 run(lambda x: rand_augment(x, n=1, m=9, monotonic_mag=False, excluded=MISSING)),
                 run(lambda x: trivial_augment_wide(x, excluded=MISSING))):  # fmt: skip
        assert {r.shape for r in rows} == {IMAGE.shape} and {r.dtype for r in rows} == {np.dtype(np.uint8)}
        assert len({r.tobytes() for r in rows}) > 2


def test_a_policy_of_ones_own() -> None:
    policy = Policy("mine", 11, [[(a.invert, 1.0, None), (a.solarize, 0.0, 5)], [(a.posterize, 0.5, 10)]])
    rows = run(lambda x: apply_auto_augment(policy, x), rows=40)
    kinds = [255 - IMAGE, IMAGE, IMAGE >> 4 << 4]
    assert {next(i for i, k in enumerate(kinds) if (row == k).all()) for row in rows} == {0, 1, 2}


def test_what_is_missing_is_refused_by_name() -> None:
    with pytest.raises(
        UnsupportedError, match=r"`shear_x` \(needs transforms.shear, warp_affine\).*made at.*excluded="
    ):
        run(lambda x: rand_augment(x, n=1, m=5))
    with pytest.raises(UnsupportedError, match=r"`equalize` \(needs equalize\)"):
        run(lambda x: a.equalize(x))
    with pytest.raises(UnsupportedError, match=r"mine.*sharpness"):
        run(lambda x: apply_auto_augment(Policy("mine", 3, [[(a.sharpness, 1.0, 1)]]), x))
    for refused in (lambda: auto_augment(None), lambda: auto_augment_image_net(None), get_svhn_policy):
        with pytest.raises(UnsupportedError, match="needs `warp_affine`"):
            refused()
    assert {x.name for x in get_rand_augment_suite() if x.needs} == set(MISSING)


def test_wrong_arguments() -> None:
    with pytest.raises(ArgumentError, match=r"expected names out of .* got \['blur'\]"):
        rand_augment(None, 1, 1, excluded=["blur"])
    with pytest.raises(ArgumentError, match="a `magnitude_bin` from 0 to 10, got 11"):
        bins(a.solarize, 11)
    with pytest.raises(ArgumentError, match="expected `magnitude_bin` and"):
        bins(a.solarize, None)
    with pytest.raises(ArgumentError, match="expected a node"):
        a.invert(IMAGE)
    with pytest.raises(ArgumentError, match="expected a `policy_name`"):
        auto_augment(None, "imagenet")
    with pytest.raises(ArgumentError, match=r"expected .augmentation, probability, bin."):
        Policy("p", 3, [[(a.invert, 2.0, None)]])
