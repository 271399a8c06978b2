# SPDX-License-Identifier: Apache-2.0
"""Files of a package with a user's operator, for ``stoker new-operator``.

``@name@`` is the operator's name, ``@package@`` that of the package, ``@version@`` that of Stoker. Lines between
``@cuda`` and ``@end`` belong to packages with a CUDA form.
"""

from __future__ import annotations

import re

_CUDA = re.compile(r"^[ #/]*@cuda\n(.*?)^[ #/]*@end\n", re.MULTILINE | re.DOTALL)

_PYPROJECT = """\
[build-system]
requires = ["setuptools>=77", "stoker>=@version@"]
build-backend = "setuptools.build_meta"

[project]
name = "@package@"
version = "0.1.0"
description = "The operator @name@ for Stoker"
readme = "README.md"
requires-python = ">=3.11"
dependencies = ["numpy", "stoker>=@version@"]

[project.optional-dependencies]
test = ["pytest>=8"]
# @cuda
gpu = ["stoker[cuda13]>=@version@"]
# @end

# Stoker imports the module when `fn.@name@` is used.
[project.entry-points."stoker.operators"]
@name@ = "@name@"

[tool.setuptools.packages.find]
where = ["src"]

[tool.setuptools.package-data]
@name@ = ["*.cpp", "*.cu", "py.typed"]

[tool.pytest.ini_options]
testpaths = ["tests"]
"""

_SETUP = '''\
"""Compile the operator into the package. The rest of the settings is in pyproject.toml."""

from setuptools import setup

from stoker import cpp

# Other libraries: include_dirs=["/usr/include/opencv4"], libraries=["opencv_core"].
code = cpp.extension("@name@._code", ["src/@name@/@name@.cpp"])

setup(ext_modules=[code], options={"bdist_wheel": {"py_limited_api": "cp311"}})
'''

_FACE = '''\
"""The operator ``@name@``: maximum of the pixels around each pixel."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np

from stoker import cpp

_FOLDER = Path(__file__).parent


def reference(image: np.ndarray, radius: int) -> np.ndarray:
    """Return what the operator computes, in NumPy. Tests compare both."""
    padded = np.pad(image, ((radius, radius), (radius, radius), (0, 0)), mode="edge")
    height, width = image.shape[:2]
    side = range(2 * radius + 1)
    return np.max([padded[y : y + height, x : x + width] for y in side for x in side], axis=0)


operator = cpp.load_library(
    next(_FOLDER.glob("_code*.so")),
    "@name@",
    # @cuda
    cuda=_FOLDER / "@name@.cu",
    # @end
    reference=reference,
    cases=({}, {"radius": 0}, {"radius": 3}),  # arguments for tests
    version=1,  # raise it when results change: states of pipelines depend on it
)


def @name@(image: Any, *, radius: Any = 1) -> Any:
    """Return the maximum of the pixels around each pixel.

    Args:
        image: (H, W, C), uint8 or float32: a node of a pipeline, an array or a batch.
        radius: pixels on each side, at least 0; a number, or a node with one for each row.
    """
    return operator(image, radius=radius)
'''

_CPP = r"""// The operator @name@ on the CPU. `stoker/op.h` describes the interface.
#include <stoker/op.h>

#include <algorithm>

ST_DECLARE(R"(
  Maximum of the pixels around each pixel.
  input image: uint8 | float32 (h, w, c)
  output: like image
  argument radius: int = 1. Pixels on each side.
  check radius >= 0: expected `radius` of at least 0
)")

template <class T>
void compute(const st_tensor& input, const st_tensor& output, int64_t radius) {
  const st::Array<const T> in(input);
  const st::Array<T> out(output);
  const int64_t height = in.shape(0), width = in.shape(1), channels = in.shape(2);
  for (int64_t y = 0; y < height; ++y)
    for (int64_t x = 0; x < width; ++x)
      for (int64_t c = 0; c < channels; ++c) {
        T most = in(y, x, c);
        for (int64_t v = std::max<int64_t>(y - radius, 0); v <= std::min(y + radius, height - 1); ++v)
          for (int64_t u = std::max<int64_t>(x - radius, 0); u <= std::min(x + radius, width - 1); ++u)
            most = std::max(most, in(v, u, c));
        out(y, x, c) = most;
      }
}

ST_RUN(row) {
  const auto radius = static_cast<int64_t>(row.arg(0));
  if (row.in(0).dtype == ST_UINT8) compute<uint8_t>(row.in(0), row.out(0), radius);
  else compute<float>(row.in(0), row.out(0), radius);
}
"""

_CU = r"""// The operator @name@ on a GPU. `stoker/op.cuh` describes the interface.
#include <stoker/op.cuh>

ST_LAUNCHES(R"(
  kernel maximum: h * w * c
)")

ST_KERNEL(maximum, row, i) {
  const auto in = row.in<0>();
  const int64_t height = in.shape(0), width = in.shape(1), channels = in.shape(2);
  const int64_t c = i % channels, x = i / channels % width, y = i / channels / width;
  const auto radius = static_cast<int64_t>(row.arg(0));
  const int64_t top = y > radius ? y - radius : 0, bottom = y + radius < height ? y + radius : height - 1;
  const int64_t left = x > radius ? x - radius : 0, right = x + radius < width ? x + radius : width - 1;
  auto most = in(y, x, c);
  for (int64_t v = top; v <= bottom; ++v)
    for (int64_t u = left; u <= right; ++u)
      if (most < in(v, u, c)) most = in(v, u, c);
  row.out<0>()(y, x, c) = most;
}
"""

_TESTS = '''\
"""Tests of the operator ``@name@``."""

import numpy as np
import pytest
from @name@ import @name@, operator, reference

from stoker import DataError, eager, fn, pipeline_def
# @cuda
from stoker import DeviceError, UnsupportedError
from stoker.testing import check_on_gpu
# @end
from stoker.testing import check_operator

IMAGE = np.random.default_rng(1).integers(0, 256, (12, 15, 3), dtype=np.uint8)


def test_the_laws_of_operators():
    """Compare with the reference in pipelines and eagerly, with threads, passes and arguments per row."""
    check_operator(operator.operator)


@pytest.mark.parametrize("dtype", ["uint8", "float32"])
def test_results(dtype):
    image = IMAGE.astype(dtype)
    np.testing.assert_array_equal(@name@(image, radius=2), reference(image, 2))
    np.testing.assert_array_equal(eager.@name@(image), reference(image, 1))


def test_wrong_arguments():
    with pytest.raises((DataError, ValueError), match="`radius` of at least 0"):
        @name@(IMAGE, radius=-1)


def test_in_a_pipeline():
    @pipeline_def(batch_size=2, num_threads=2)
    def pipeline():
        images = fn.external_source(lambda: [IMAGE, IMAGE[::-1]], dtype="uint8", ndim=3, layout="HWC")
        return fn.@name@(images, radius=1)

    with pipeline() as pipe:
        (result,) = pipe.run()
        np.testing.assert_array_equal(np.array(result[1]), reference(IMAGE[::-1], 1))
# @cuda


def test_a_gpu_gives_the_bits_of_the_cpu():
    try:
        check_on_gpu(operator.operator)
    except (DeviceError, UnsupportedError) as error:
        pytest.skip(f"there is no GPU for this test: {error}")
# @end
'''

_BENCHMARK = '''\
"""Time of the operator ``@name@`` for an image, next to its reference in NumPy."""

import time

import numpy as np
from @name@ import @name@, reference

ROUNDS = 7


def median_ms(call):
    call()
    times = []
    for _ in range(ROUNDS):
        began = time.perf_counter()
        call()
        times.append(time.perf_counter() - began)
    return 1e3 * sorted(times)[ROUNDS // 2]


if __name__ == "__main__":
    image = np.random.default_rng(1).integers(0, 256, (375, 500, 3), dtype=np.uint8)
    own, numpy = median_ms(lambda: @name@(image)), median_ms(lambda: reference(image, 1))
    print(f"500 x 375 pixels: @name@ {own:.2f} ms, NumPy {numpy:.2f} ms")
'''

_README = """\
# @package@

The operator `@name@` for [Stoker](https://pypi.org/project/stoker/).

    pip install -e '.[test]'        # compiles src/@name@/@name@.cpp; repeat it after changes of this file
    pytest
    python benchmarks/@name@_time.py
    pip wheel --no-deps -w dist .   # a wheel for all versions of Python

With the package installed, `fn.@name@` and `eager.@name@` exist without an import:

    from stoker import eager
    eager.@name@(image, radius=2)

| file | contents |
|---|---|
| `src/@name@/@name@.cpp` | the operator in C++: declaration and computation |
# @cuda
| `src/@name@/@name@.cu` | the operator in CUDA, compiled when a pipeline runs on a GPU: `pip install '.[gpu]'` |
# @end
| `src/@name@/__init__.py` | its function in Python, and the reference in NumPy |
| `setup.py` | compilation into the package, with other libraries |
| `tests/`, `benchmarks/` | tests and time |
"""

_WORKFLOW = """\
name: test
on: [push, pull_request]
permissions: {contents: read}
jobs:
  test:
    strategy:
      matrix:
        os: [ubuntu-24.04, ubuntu-24.04-arm]
        python: ["3.11", "3.14"]
    runs-on: ${{ matrix.os }}
    steps:
      - uses: actions/checkout@v4
      - uses: actions/setup-python@v5
        with: {python-version: "${{ matrix.python }}"}
      - run: pip install '.[test]'
      - run: pytest
      - run: pip wheel --no-deps -w dist .
      - uses: actions/upload-artifact@v4
        with: {name: "wheel-${{ matrix.os }}-${{ matrix.python }}", path: dist/*.whl}
"""

_FILES = {
    "pyproject.toml": _PYPROJECT,
    "setup.py": _SETUP,
    "README.md": _README,
    "src/@name@/__init__.py": _FACE,
    "src/@name@/py.typed": "",
    "src/@name@/@name@.cpp": _CPP,
    "src/@name@/@name@.cu": _CU,
    "tests/test_@name@.py": _TESTS,
    "benchmarks/@name@_time.py": _BENCHMARK,
    ".github/workflows/test.yml": _WORKFLOW,
    ".gitignore": "build/\ndist/\n*.egg-info/\n__pycache__/\n*.so\n",
}


def package_files(name: str, version: str, *, cuda: bool) -> dict[str, str]:
    """Return the files of a package, by path.

    Args:
        name: name of the operator, an identifier.
        version: version of Stoker that the package needs at least.
        cuda: with a CUDA form.
    """
    words = {"@name@": name, "@package@": name.replace("_", "-"), "@version@": version}

    def filled(text: str) -> str:
        text = _CUDA.sub(r"\1" if cuda else "", text)
        for word, value in words.items():
            text = text.replace(word, value)
        return text

    kept = {path: text for path, text in _FILES.items() if cuda or not path.endswith(".cu")}
    return {filled(path): filled(text) for path, text in kept.items()}
