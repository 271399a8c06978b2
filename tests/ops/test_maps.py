# SPDX-License-Identifier: Apache-2.0
"""Sampling at coordinates: values of DALI and OpenCV, edges, videos, and what is refused."""

from __future__ import annotations

import zlib
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from stoker import ArgumentError, DataError, Pipeline, UnsupportedError, eager, fn, types

IMAGE = np.random.default_rng(1).integers(0, 256, (37, 53, 3), dtype=np.uint8)
LINEAR = {"interp_type": types.INTERP_LINEAR}
WAVES = {
    "ampl_x": 3.0, "ampl_y": 2.0, "freq_x": 0.2, "freq_y": 0.3, "phase_x": 0.5, "phase_y": 0.1, "fill_value": 9.0,
}  # fmt: skip
# Checksums of the outputs of DALI 2.4 on the CPU.
DALIS: dict[str, tuple[Callable[[], Any], int]] = {
    "sphere": (lambda: eager.sphere(IMAGE, fill_value=7.0), 2755256728),
    "water": (lambda: eager.water(IMAGE, **WAVES), 3542348219),
    "water, linear": (lambda: eager.water(IMAGE, **WAVES, **LINEAR), 100042950),
    "water by default": (lambda: eager.water(IMAGE), 1344569448),
}


@pytest.mark.parametrize("name", DALIS)
def test_bytes_are_dalis(name: str) -> None:
    call, want = DALIS[name]
    assert zlib.crc32(np.ascontiguousarray(call())) == want


def test_a_constant_mask_has_an_effect() -> None:
    """DALI ignores it, unless it is a tensor."""
    for call in (eager.sphere, eager.water, eager.jitter):
        np.testing.assert_array_equal(np.asarray(call(IMAGE, mask=0)), IMAGE)
        assert (np.asarray(call(IMAGE, mask=1)) != IMAGE).any()


def test_a_mask_for_each_row() -> None:
    pipe = Pipeline(batch_size=4, num_threads=2, seed=1)
    with pipe:
        x = fn.external_source(source=lambda info: IMAGE, batch=False, dtype="uint8", ndim=3, layout="HWC")
        mask = fn.external_source(
            source=lambda info: np.int32(info.idx_in_batch % 2), batch=False, dtype="int32", ndim=0
        )
        pipe.set_outputs(fn.water(x, mask=mask))
    with pipe:
        (rows,) = pipe.run()
        for i, row in enumerate(rows):
            np.testing.assert_array_equal(np.asarray(row), np.asarray(eager.water(IMAGE, mask=i % 2)))


def remap(x: Any, mapx: Any, mapy: Any, **arguments: Any) -> Any:
    return np.asarray(eager.experimental.remap(x, np.float32(mapx), np.float32(mapy), **arguments))


OWN_Y, OWN_X = (g.astype(np.float32) for g in np.indices(IMAGE.shape[:2]))


@pytest.mark.parametrize("interp", [types.INTERP_NN, types.INTERP_LINEAR, types.INTERP_CUBIC])
@pytest.mark.parametrize("dtype", ["uint8", "int8", "uint16", "int16", "int32", "float32", "float16", "bool"])
def test_whole_places_are_the_elements(dtype: str, interp: Any) -> None:
    x = IMAGE.astype(dtype)
    for origin, half in (("corner", 0.5), ("center", 0.0)):
        arguments = {"interp": interp, "pixel_origin": origin}
        np.testing.assert_array_equal(remap(x, OWN_X + half, OWN_Y + half, **arguments), x)
        np.testing.assert_array_equal(remap(x, 52 - OWN_X + half, 36 - OWN_Y + half, **arguments), x[::-1, ::-1])


def test_neighbours_beyond_the_edges_are_zero() -> None:
    x = np.full((2, 2), 100, np.uint8)
    places = np.float32([[-1, -0.75, -0.5, 0, 1, 1.25, 2, 5]])
    got = remap(x, places, np.zeros_like(places), pixel_origin="center")
    assert got.tolist() == [[0, 25, 50, 100, 100, 75, 0, 0]]
    near = remap(x, places, np.zeros_like(places), pixel_origin="center", interp=types.INTERP_NN)
    assert near.tolist() == [[0, 0, 100, 100, 100, 100, 0, 0]]


def test_places_that_are_no_numbers_are_beyond_the_edges() -> None:
    places = np.float32([[np.nan, np.inf, -np.inf, 1e38, -1e38, 2.0**31, 2.0**62]])
    for interp in (types.INTERP_NN, types.INTERP_LINEAR, types.INTERP_CUBIC):
        for x, y in ((places, np.zeros_like(places)), (np.zeros_like(places), places)):
            assert not remap(IMAGE, x, y, interp=interp, pixel_origin="center").any()


def keys(t: Any) -> Any:
    """Weights of a cubic convolution with coefficient -3/4. Source: Keys, "Cubic convolution interpolation" (1981)."""
    t, a = np.abs(t), -0.75
    inner = (a + 2) * t**3 - (a + 3) * t**2 + 1
    return np.where(t < 1, inner, np.where(t < 2, a * (t**3 - 5 * t**2 + 8 * t - 4), 0))


@pytest.mark.parametrize("dtype", ["uint8", "int16", "int32", "float32"])
def test_cubic_sampling_is_keys_convolution(dtype: str) -> None:
    """Over the image with zeros around, also where only some of the sixteen elements are inside."""
    x = (
        IMAGE[..., :1].astype(np.float64) * (1 if dtype == "uint8" else 100) - (0 if dtype == "uint8" else 9000)
    ).astype(dtype)
    rng = np.random.default_rng(3)
    map_y, map_x = (rng.uniform(-4, n + 4, (41, 29)).astype(np.float32) for n in x.shape[:2])
    rows, columns = (
        keys(m[..., None].astype(np.float64) - np.arange(n)) for m, n in zip((map_y, map_x), x.shape, strict=False)
    )
    want = np.einsum("ijy,ijx,yxc->ijc", rows, columns, x.astype(np.float64))
    if dtype == "uint8":
        want = want.clip(0, 255)
    got = remap(x, map_x, map_y, interp=types.INTERP_CUBIC, pixel_origin="center").astype(np.float64)
    assert np.abs(got - want).max() <= (0.51 if dtype != "float32" else 0.05)
    linear = remap(x, map_x, map_y, pixel_origin="center").astype(np.float64)
    assert np.abs(linear - want).max() > 5


@pytest.mark.parametrize("name", ["sphere", "water", "lens_distortion"])
def test_cubic_sampling_follows_the_same_coordinates(name: str) -> None:
    """Of a plane, linear and cubic interpolation differ by a twentieth of its slopes at most."""
    ramp = np.add.outer(np.arange(60, dtype=np.float32), 2 * np.arange(80, dtype=np.float32))[..., None]
    arguments = {"radial": [0.3]} if name == "lens_distortion" else {}
    linear, cubic = (
        np.asarray(getattr(eager, name)(ramp, interp_type=kind, **arguments))
        for kind in (types.INTERP_LINEAR, types.INTERP_CUBIC)
    )
    inner = (linear > 3) & (linear < 200)
    inner[:12] = inner[-12:] = inner[:, :12] = inner[:, -12:] = False
    assert inner.sum() > 1000
    np.testing.assert_allclose(cubic[inner], linear[inner], atol=0.2)
    assert (cubic != linear).any()


def test_videos_take_maps_for_all_frames_or_for_each() -> None:
    video = np.stack([IMAGE, IMAGE[::-1], IMAGE[:, ::-1]])
    mirror = 52 - OWN_X
    one = remap(video, mirror, OWN_Y, pixel_origin="center")
    np.testing.assert_array_equal(one, video[:, :, ::-1])
    maps = np.stack([OWN_X, mirror, OWN_X])
    each = remap(video, maps, np.stack([OWN_Y] * 3), pixel_origin="center")
    np.testing.assert_array_equal(each, [IMAGE, IMAGE[::-1, ::-1], IMAGE[:, ::-1]])


def test_maps_with_an_axis_of_channels() -> None:
    got = remap(IMAGE, (52 - OWN_X)[..., None], OWN_Y[..., None], pixel_origin="center")
    np.testing.assert_array_equal(got, IMAGE[:, ::-1])


def test_moves_of_pixels_stay_within_their_range() -> None:
    place = np.arange(40 * 50, dtype=np.int32).reshape(40, 50)
    for degree in (1, 2, 5):
        moved = np.asarray(eager.jitter(place, nDegree=degree, seed=7))
        down, across = moved // 50 - place // 50, moved % 50 - place % 50
        inner = np.s_[5:-5, 5:-5]
        for moves in (down[inner], across[inner]):
            assert set(np.unique(moves)) == set(range(-(degree // 2), degree - degree // 2))
    assert abs(np.corrcoef(down[inner].ravel(), across[inner].ravel())[0, 1]) < 0.1


def test_a_deformation_is_smooth_and_random() -> None:
    ramp = np.broadcast_to(np.arange(120, dtype=np.float32), (100, 120)).copy()
    fields = [np.asarray(eager.elastic(ramp, alpha=60.0, sigma=6.0, seed=s))[20:-20, 20:-20] for s in (1, 2)]
    moves = [field - ramp[20:-20, 20:-20] for field in fields]
    assert all(0.5 < m.std() < 10 and np.abs(np.diff(m, axis=0)).max() < 1.5 for m in moves)
    assert abs(np.corrcoef(moves[0].ravel(), moves[1].ravel())[0, 1]) < 0.5


def test_a_lens_without_distortion_changes_nothing() -> None:
    for x in (IMAGE, IMAGE.astype(np.float32)):
        got = np.asarray(eager.lens_distortion(x, radial=0.0, interp_type=types.INTERP_NN))
        np.testing.assert_array_equal(got, x)


@pytest.mark.parametrize(
    ("call", "why"),
    [
        (lambda: eager.sphere(IMAGE[:0]), r"1 to 2\*\*24 pixels on a side, got 0"),
        (lambda: eager.water(IMAGE, ampl_x=float("nan")), "`ampl_x` below a million"),
        (lambda: eager.water(IMAGE.astype(np.float64)), "expected one of uint8"),
        (lambda: eager.jitter(IMAGE, nDegree=0, seed=7), "from 1 to"),
        (lambda: eager.lens_distortion(IMAGE, focal=0.0), "a `focal` above 0"),
        (lambda: eager.lens_distortion(IMAGE, radial=[1, 2, 3, 4]), "1 to 3 numbers as `radial`"),
        (lambda: eager.lens_distortion(IMAGE, center=[0.5]), "two numbers as `center`"),
        (lambda: eager.elastic(IMAGE, alpha=float("inf"), seed=7), "finite `alpha`"),
        (lambda: eager.elastic(IMAGE, sigma=0.0, seed=7), "`sigma`"),
        (lambda: remap(IMAGE, OWN_X, OWN_Y[:5]), "maps of one shape"),
        (lambda: remap(IMAGE, OWN_X[:5], OWN_Y), "maps of one shape"),
        (lambda: remap(np.stack([IMAGE] * 2), np.stack([OWN_X] * 3), np.stack([OWN_Y] * 3)), "frames and channels"),
        (lambda: remap(IMAGE, np.stack([OWN_X] * 2, -1), np.stack([OWN_Y] * 2, -1)), "maps of one channel, got 2"),
        (lambda: eager.experimental.remap(IMAGE, OWN_X.astype(int), OWN_Y.astype(int)), "maps of float32"),
    ],
)  # fmt: skip
def test_refused(call: Callable[[], Any], why: str) -> None:
    with pytest.raises((ArgumentError, DataError, UnsupportedError), match=why):
        call()
