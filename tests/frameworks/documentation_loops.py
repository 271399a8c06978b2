# SPDX-License-Identifier: Apache-2.0
"""Pages of the documentation with examples of trainers and of pandas, run as written.

`make trainers` runs this test in an environment of its own, which has all packages that the pages need.
"""

from __future__ import annotations

import importlib.util
from pathlib import Path

import pytest

import tests.takeover.declared  # noqa: F401  # makes torchvision's library loadable, before others import it
from tests.e2e.test_readme import BLOCK, PAGES, run
from tests.photographs import write_photographs

PACKAGES = {
    page: {name for needs, _, _ in BLOCK.findall(page.read_text(encoding="utf-8")) for name in needs.split()}
    - {"torchvision"}  # `make test` runs its blocks
    - {
        "bentoml",
        "cupy",
        "fastapi",
        "jax",
        "kserve",
        "litserve",
        "mxnet",
        "paddle",
        "ray",
        "tensorflow",
        "triton",  # comes with a torch for GPUs
    }  # their own environments do
    for page in PAGES
}


@pytest.mark.leaks("trainers keep threads and connections")
@pytest.mark.parametrize("page", [page for page, names in PACKAGES.items() if names], ids=lambda page: page.stem)
def test_documentation(page: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    missing = [name for name in PACKAGES[page] if importlib.util.find_spec(name) is None]
    assert not missing, "the environment has all packages, so no block is left out"
    monkeypatch.chdir(tmp_path)
    run(page, write_photographs(tmp_path / "photographs", per_class=45), tmp_path)
