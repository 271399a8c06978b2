# SPDX-License-Identifier: Apache-2.0
"""Hypothesis strategies for property tests of operators: images, batches and random graphs.

Hypothesis is imported only when a strategy is created.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from ..contract.types import DType
from .graph_grower import noise
from .graphs import RandomGraph, random_graph

if TYPE_CHECKING:
    from hypothesis.strategies import SearchStrategy


def images(
    dtype: Any = DType.UINT8,
    *,
    layout: str = "HWC",
    sides: tuple[int, int] = (1, 24),
    channels: Sequence[int] = (1, 3, 4),
    frames: tuple[int, int] = (1, 3),
) -> SearchStrategy[npt.NDArray[Any]]:
    """Generate images (videos with an F in ``layout``): noise, one value, a ramp, or the type's extremes.

    Args:
        dtype: element type.
        layout: order of the axes.
        sides: smallest and largest height and width.
        channels: numbers of channels to choose from.
        frames: smallest and largest number of frames.
    """
    from hypothesis import strategies as st

    extents = {"C": st.sampled_from(list(channels)), "F": st.integers(*frames)}
    shape = st.tuples(*(extents.get(axis, st.integers(*sides)) for axis in layout))
    return st.builds(
        _image, shape, st.just(DType.of(dtype)), st.sampled_from(sorted(_FILLS)), st.integers(0, 2**32 - 1)
    )


def batches(
    dtype: Any = DType.UINT8,
    *,
    rows: tuple[int, int] = (1, 4),
    layout: str = "HWC",
    sides: tuple[int, int] = (1, 24),
    channels: Sequence[int] = (1, 3, 4),
    same_size: bool = False,
) -> SearchStrategy[list[npt.NDArray[Any]]]:
    """Generate lists of images of one type and one number of channels.

    Args:
        dtype: element type.
        rows: smallest and largest number of images.
        layout: order of the axes.
        sides: smallest and largest height and width.
        channels: numbers of channels to choose from.
        same_size: whether all images have one size.
    """
    from hypothesis import strategies as st

    @st.composite
    def build(draw: Any) -> list[npt.NDArray[Any]]:
        count, chosen = draw(st.integers(*rows)), [draw(st.sampled_from(list(channels)))]
        first = draw(images(dtype, layout=layout, sides=sides, channels=chosen))
        others = images(dtype, layout=layout, sides=sides, channels=chosen)
        if same_size:
            others = st.integers(0, 2**32 - 1).map(lambda seed: _image(first.shape, DType.of(dtype), "noise", seed))
        return [first, *(draw(others) for _ in range(count - 1))]

    return build()


def graphs(base: int = 0, files: Sequence[str] = ()) -> SearchStrategy[RandomGraph]:
    """Generate random graphs with their reference results (see :mod:`stoker.testing.graphs`).

    Args:
        base: another number gives other graphs.
        files: small image files, for graphs with a reader.
    """
    from hypothesis import strategies as st

    return st.integers(0, 2**40).map(lambda number: random_graph(base, number, files=files))


def _extremes(shape: tuple[int, ...], dtype: DType, rng: np.random.Generator) -> npt.NDArray[Any]:
    if dtype.is_float:
        ends = np.asarray([0.0, 1.0, -1.0, np.finfo(dtype.numpy).max])
    elif dtype == DType.BOOL:
        ends = np.asarray([False, True])
    else:
        ends = np.asarray([np.iinfo(dtype.numpy).min, np.iinfo(dtype.numpy).max], object)
    return rng.choice(ends, shape).astype(dtype.numpy)


_FILLS: dict[str, Any] = {
    "noise": lambda shape, dtype, rng: noise(rng, shape, dtype),
    "flat": lambda shape, dtype, rng: np.full(shape, noise(rng, (), dtype)),
    "ramp": lambda shape, dtype, rng: np.arange(int(np.prod(shape))).reshape(shape).astype(dtype.numpy),
    "extremes": _extremes,
}


def _image(shape: tuple[int, ...], dtype: DType, fill: str, seed: int) -> npt.NDArray[Any]:
    return np.asarray(_FILLS[fill](shape, dtype, np.random.default_rng(seed)), dtype.numpy)
