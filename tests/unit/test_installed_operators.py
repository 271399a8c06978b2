# SPDX-License-Identifier: Apache-2.0
"""Operators of installed packages, and users' operators with the name of a built-in one."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import stoker
from stoker import eager, fn, pipeline_def
from stoker.contract.errors import ArgumentError, ResourceError
from stoker.frontends import registry
from tests.idle_clock import HANG_S

IMAGE = np.arange(4 * 6 * 3, dtype=np.uint8).reshape(4, 6, 3)
OWN = """
import numpy as np
import stoker

@stoker.register
class Own(stoker.Operator, name={name!r}):
    '''Invert. Input: uint8. Output: the same.'''
    def infer(self, c, x):
        return stoker.Spec(x.dtype, x.shape, x.layout)
    def reference(self, row, x):
        return 255 - x
"""


@pytest.fixture(autouse=True)
def clean(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """Forget the registered operators and the packages of a test."""
    monkeypatch.setattr(registry, "_registered", dict(registry._registered))
    monkeypatch.setattr(registry, "_found", {})
    monkeypatch.setattr(registry, "revision", registry.revision + 1000)
    yield
    registry._installed.cache_clear()


def install(folder: Path, package: str, operators: dict[str, str], code: str) -> None:
    """Write a package with entry points, as pip installs it."""
    (folder / f"{package}.py").write_text(code)
    info = folder / f"{package}-1.0.dist-info"
    info.mkdir()
    (info / "METADATA").write_text(f"Metadata-Version: 2.1\nName: {package}\nVersion: 1.0\n")
    lines = "".join(f"{name} = {value}\n" for name, value in operators.items())
    (info / "entry_points.txt").write_text(f"[stoker.operators]\n{lines}")


@pytest.fixture
def packages(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.syspath_prepend(str(tmp_path))
    registry._installed.cache_clear()
    return tmp_path


def run(make: Any) -> np.ndarray:
    @pipeline_def(batch_size=1, num_threads=1)
    def graph() -> Any:
        return make(fn.external_source(lambda: [IMAGE], dtype="uint8", ndim=3, layout="HWC"))

    with graph() as pipe:
        (result,) = pipe.run()
        return np.array(result[0])


def test_an_operator_of_a_package_is_imported_when_it_is_used(packages: Path) -> None:
    install(packages, "t_pack_one", {"t_group.inverted": "t_pack_one:Own"}, OWN.format(name="t_group.inverted"))
    assert "t_group" in dir(fn) and "inverted" in dir(fn.t_group)
    assert "t_pack_one" not in sys.modules
    np.testing.assert_array_equal(eager.t_group.inverted(IMAGE), 255 - IMAGE)
    np.testing.assert_array_equal(run(lambda x: fn.t_group.inverted(x)), 255 - IMAGE)
    with pytest.raises(AttributeError, match=r"t_group.inverted"):
        _ = fn.t_group.invertd


def test_an_entry_point_may_be_a_module_that_registers_the_operator(packages: Path) -> None:
    install(packages, "t_pack_two", {"t_second": "t_pack_two"}, OWN.format(name="t_second"))
    np.testing.assert_array_equal(eager.t_second(IMAGE), 255 - IMAGE)


def test_packages_that_are_wrong(packages: Path) -> None:
    install(packages, "t_pack_broken", {"t_broken": "t_pack_broken"}, "raise OSError('no such library')")
    install(packages, "t_pack_empty", {"t_empty": "t_pack_empty"}, "")
    install(packages, "t_pack_a", {"t_both": "t_pack_a"}, OWN.format(name="t_both"))
    install(packages, "t_pack_b", {"t_both": "t_pack_b"}, OWN.format(name="t_both"))
    with pytest.raises(ResourceError, match=r"`t_broken`: the package t_pack_broken .* OSError: no such library"):
        eager.t_broken(IMAGE)
    with pytest.raises(ArgumentError, match="entry point of the package t_pack_empty to register"):
        eager.t_empty(IMAGE)
    with pytest.raises(ArgumentError, match="one package with this operator, got t_pack_a and t_pack_b"):
        eager.t_both(IMAGE)
    np.testing.assert_array_equal(eager.flip(IMAGE), IMAGE[:, ::-1])


@pytest.mark.parametrize("how", ["registered", "installed"])
def test_a_users_operator_outlives_a_built_in_one_of_its_name(packages: Path, how: str) -> None:
    """`horizontal=1` of the built-in `flip` is an unknown argument of the user's."""
    warns = pytest.warns(RuntimeWarning, match="`flip` is .*, and now also the name of a built-in one")
    if how == "registered":
        with warns:
            exec(OWN.format(name="flip"), {"__name__": "t_users_code"})
    else:
        install(packages, "t_pack_flip", {"flip": "t_pack_flip"}, OWN.format(name="flip"))
        with warns:
            eager.flip(IMAGE)
    np.testing.assert_array_equal(eager.flip(IMAGE), 255 - IMAGE)
    np.testing.assert_array_equal(run(lambda x: fn.flip(x)), 255 - IMAGE)
    np.testing.assert_array_equal(eager.stoker.flip(IMAGE), IMAGE[:, ::-1])
    np.testing.assert_array_equal(run(lambda x: fn.stoker.flip(x, horizontal=0, vertical=1)), IMAGE[::-1])
    assert eager.stoker.random.coin_flip(probability=1.0) == 1


def test_a_built_in_operator_never_uses_a_users_operator() -> None:
    """`contrast` is made of `brightness_contrast`."""
    want = eager.contrast(IMAGE, contrast=0.5)
    with pytest.warns(RuntimeWarning, match="brightness_contrast"):
        exec(OWN.format(name="brightness_contrast"), {"__name__": "t_users_code"})
    np.testing.assert_array_equal(eager.brightness_contrast(IMAGE), 255 - IMAGE)
    np.testing.assert_array_equal(eager.contrast(IMAGE, contrast=0.5), want)


def test_names_of_the_group_stoker_are_built_in() -> None:
    with pytest.raises(ArgumentError, match="outside of the group `stoker`"):
        exec(OWN.format(name="stoker.own"), {"__name__": "t_users_code"})
    with pytest.raises(ArgumentError, match="no operator"):
        registry.find("stoker.nothing")
    assert "flip" in dir(fn.stoker) and "file" in dir(fn.stoker.readers)
    assert stoker.fn.stoker.flip.__doc__ == fn.flip.__doc__


def test_importing_stoker_reads_no_packages() -> None:
    code = "import sys, stoker; print('importlib.metadata' in sys.modules)"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True, timeout=HANG_S)
    assert done.stdout.strip() == "False"
