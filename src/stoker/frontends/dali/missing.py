# SPDX-License-Identifier: Apache-2.0
"""Modules of NVIDIA DALI that Stoker lacks. Importing one raises an error with the reason and the way out."""

from __future__ import annotations

from typing import NoReturn

from ...contract.errors import UnsupportedError

_WAYS_OUT = {
    "experimental.torchvision": "For torchvision scripts use `stoker.torchvision`",
    "internal": "It is DALI's own",
    "reducers": (
        "Functions are sent to processes by value without it; for other objects give the pipeline "
        "`py_callback_pickler=cloudpickle`, or any other pickler"
    ),
    "sysconfig": (
        "It is for compiling operators for DALI, which are not loaded here: write them in Python "
        "(`stoker.Operator`, `stoker.register`), or use `fn.python_function`"
    ),
    "plugin.mxnet": "DALI 2 has dropped it too. `stoker.mxnet.Loader` delivers a pipeline's batches to MXNet",
}


class MissingModuleError(UnsupportedError, ImportError):
    """Stoker lacks this module of DALI's. It is also an ImportError, for scripts that test for the module."""


def is_module(name: str) -> bool:
    """Return whether the name is one of those modules. Names begin after ``dali.``."""
    return name in _WAYS_OUT


def refuse_module(name: str) -> NoReturn:
    """Refuse the import of a missing module.

    Raises:
        MissingModuleError: always.
    """
    raise MissingModuleError(
        f"the module `dali.{name}` of DALI is not in Stoker (yet). {_WAYS_OUT[name]}; see docs/migrating_from_dali.md",
        name=f"stoker.dali.{name}",
    )
