# SPDX-License-Identifier: Apache-2.0
"""The checks of wheels find planted faults, and the settings for wheels agree with each other and with the guide."""

from __future__ import annotations

import re
import sys
import sysconfig
import tomllib
import zipfile
from pathlib import Path

import pytest

import wheel as tool
from stoker.native import _native

ROOT = Path(__file__).resolve().parents[2]
EXTENSION = "stoker/native/_native.abi3.so"
METADATA = b"Metadata-Version: 2.4\nName: stoker\nLicense-Expression: Apache-2.0\nRequires-Python: >=3.11\n\n"


def write(folder: Path, changes: dict[str, bytes | None], name: str = "cp312-abi3-manylinux_2_28_x86_64") -> list[str]:
    """Write a wheel with the installed extension, after changes to its files (None: left out). Return its faults."""
    info = "stoker-1.0.dist-info"
    files: dict[str, bytes | None] = {n: b"" for n in tool.NEEDED if "/" in n}
    files |= {f"{info}/METADATA": METADATA, f"{info}/licenses/LICENSE": b"", f"{info}/entry_points.txt": b""}
    files |= {EXTENSION: Path(str(_native.__file__)).read_bytes() if not _native.sanitized else None, **changes}
    path = folder / f"stoker-1.0-{name}.whl"
    with zipfile.ZipFile(path, "w") as archive:
        for key, content in files.items():
            if content is not None:
                archive.writestr(key, content)
    return [fault for fault in tool.find_faults(path) if not fault.startswith(f"{EXTENSION} names ")]


@pytest.mark.skipif(_native.sanitized, reason="the check refuses libasan, which a sanitized extension needs")
def test_a_good_wheel_has_no_faults(tmp_path: Path) -> None:
    assert write(tmp_path, {}) == []


@pytest.mark.skipif(_native.sanitized, reason="the check refuses libasan, which a sanitized extension needs")
@pytest.mark.parametrize(("changes", "fault"), [
    ({"stoker/py.typed": None}, "lacks stoker/py.typed"),
    ({"stoker-1.0.dist-info/licenses/LICENSE": None}, "lacks LICENSE"),
    ({"stoker/native/run/engine.cpp": b""}, "contains stoker/native/run/engine.cpp"),
    ({"stoker/__pycache__/a.cpython-311.pyc": b""}, "contains stoker/__pycache__/a.cpython-311.pyc"),
    ({EXTENSION: None}, "expected the extension as the only library, got none"),
    ({"stoker.libs/libgomp.so.1": b""}, "expected the extension as the only library, got"),
    ({"stoker/where.py": f"x = {str(ROOT / 'src' / 'a.hpp')!r}".encode()}, f"stoker/where.py names {ROOT}/src/a.hpp"),
    ({"stoker-1.0.dist-info/METADATA": METADATA.replace(b"Apache-2.0", b"MIT")}, "got the licence MIT"),
    ({"stoker-1.0.dist-info/METADATA": METADATA.replace(b">=3.11", b">=3.8")}, "and Python >=3.8"),
])  # fmt: skip
def test_planted_faults_are_found(tmp_path: Path, changes: dict[str, bytes | None], fault: str) -> None:
    assert [found for found in write(tmp_path, changes) if fault in found]


@pytest.mark.skipif(_native.sanitized, reason="the check refuses libasan, which a sanitized extension needs")
def test_wrong_tags_are_found(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    assert "expected a manylinux tag" in write(tmp_path, {}, "cp312-abi3-linux_x86_64")
    old = {EXTENSION: None, "stoker/native/_native.cpython-312.so": Path(str(_native.__file__)).read_bytes()}
    assert any("of the stable ABI, as the tag says" in fault for fault in write(tmp_path, old))
    monkeypatch.setattr(tool, "MOST_BYTES", 100)
    assert any(fault.startswith("expected at most 0 MiB") for fault in write(tmp_path, {}))


def test_the_settings_agree() -> None:
    stated = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))
    least = stated["project"]["requires-python"].removeprefix(">=").replace(".", "")
    stable = stated["tool"]["scikit-build"]["wheel"]["py-api"]
    tags = [f"cp{least}", stable, "cp314t"]
    assert stated["tool"]["cibuildwheel"]["build"] == [f"{tag}-manylinux_*" for tag in tags]
    guide = (ROOT / "docs" / "guides" / "wheels.md").read_text(encoding="utf-8")
    assert all(f"`{tag}`" in guide for tag in (f"cp{least}-cp{least}", f"{stable}-abi3", "cp314-cp314t"))
    for image in ("manylinux-x86_64-image", "manylinux-aarch64-image"):
        tag = stated["tool"]["cibuildwheel"][image]
        assert f"glibc {tag.removeprefix('manylinux_').replace('_', '.')} or newer" in guide
    assert int(re.findall(r"larger than (\d+) MiB", guide)[0]) << 20 == tool.MOST_BYTES


def test_the_extension_has_the_abi_of_its_name() -> None:
    name = Path(str(_native.__file__)).name
    free_threaded = bool(sysconfig.get_config_var("Py_GIL_DISABLED"))
    stable = sys.version_info >= (3, 12) and not free_threaded
    assert (".abi3." if stable else f".cpython-3{sys.version_info[1]}") in name


def test_free_threading_is_declared() -> None:
    """An extension without the declaration would switch the GIL on (tests/run/test_threads.py)."""
    build = (ROOT / "CMakeLists.txt").read_text(encoding="utf-8")
    assert re.search(r"^[^#]*FREE_THREADED", build, re.MULTILINE)
    stated = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))
    assert any("Free Threading" in classifier for classifier in stated["project"]["classifiers"])
