# SPDX-License-Identifier: Apache-2.0
"""Operators in C++: results, checks, draws, counted outputs, the interface's first version, wrong sources."""

from __future__ import annotations

import hashlib
import os
import shutil
import time
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from stoker import Pipeline, cpp, eager, fn, pipeline_def
from stoker.contract import samples
from stoker.contract.errors import ArgumentError, DataError, GraphError, ResourceError
from stoker.frontends.compiled import build as building
from stoker.frontends.compiled.declaration import parse
from stoker.native import _native
from stoker.testing import check_operator

V1 = Path(__file__).parent / "abi" / "v1"
V1_HASH = "4a9c78508e31d1512b533466df364f04006a80e0fb78066b26204daeb2781142"
REFUSED = (ArgumentError, DataError)

pytestmark = pytest.mark.skipif(
    not any(map(shutil.which, ("g++", "c++", "clang++"))), reason="there is no C++ compiler"
)

HEAD = "#include <stoker/op.h>\n"


@pytest.fixture(autouse=True)
def cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    folder = tmp_path / "kernels"
    monkeypatch.setenv("STOKER_KERNEL_CACHE", str(folder))
    return folder


def load(declaration: str, body: str, name: str = "t_code", **more: Any) -> Any:
    source = f'{HEAD}ST_DECLARE(R"({declaration})")\nST_RUN(row) {{\n{body}\n}}\n'
    return cpp.load(source, name, **more)


def maximum(image: Any, radius: int) -> Any:
    padded = np.pad(image, ((radius, radius), (radius, radius), (0, 0)), mode="edge")
    side = 2 * radius + 1
    parts = [padded[y : y + image.shape[0], x : x + image.shape[1]] for y in range(side) for x in range(side)]
    return np.max(parts, axis=0)


def test_an_operator_keeps_the_laws_of_operators() -> None:
    found = cpp.load(V1 / "maximum.cpp", "t_maximum", reference=maximum, cases=[{}, {"radius": 2}])
    check_operator(found.operator)
    assert found.operator.__doc__ == "Maximum of the pixels around each pixel."
    image = samples.noise(1, (9, 7, 3))
    np.testing.assert_array_equal(found(image, radius=2), maximum(image, 2))
    np.testing.assert_array_equal(eager.t_maximum(image[::-1, ::2]), maximum(image[::-1, ::2], 1))
    with pytest.raises(REFUSED, match="`t_maximum`: expected `radius` of at least 0"):
        found(image, radius=-1)
    with pytest.raises(ArgumentError, match="`image` of type uint8, float32, got int16"):
        found(image.astype(np.int16))
    with pytest.raises(ArgumentError, match=r"`image` \(h, w, c\), got 2 axes"):
        found(image[..., 0])


def test_the_first_version_of_the_interface_still_runs() -> None:
    frozen = (V1 / "stoker" / "op.h").read_bytes()
    assert hashlib.sha256(frozen).hexdigest() == V1_HASH, "the first version never changes"
    source = (V1 / "maximum.cpp").read_text()
    library = building.build(source, "t_first", headers=V1)
    found = cpp.load_library(library, "t_first")
    image = samples.noise(2, (5, 6, 2))
    np.testing.assert_array_equal(found(image), maximum(image, 1))


def test_checked_arrays_name_the_wrong_index() -> None:
    declaration = "input x: float32 (n)\noutput: like x"
    body = "st::Array<const float> x(row.in(0)); st::Array<float> y(row.out(0)); y(0) = x(x.shape(0));"
    found = load(declaration, body, checked=True)
    with pytest.raises(DataError, match="index 4 of axis 0, which has 4 elements"):
        found(np.zeros(4, np.float32))


def test_rows_arguments_and_draws_in_a_pipeline() -> None:
    declaration = """
      input x: float32 (n)
      output: type of x (2 * n + 1)
      output: int64 (2)
      argument scale: float
      argument shift: int = 3. Added.
      draws
    """
    body = """
      const auto in = st::Array<const float>(row.in(0)); const auto out = st::Array<float>(row.out(0));
      float* const own = row.scratch<float>(in.size());
      for (int64_t i = 0; i < in.size(); ++i) own[i] = in(i);
      for (int64_t i = 0; i < out.size(); ++i)
        out(i) = i < in.size() ? st::round<float>(own[i] * row.arg(0) + row.arg(1)) : static_cast<float>(row.uniform());
      const auto numbers = st::Array<int64_t>(row.out(1)); numbers(0) = row.key(); numbers(1) = row.epoch();
    """
    load(declaration, body, "t_scaled")
    rows = [np.arange(i + 2, dtype=np.float32) for i in range(4)]
    scales = np.array([1, 2, 0.5, -1], np.float32)

    @pipeline_def(batch_size=4, num_threads=3, seed=11)
    def graph() -> Any:
        x = fn.external_source(lambda: rows, dtype="float32", ndim=1)
        scale = fn.external_source(lambda: scales, dtype="float32", ndim=0)
        return fn.t_scaled(x, scale=scale)

    def run() -> Any:
        with graph() as pipe:
            return [[np.array(r) for r in out] for out in (*pipe.run(), *pipe.run())]

    first = run()
    for i, x in enumerate(rows):
        np.testing.assert_array_equal(first[0][i][: len(x)], x * scales[i] + 3)
        drawn = first[0][i][len(x) :]
        assert drawn.shape == (len(x) + 1,) and ((drawn >= 0) & (drawn < 1)).all()
        assert first[1][i].tolist()[0] == i and first[3][i].tolist()[0] == i + 4
    assert not np.array_equal(first[0][0][2:], first[2][0][2:])
    for a, b in zip(first, run(), strict=True):
        for x, y in zip(a, b, strict=True):
            np.testing.assert_array_equal(x, y)


def test_outputs_whose_length_the_code_sets() -> None:
    declaration = """
      input x: int32 (n)
      output: int32 (count <= n)
      argument least: float = 0
    """
    body = """
      const auto in = st::Array<const int32_t>(row.in(0)); const auto out = st::Array<int32_t>(row.out(0));
      int64_t kept = 0;
      for (int64_t i = 0; i < in.size(); ++i)
        if (in(i) >= row.arg(0)) out(kept++) = in(i);
      row.set_count(row.arg(0) < -100 ? 1 << 20 : kept);
    """
    found = load(declaration, body)
    x = np.array([5, -1, 7, 3, 0], np.int32)
    np.testing.assert_array_equal(found(x, least=3.0), [5, 7, 3])
    assert found(x, least=50.0).shape == (0,)
    with pytest.raises(DataError, match="t_code"):
        found(x, least=-101.0)


def test_exceptions_and_failures_are_errors_of_their_rows() -> None:
    found = load("input x: any (...)\noutput: like x\nargument kind: int", """
      if (row.arg(0) == 1) throw std::runtime_error("no luck");
      if (row.arg(0) == 2) throw 3;
      if (row.arg(0) == 3) for (int i = 0; i < 5; ++i) row.scratch<char>(10);
      if (row.arg(0) == 4) row.in(1);
      if (row.arg(0) == 5) st::Array<const double>(row.in(0));
      if (row.arg(0) == 6) row.scratch<char>(-1);
    """)  # fmt: skip
    x = np.zeros((2, 3, 4, 5), np.int16)
    for kind, text in enumerate(
        ("no luck", "unknown exception", "4 areas", "no input 1", "another element", "size"), 1
    ):
        with pytest.raises(DataError, match=f"`t_code`.*{text}"):
            found(x, kind=kind)
    assert found(x, kind=0).shape == x.shape


@pytest.mark.parametrize(
    ("declaration", "text"),
    [
        ("output: like x", "expected the name of an input, got 'x'"),
        ("input x: uint8 (h, w)", "an input and an output"),
        ("input x: nothing (h)\noutput: like x", "element type such as uint8 or float32, got 'nothing'"),
        ("input x uint8 (h)\noutput: like x", "expected `input NAME: TYPE"),
        ("input x: uint8 (h + 1)\noutput: like x", "names or numbers"),
        ("input x: uint8 (h)\noutput: uint8 (h +)", "expression of names and numbers"),
        ("input x: uint8 (h)\noutput: like x\nargument a: string", "with float, int or bool"),
        ("input x: uint8 (h)\noutput: like x\nargument a: float = red", "default of type float, got red"),
        ("input x: uint8 (h)\ninput x: uint8 (h)\noutput: like x", "declared twice"),
        ("input x: uint8 (h)\noutput: uint8 (count <= h)\noutput: uint8 (h)", "`count` for all outputs"),
    ],
)
def test_declarations_that_are_wrong(declaration: str, text: str) -> None:
    """Only the next test compiles such declarations: the compiler takes most of the time."""
    with pytest.raises(REFUSED, match=f"`t_wrong`.*{text}"):
        parse(declaration, "t_wrong")


@pytest.mark.parametrize(
    ("declaration", "text"),
    [
        ("input x: uint8 (h)\noutput: uint8 (k)", "expected one of the names h, got 'k'"),
        ("input x: uint8 (h)\noutput: uint8 (h.real)", "arithmetic and comparisons"),
        ("input x: uint8 (h)\noutput: uint8 (__import__('os'))", "arithmetic and comparisons"),
        ("input x: uint8 (h)\noutput: like x\nargument draws: float", "another name than `draws`"),
        ("input x: uint8 (h)\noutput: like x\nwindow 3", "line that begins with"),
        ("input x: uint8 (h)\noutput: uint8 (h - 10)", "at least 0 elements"),
    ],
)
def test_operators_whose_declarations_are_wrong(declaration: str, text: str) -> None:
    with pytest.raises(REFUSED, match=f"`t_wrong`.*{text}"):
        load(declaration, "", "t_wrong")(np.zeros(3, np.uint8))


def test_sources_that_are_wrong() -> None:
    with pytest.raises(ArgumentError, match=r"`t_wrong`: the compiler refused the source: t_wrong.cpp:5: .*nonsense"):
        load("input x: uint8 (h)\noutput: like x", "nonsense;", "t_wrong")
    with pytest.raises(ArgumentError, match="ST_DECLARE"):
        cpp.load(HEAD + "ST_RUN(row) { (void)row; }\n", "t_wrong")
    with pytest.raises(ArgumentError, match="ST_RUN"):
        cpp.load(HEAD + 'ST_DECLARE("input x: uint8 (h)\\noutput: like x")\n', "t_wrong")
    newer = (
        HEAD + 'ST_EXPORT int32_t st_abi(void) { return 99; }\nST_EXPORT const char* st_declare(void) { return ""; }\n'
    )
    with pytest.raises(ArgumentError, match=r"version 1 to 1 of stoker/op\.h, got version 99"):
        cpp.load(newer + "ST_RUN(row) { (void)row; }\n", "t_wrong")
    with pytest.raises(ArgumentError, match="cannot be read"):
        cpp.load("missing.cpp", "t_wrong")
    with pytest.raises(ArgumentError, match=r"C\+\+ code or the path"):
        cpp.load(3, "t_wrong")  # type: ignore[arg-type]
    with pytest.raises(ArgumentError, match="outside of the group `stoker`"):
        load("input x: uint8 (h)\noutput: like x", "", "stoker.wrong")


def test_a_missing_compiler_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("CXX", "no-such-compiler")
    with pytest.raises(ResourceError, match=r"`no-such-compiler` \(the variable CXX\)"):
        load("input x: uint8 (h)\noutput: like x", "", "t_wrong")


def test_libraries_are_cached_by_content(cache: Path, tmp_path: Path) -> None:
    header = tmp_path / "mine" / "amount.h"
    header.parent.mkdir()
    header.write_text("#define AMOUNT 1\n")
    declaration, body = (
        "input x: uint8 (h)\noutput: like x",
        ("st::Array<uint8_t> y(row.out(0)); for (int64_t i = 0; i < y.size(); ++i) y(i) = AMOUNT;"),
    )
    source = f'{HEAD}#include "amount.h"\nST_DECLARE(R"({declaration})")\nST_RUN(row) {{ {body} }}\n'

    def made() -> Any:
        return cpp.load(source, "t_cached", include=[header.parent])

    one = made()
    assert one.library.parent == cache and cache.stat().st_mode & 0o077 == 0
    before = one.library.stat().st_mtime_ns
    assert one(np.zeros(3, np.uint8)).tolist() == [1, 1, 1]
    assert made().library == one.library and one.library.stat().st_mtime_ns == before
    header.write_text("#define AMOUNT 22\n")
    os.utime(header, ns=(time.time_ns(), time.time_ns()))
    changed = made()
    assert changed.library != one.library
    assert changed(np.zeros(3, np.uint8)).tolist() == [22, 22, 22]
    assert not list(cache.glob("tmp*")), "folders of compilations are removed"


def test_native_code_checks_the_library_and_its_numbers(tmp_path: Path) -> None:
    library = cpp.load(V1 / "maximum.cpp", "t_native").library
    make = _native.kernels.user_code
    port = (1 << 1, 3, 3, -1)
    make(os.fsencode(library), (port,), (port,), 1, False, 0, False, 0)
    with pytest.raises(ValueError, match="ranks from 0 to 8"):
        make(os.fsencode(library), ((1, 3, 9, -1),), (port,), 1, False, 0, False, 0)
    with pytest.raises(ValueError, match="number of an input"):
        make(os.fsencode(library), (port,), ((1, 3, 3, 1),), 1, False, 0, False, 0)
    with pytest.raises(ValueError, match="can be loaded"):
        make(os.fsencode(tmp_path / "none.so"), (port,), (port,), 1, False, 0, False, 0)


def test_a_graph_with_an_operator_is_serialized_with_its_version() -> None:
    """The version follows from the source, not from the compiled library, which differs between machines."""
    declaration, body = "input x: float32 (n)\noutput: like x\nargument a: float = 1", "(void)row;"
    one = load(declaration, body, "t_saved")

    @pipeline_def(batch_size=1, num_threads=1)
    def graph() -> Any:
        x = fn.external_source(name="x", dtype="float32", ndim=1)
        return fn.t_saved(x, a=3.0)

    with graph() as pipe:
        text = pipe.serialize()
    assert '"t_saved"' in text and one.operator.version > 0
    same = load(declaration, body, "t_saved", flags=["-O1"])
    assert same.operator.version == one.operator.version and same.library != one.library
    with Pipeline.deserialize(text, batch_size=1, num_threads=1) as again:
        assert again.serialize() == text
    load(declaration, body + " // changed", "t_saved")
    with pytest.raises(GraphError, match="`t_saved` has version"):
        Pipeline.deserialize(text, batch_size=1, num_threads=1)
