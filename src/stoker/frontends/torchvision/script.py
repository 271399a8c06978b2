# SPDX-License-Identifier: Apache-2.0
"""``python -m stoker.torchvision train.py arguments``: run a script as Python does, with the take-over on."""

from __future__ import annotations

import os
import runpy
import sys

from .switch import enable

_USAGE = "usage: python -m stoker.torchvision script.py [arguments]   or   python -m stoker.torchvision -m module ..."


def run() -> None:
    """Run what the command line names."""
    arguments = sys.argv[1:]
    module = arguments[:1] == ["-m"]
    arguments = arguments[module:]
    if not arguments or arguments[0] in ("-h", "--help"):
        sys.exit(_USAGE)
    enable()
    sys.argv = arguments
    if module:
        sys.path[0] = os.getcwd()
        runpy.run_module(arguments[0], run_name="__main__", alter_sys=True)
        return
    sys.path[0] = os.path.dirname(os.path.abspath(arguments[0]))
    # The script's module takes the place of this one, so that what it defines can be pickled for spawned workers.
    runpy.run_path(arguments[0], run_name="__main__")
