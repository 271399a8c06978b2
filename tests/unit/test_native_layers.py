# SPDX-License-Identifier: Apache-2.0
"""Layers of the native code: the code follows the table in CMakeLists.txt. The check finds each kind of violation."""

from __future__ import annotations

from pathlib import Path

import pytest

import native_layers

TABLE = """
stoker_native_library(shared)
stoker_native_library(base DEPS shared)  # (a comment)
stoker_native_library(jpeg DEPS shared base
  SOURCES
    decode.cpp)
"""


@pytest.fixture
def native(tmp_path: Path) -> Path:
    """Create a small tree of native code without a fault."""
    (tmp_path / "CMakeLists.txt").write_text(TABLE)
    write(tmp_path, "shared/half.hpp")
    write(tmp_path, "base/tensor.hpp", "shared/half.hpp")
    write(tmp_path, "jpeg/jpeg.hpp", "base/tensor.hpp")
    write(tmp_path, "jpeg/decode.cpp", "jpeg/jpeg.hpp", "shared/half.hpp")
    write(tmp_path, "device/stage.cuh", "shared/half.hpp")
    write(tmp_path, "bind/module.cpp", "jpeg/jpeg.hpp")
    return tmp_path


def write(native: Path, name: str, *includes: str) -> None:
    (native / name).parent.mkdir(exist_ok=True)
    (native / name).write_text("".join(f'#include "{i}"\n' for i in includes))


def test_the_tree_has_no_fault() -> None:
    assert list(native_layers.find_faults()) == []
    assert {"shared", "base", "jpeg", "run", "kernels", "gpu_kernels"} <= set(native_layers.read_libraries())


@pytest.mark.parametrize(
    ("name", "includes", "fault"),
    [
        ("base/carver.hpp", ["jpeg/jpeg.hpp"], '"jpeg/jpeg.hpp" is not allowed here, only base, shared'),
        ("device/own.cuh", ["base/tensor.hpp"], '"base/tensor.hpp" is not allowed here, only device, shared'),
        ("jpeg/jpeg.hpp", ["bind/arrays.hpp"], '"bind/arrays.hpp" is no file below native/'),
        ("jpeg/jpeg.hpp", ["tensor.hpp"], "includes are relative to native/"),
        ("jpeg/parse.cpp", [], "jpeg/parse.cpp: not listed"),
        ("video/demux.cpp", [], "video/: no stoker_native_library names this folder"),
        ("engine.hpp", [], "engine.hpp: a file outside of all folders"),
    ],
)
def test_a_violation_is_found(native: Path, name: str, includes: list[str], fault: str) -> None:
    assert list(native_layers.find_faults(native)) == []
    write(native, name, *includes)
    found = list(native_layers.find_faults(native))
    assert len(found) == 1, found
    assert fault in found[0]


def test_a_listed_file_that_is_missing_is_found(native: Path) -> None:
    (native / "jpeg/decode.cpp").unlink()
    assert list(native_layers.find_faults(native)) == [
        "jpeg/decode.cpp: listed in CMakeLists.txt, but there is no such file"
    ]


def test_dependencies_are_declared_before_their_users(native: Path) -> None:
    (native / "CMakeLists.txt").write_text(TABLE.replace("DEPS shared)", "DEPS shared jpeg)"))
    assert "base: depends on jpeg, which is not declared before it" in list(native_layers.find_faults(native))


def test_sources_are_those_of_all_dependencies() -> None:
    found = [str(path.relative_to(native_layers.NATIVE)) for path in native_layers.list_sources(["torch"])]
    assert "torch/color.cpp" in found
    assert "pixel/pixel.cpp" in found
    assert not any(name.startswith(("run/", "jpeg/")) for name in found)


def test_a_library_may_be_all_files_of_its_folder(native: Path) -> None:
    table = TABLE.replace("decode.cpp)", "*.cpp)")
    (native / "CMakeLists.txt").write_text(table)
    write(native, "jpeg/parse.cpp")
    assert list(native_layers.find_faults(native)) == []
    assert native_layers.read_libraries(native)["jpeg"].sources == ("decode.cpp", "parse.cpp")
    assert native_layers.list_sources(["jpeg"], native) == [native / "jpeg" / n for n in ("decode.cpp", "parse.cpp")]
