# SPDX-License-Identifier: Apache-2.0
"""Automatic augmentations: values against NumPy, the choice per row, and refusals."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from stoker import ArgumentError, eager
from stoker.dali import Pipeline, fn
from stoker.dali.auto_aug import augmentations as a
from stoker.dali.auto_aug.auto_augment import (
    Policy,
    apply_auto_augment,
    auto_augment,
    auto_augment_image_net,
    get_image_net_policy,
    get_reduced_cifar10_policy,
    get_reduced_image_net_policy,
    get_svhn_policy,
)
from stoker.dali.auto_aug.core import augmentation, select, signed_bin
from stoker.dali.auto_aug.rand_augment import apply_rand_augment, get_rand_augment_suite, rand_augment
from stoker.dali.auto_aug.trivial_augment import apply_trivial_augment, trivial_augment_wide

IMAGE = np.arange(6 * 7 * 3, dtype=np.uint8).reshape(6, 7, 3) * 2


def run(define: Callable[[Any], Any], rows: int = 8, seed: int = 5) -> list[Any]:
    pipe = Pipeline(rows, 2, None, seed=seed, exec_async=False)  # no prefetching
    with pipe:
        x = fn.external_source(source=lambda: [IMAGE] * rows, layout="HWC")
        pipe.set_outputs(define(x))
    (out,) = pipe.run()
    pipe.close()
    return [np.array(out.at(i)) for i in range(rows)]


def bins(one: Any, magnitude: Any, count: int = 11) -> list[Any]:
    return run(lambda x: one(x, magnitude_bin=magnitude, num_magnitude_bins=count))


def test_augmentations_equal_numpy() -> None:
    assert (bins(a.invert, None)[0] == 255 - IMAGE).all()
    assert (bins(a.identity, None)[0] == IMAGE).all()
    for k in range(11):
        threshold = np.float32(256 - 25.6 * k)
        assert (bins(a.solarize, k)[0] == np.where(threshold > IMAGE, IMAGE, 255 - IMAGE)).all()
        added = np.where(IMAGE < 128, IMAGE.astype(int) + int(11 * k), IMAGE)
        assert (bins(a.solarize_add, k)[0] == np.clip(added, 0, 255)).all()
        lost = 8 - max(1, round(float(np.float32(0.4 * k))))
        assert (bins(a.posterize, k)[0] == IMAGE >> lost << lost).all()


@pytest.mark.parametrize(
    ("one", "operator", "argument", "value"),
    [
        (a.brightness, "brightness", "brightness", lambda m: 1 + m),
        (a.color, "saturation", "saturation", lambda m: 1 + m),
        (a.rotate, "rotate", "angle", lambda m: m / 0.9 * 30),
    ],
    ids=["brightness", "color", "rotate"],
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
    rows = run(lambda x: apply_trivial_augment([a.posterize.augmentation((1, 8))], x, num_magnitude_bins=8), rows=40)
    kinds = [IMAGE >> k << k for k in range(8)]
    assert len({next(i for i, k in enumerate(kinds) if (row == k).all()) for row in rows}) >= 5


def one_bin(one: Any, magnitude: int, **more: Any) -> Any:
    """Return an augmentation without random signs, at one of eleven magnitudes."""
    fixed = one.augmentation(randomly_negate=False)
    return run(lambda x: fixed(x, magnitude_bin=magnitude, num_magnitude_bins=11, **more), rows=1)[0]


def test_augmentations_that_depend_on_the_whole_image() -> None:
    gray = IMAGE.astype(np.float64).mean((0, 1)) @ [0.299, 0.587, 0.114]
    wanted = np.rint(np.clip(gray + (IMAGE - gray) * 1.45, 0, 255))
    assert np.abs(one_bin(a.contrast, 5) - wanted).max() <= 1
    low, high = IMAGE.min((0, 1)), IMAGE.max((0, 1))
    assert (one_bin(a.auto_contrast, 0) == np.rint((IMAGE - low) * (np.float32(255) / (high - low)))).all()
    same = np.full_like(IMAGE, 9)
    pipe = Pipeline(1, 1, None)
    with pipe:
        pipe.set_outputs(a.auto_contrast(fn.external_source(source=lambda: [same], layout="HWC")))
    assert (np.array(pipe.run()[0].at(0)) == same).all()
    pipe.close()
    assert (one_bin(a.equalize, 0) == eager.equalize(IMAGE)).all()
    blurred = one_bin(a.sharpness.augmentation(mag_range=(0, -1)), 10)
    assert (blurred == eager.filter(IMAGE, np.array([[1, 1, 1], [1, 5, 1], [1, 1, 1]], np.float32) / 13)).all()


def test_geometry() -> None:
    moved = one_bin(a.translate_x_no_shape.augmentation(mag_range=(0, 2)), 10)
    assert (moved[:, 2:] == IMAGE[:, :-2]).all() and (moved[:, :2] == 128).all()
    moved = one_bin(a.translate_y.augmentation(mag_range=(0, 0.5)), 10, shape=[6, 7], fill_value=3)
    assert (moved[3:] == IMAGE[:3]).all() and (moved[:3] == 3).all()
    for one, along in ((a.shear_x, (1.0, 0.3, 0.0, 0.0, 1.0, 0.0)), (a.shear_y, (1.0, 0.0, 0.0, 0.3, 1.0, 0.0))):
        wanted = eager.warp_affine(IMAGE, matrix=along, fill_value=128.0, inverse_map=False)
        assert (one_bin(one, 10) == wanted).all()
    with pytest.raises(ArgumentError, match=r"`translate_x`: expected the argument `shape`, got none — made at .*py:"):
        one_bin(a.translate_x, 1)


def different(rows: list[Any]) -> bool:
    return {(r.shape, r.dtype) for r in rows} == {(IMAGE.shape, IMAGE.dtype)} and len({r.tobytes() for r in rows}) > 3


@pytest.mark.parametrize("shape", [None, (6, 7)])
@pytest.mark.parametrize("fill", [128, None])
def test_suites_and_policies_run(shape: Any, fill: Any) -> None:
    more = {"shape": shape, "fill_value": fill}
    assert different(run(lambda x: rand_augment(x, n=2, m=9, **more)))
    assert different(run(lambda x: rand_augment(x, n=1, m=9, monotonic_mag=False, **more)))
    assert different(run(lambda x: trivial_augment_wide(x, **more), rows=12))
    assert different(run(lambda x: auto_augment_image_net(x, **more), rows=24))


@pytest.mark.parametrize("name", ["svhn", "reduced_cifar10", "reduced_image_net"])
def test_other_policies_run(name: str) -> None:
    assert different(run(lambda x: auto_augment(x, name, seed=3), rows=24))
    policies = {"svhn": get_svhn_policy, "reduced_cifar10": get_reduced_cifar10_policy}
    policy = policies.get(name, get_reduced_image_net_policy)()
    assert len(policy.sub_policies) == 25 and policy.num_magnitude_bins == 11
    again = [run(lambda x: apply_auto_augment(policy, x, seed=3), rows=24, seed=s) for s in (1, 2)]
    assert all((x == y).all() for x, y in zip(*again, strict=True)), "the seed decides"


def test_shapes_may_be_nodes() -> None:
    rows = run(lambda x: auto_augment_image_net(x, shape=fn.shapes(x), max_translate_rel=(0.2, 0.5)), rows=24)
    assert different(rows)


def test_custom_magnitudes_and_shared_signs() -> None:
    @augmentation(mag_range=np.array([3, 5, 9]), randomly_negate=True)
    def shifted(data: Any, by: Any) -> Any:
        return fn.cast(data, dtype=np.int32) + by

    def define(x: Any) -> Any:
        signed = signed_bin(2)
        return [shifted(x, magnitude_bin=signed, num_magnitude_bins=3) for _ in range(2)]

    pipe = Pipeline(16, 1, None, seed=4)
    with pipe:
        pipe.set_outputs(*define(fn.external_source(source=lambda: [IMAGE] * 16, layout="HWC")))
    one, two = pipe.run()
    pipe.close()
    found = [int(np.array(one.at(i))[0, 0, 0]) for i in range(16)]
    assert set(found) == {9, -9}
    assert found == [int(np.array(two.at(i))[0, 0, 0]) for i in range(16)]
    rows = run(lambda x: select([a.invert, a.identity], fn.random.coin_flip(), data=x), rows=12)
    assert {int(r[0, 0, 0]) for r in rows} == {0, 255}
    with pytest.raises(ArgumentError, match="expected 3 `num_magnitude_bins`, got 4"):
        run(lambda x: shifted(x, magnitude_bin=1, num_magnitude_bins=4))
    assert a.brightness.augmentation(mag_to_param=None).mag_to_param is None
    assert a.brightness.augmentation((0, 1)).mag_to_param is a.brightness.mag_to_param


def test_a_custom_policy() -> None:
    policy = Policy("mine", 11, [[(a.invert, 1.0, None), (a.solarize, 0.0, 5)], [(a.posterize, 0.5, 10)]])
    rows = run(lambda x: apply_auto_augment(policy, x), rows=40)
    kinds = [255 - IMAGE, IMAGE, IMAGE >> 4 << 4]
    assert len(get_image_net_policy().sub_policies) == 25
    assert {next(i for i, k in enumerate(kinds) if (row == k).all()) for row in rows} == {0, 1, 2}


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
    with pytest.raises(ArgumentError, match="the policy 'reduced_image_net' has no translations: `shape` is given"):
        auto_augment(None, "reduced_image_net", shape=(3, 4))
    with pytest.raises(ArgumentError, match="`max_translate_rel` with shapes, got the other"):
        get_rand_augment_suite(True, max_translate_abs=3)
    with pytest.raises(ArgumentError, match="`apply_rand_augment`: expected m from 0 to 30, got 31"):
        run(lambda x: rand_augment(x, 1, 31))
    with pytest.raises(ArgumentError, match="no augmentation takes `fill`"):
        run(lambda x: apply_rand_augment([a.invert], x, 1, 1, fill=3))
    with pytest.raises(ArgumentError, match=r"expected .augmentation, probability from 0 to 1, bin."):
        Policy("p", 3, [[(a.invert, 2.0, None)]])
    with pytest.raises(ArgumentError, match="expected a bin from 0 to 2 for `rotate`, got 3"):
        Policy("p", 3, [[(a.rotate, 0.5, 3)]])
