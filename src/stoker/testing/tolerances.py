# SPDX-License-Identifier: Apache-2.0
"""Comparisons of results, whose errors name the difference and its position.

Exact is the rule. For an inexact operator (``Operator.exactness``) a tolerance has two parts: a *share* of the elements
that must be within ``atol``, and a hard *bound* for every element. A mean difference hides a broken border, and a
maximum alone allows every element to be slightly wrong.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import numpy.typing as npt


def assert_exact(got: Any, want: Any, what: str = "result", *, nan_bits: bool = False) -> None:
    """Assert equal type, shape and bytes. 0.0 and -0.0 differ.

    Args:
        got: the result.
        want: the expected result.
        what: name of the result in the error.
        nan_bits: compare the sign and payload of NaNs. Use it between two runs of Stoker; NumPy's NaNs differ.

    Raises:
        AssertionError: the results differ; the text has the first position and the number of differences.
    """
    got, want = _arrays(got, want, what)
    if got.tobytes() == want.tobytes():
        return
    different = _bits(got) != _bits(want)
    if got.dtype.kind == "f" and not nan_bits:
        different &= ~(np.isnan(got) & np.isnan(want))
    if different.any():
        raise AssertionError(f"{what}: expected the same bits; {_first(got, want, different)}")


def assert_close(got: Any, want: Any, *, atol: float, bound: float, share: float = 1.0, what: str = "result") -> None:
    """Assert that at least ``share`` of the elements are within ``atol``, and every element within ``bound``.

    Infinities and NaNs must be at the same positions.

    Args:
        got: the result.
        want: the expected result, of the same type and shape.
        atol: largest difference of an ordinary element.
        bound: largest difference of any element.
        share: share of the elements that must be ordinary, from 0 to 1.
        what: name of the result in the error.

    Raises:
        AssertionError: the results differ too much; the text has the worst position.
    """
    if not 0 <= atol <= bound or not 0 <= share <= 1:
        raise ValueError(f"expected 0 <= atol <= bound and 0 <= share <= 1, got {atol}, {bound}, {share}")
    got, want = _arrays(got, want, what)
    difference = distance(got, want)
    beyond = ~(difference <= bound)
    if beyond.any():
        raise AssertionError(f"{what}: expected every element within {bound}; {_first(got, want, beyond)}")
    within = float(np.mean(difference <= atol)) if difference.size else 1.0
    if within < share:
        raise AssertionError(
            f"{what}: expected {share:.4%} of the elements within {atol}, got {within:.4%}; "
            f"{_first(got, want, difference > atol)}"
        )


def assert_rows(got: Sequence[Any], want: Sequence[Any], what: str = "batch", **tolerance: Any) -> None:
    """Compare every row of a batch.

    Args:
        got: the rows.
        want: the expected rows.
        what: name of the batch in the error.
        **tolerance: ``atol``, ``bound`` and ``share`` of :func:`assert_close`; without them :func:`assert_exact` holds.

    Raises:
        AssertionError: the numbers of rows differ, or a row does.
    """
    if len(got) != len(want):
        raise AssertionError(f"{what}: expected {len(want)} rows, got {len(got)}")
    for i, (a, b) in enumerate(zip(got, want, strict=True)):
        compare = assert_close if "atol" in tolerance else assert_exact
        compare(a, b, what=f"{what}, row {i}", **tolerance)


def distance(got: npt.NDArray[Any], want: npt.NDArray[Any]) -> npt.NDArray[np.float64]:
    """Return the absolute difference per element: 0 for the same NaN or infinity, infinite if only one is."""
    a, b = got.astype(np.float64), want.astype(np.float64)
    same = (a == b) | (np.isnan(a) & np.isnan(b))
    finite = np.isfinite(a) & np.isfinite(b)
    with np.errstate(invalid="ignore", over="ignore"):
        return np.where(same, 0.0, np.where(finite, np.abs(a - b), np.inf))


def _arrays(got: Any, want: Any, what: str) -> tuple[npt.NDArray[Any], npt.NDArray[Any]]:
    got, want = np.asarray(got), np.asarray(want)
    if got.dtype != want.dtype:
        raise AssertionError(f"{what}: expected {want.dtype}, got {got.dtype}")
    if got.shape != want.shape:
        raise AssertionError(f"{what}: expected the shape {want.shape}, got {got.shape}")
    return got, want


def _bits(x: npt.NDArray[Any]) -> npt.NDArray[Any]:
    return np.ascontiguousarray(x).reshape(x.shape).view(f"u{x.dtype.itemsize}")


def _first(got: npt.NDArray[Any], want: npt.NDArray[Any], where: npt.NDArray[np.bool_]) -> str:
    at = np.unravel_index(int(np.argmax(where)), where.shape)
    place = ", ".join(str(int(i)) for i in at)
    count = int(where.sum())
    return f"{count} of {where.size} elements differ, the first at [{place}]: got {got[at]!r}, expected {want[at]!r}"
