# SPDX-License-Identifier: Apache-2.0
"""Libraries of operators in wheels: extensions for setuptools."""

from __future__ import annotations

import importlib
from collections.abc import Sequence
from typing import Any

from ...contract.errors import ResourceError
from .build import HEADERS

# Those of `build`, without instructions that only this machine has.
_FLAGS = ("-std=c++20", "-O3", "-g0", "-ffp-contract=off", "-fvisibility=hidden")


def extension(name: str, sources: Sequence[str], *, flags: Sequence[str] = (), **more: Any) -> Any:
    """Return a ``setuptools.Extension`` that compiles an operator into a package, for ``setup.py``.

    ::

        setup(ext_modules=[cpp.extension("my_op._code", ["src/my_op/my_op.cpp"], libraries=["opencv_core"])])

    The library uses nothing of Python, so one wheel serves all its versions
    (``options={"bdist_wheel": {"py_limited_api": "cp311"}}``). It runs on every processor of the architecture;
    ``flags=["-march=x86-64-v3"]`` allows more instructions.

    Args:
        name: qualified name of the library, ``package._code``.
        sources: paths of the C++ sources, relative to ``setup.py``.
        flags: further flags of the compiler.
        **more: arguments of ``setuptools.Extension``, such as ``include_dirs``, ``libraries`` and ``library_dirs``.

    Raises:
        ResourceError: setuptools is not installed.
    """
    try:
        setuptools = importlib.import_module("setuptools")
    except ImportError as error:
        raise ResourceError(f"expected setuptools, got: {error}. `pip install setuptools`") from error
    folders = [str(HEADERS), *more.pop("include_dirs", ())]
    return setuptools.Extension(
        name, list(sources), language="c++", include_dirs=folders, extra_compile_args=[*_FLAGS, *flags],
        py_limited_api=True, **more,
    )  # fmt: skip
