# SPDX-License-Identifier: Apache-2.0
"""Elementary functions with the same bits everywhere, compared with mpmath's values."""

import math
import os
import shutil
import subprocess
from fractions import Fraction
from pathlib import Path

import numpy as np
import pytest

from stoker.native import _native as native
from tests.idle_clock import HANG_S


def ulps(got, name, x):
    """Return the error of `got` in units of the last place, with mpmath's value as the exact one."""
    mpmath = pytest.importorskip("mpmath")
    with mpmath.workprec(300):
        value = {
            "sin_pi": lambda v: mpmath.sin(mpmath.pi * v),
            "cos_pi": lambda v: mpmath.cos(mpmath.pi * v),
        }.get(name) or getattr(mpmath, name)
        truth = value(mpmath.mpf(float(x)))
        return float(abs(mpmath.mpf(float(got)) - truth) / math.ulp(float(truth)))


RANGES = {
    "exp": [(-1, 1), (-700, 700)],
    "log": [(0.5, 2), (1e-300, 1e300), (0.999999, 1.000001)],
    "sin": [(-4, 4), (-1e6, 1e6)],
    "cos": [(-4, 4), (-1e6, 1e6)],
    "sin_pi": [(-3, 3)],
    "cos_pi": [(-3, 3)],
}


@pytest.mark.parametrize("name", sorted(RANGES))
def test_elementary_functions_are_accurate(name):
    rng = np.random.default_rng(1)
    for low, high in RANGES[name]:
        x = rng.uniform(low, high, 1500)
        assert max(ulps(g, name, v) for g, v in zip(native.xmath(name, x), x, strict=True)) < 0.6


@pytest.mark.parametrize("name", ["sin", "cos"])
def test_large_numbers_keep_their_precision(name):
    """The last number is the double that is closest to a multiple of half pi (J.-M. Muller et al., Handbook of
    Floating-Point Arithmetic, 2010)."""
    rng = np.random.default_rng(2)
    spread = np.ldexp(rng.uniform(1, 2, 1200), rng.integers(19, 1024, 1200)) * rng.choice([-1, 1], 1200)
    limits = np.array([2.0**20, np.nextafter(2.0**20, 0), 3.3e38, -(2.0**63), 2.0**1023, np.finfo(float).max])
    x = np.concatenate(
        [spread, limits, np.arange(10**7, 10**9, 10**7 - 3) * (math.pi / 2), [6381956970095103 * 2.0**797]]
    )
    assert max(ulps(g, name, v) for g, v in zip(native.xmath(name, x), x, strict=True)) < 0.6


def test_floats_of_the_whole_range(tmp_path):
    """`make test-xmath` takes all floats; here, every 20,011th."""
    compiler = os.environ.get("CXX") or shutil.which("g++") or shutil.which("clang++")
    if compiler is None:
        pytest.skip("no C++ compiler: the errors over all floats are not measured")
    native_folder = Path(__file__).parents[2] / "src/stoker/native"
    command = [*compiler.split(), "-std=c++20", "-O2", "-ffp-contract=off", "-pthread", f"-I{native_folder}"]
    subprocess.run(
        [*command, Path(__file__).with_name("xmath_range.cpp"), "-o", tmp_path / "range"], check=True, timeout=HANG_S
    )
    result = subprocess.run(
        [tmp_path / "range", "20011", "1"], capture_output=True, text=True, check=False, timeout=HANG_S
    )
    assert result.returncode == 0, result.stdout


@pytest.mark.parametrize("name", ["sin", "cos"])
def test_multiples_of_half_pi_keep_their_precision(name):
    x = np.arange(1, 600_000, 997) * (math.pi / 2)
    assert max(ulps(g, name, v) for g, v in zip(native.xmath(name, x), x, strict=True)) < 0.6


def test_elementary_functions_at_special_points():
    def at(name, *values):
        return native.xmath(name, np.array(values, float)).tolist()

    assert at("exp", 0.0, -1000.0, 1000.0, -math.inf, math.inf) == [1.0, 0.0, math.inf, 0.0, math.inf]
    assert at("log", 1.0, 0.0, math.inf) == [0.0, -math.inf, math.inf]
    assert at("sin_pi", 0.0, 1.0, 0.5, -0.5, 12345.5) == [0.0, 0.0, 1.0, -1.0, -1.0]
    assert at("cos_pi", 0.0, 1.0, 0.5, 1e9 + 1) == [1.0, -1.0, 0.0, -1.0]
    assert at("round_even", 0.5, 1.5, 2.5, -0.5, -2.5, 2.0**60, 4503599627370495.5) == [
        0.0, 2.0, 2.0, 0.0, -2.0, 2.0**60, 4503599627370496.0,
    ]  # fmt: skip
    for name in ("exp", "log", "sin", "cos", "sin_pi", "cos_pi"):
        assert math.isnan(at(name, math.nan)[0])
    for name in ("sin", "cos", "sin_pi", "cos_pi"):
        assert math.isnan(at(name, math.inf)[0])
    assert math.isnan(at("log", -1.0)[0])


def test_exp_near_the_smallest_number():
    x = np.array([-744.4400719213812, -745.0, -709.0])
    got = native.xmath("exp", x)
    mpmath = pytest.importorskip("mpmath")
    for g, v in zip(got, x, strict=True):
        assert abs(Fraction(float(g)) - Fraction(mpmath.nstr(mpmath.exp(v), 30))) <= Fraction(math.ulp(float(g)))
