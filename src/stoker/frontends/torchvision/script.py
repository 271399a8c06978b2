# SPDX-License-Identifier: Apache-2.0
"""``python -m stoker.torchvision train.py arguments``: run a script as Python does, with the take-over on."""

from __future__ import annotations

import os
import runpy
import sys

from .switch import enable

_USAGE = """usage: python -m stoker.torchvision [--device DEVICE] script.py [arguments]
       python -m stoker.torchvision [--device DEVICE] -m module [arguments]

--device DEVICE  where batches are delivered: cpu (the default), cuda (torch's current GPU when a loop begins) or
                 cuda:1. What comes after the script's name is the script's."""


def run() -> None:
    """Run what the command line names."""
    arguments = sys.argv[1:]
    device = "cpu"
    if arguments[:1] == ["--device"] and len(arguments) > 1:
        device, arguments = arguments[1], arguments[2:]
    elif arguments and arguments[0].startswith("--device="):
        device, arguments = arguments[0].removeprefix("--device="), arguments[1:]
    module = arguments[:1] == ["-m"]
    arguments = arguments[module:]
    if arguments[:1] in (["-h"], ["--help"]):
        print(_USAGE)
        return
    if not arguments or arguments[0].startswith("-"):
        sys.exit(_USAGE)
    enable(device)
    sys.argv = arguments
    if module:
        sys.path[0] = os.getcwd()
        runpy.run_module(arguments[0], run_name="__main__", alter_sys=True)
        return
    sys.path[0] = os.path.dirname(os.path.abspath(arguments[0]))
    # The script's module takes the place of this one, so that what it defines can be pickled for spawned workers.
    runpy.run_path(arguments[0], run_name="__main__")
