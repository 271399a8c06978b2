# SPDX-License-Identifier: Apache-2.0
"""``python -m stoker.torchvision train.py arguments``: run a script like Python, with the take-over enabled."""

from __future__ import annotations

import os
import re
import runpy
import sys
import types
import zipfile
from typing import NoReturn

from ....contract.errors import ArgumentError, DeviceError
from .switch import enable

_USAGE = """usage: python -m stoker.torchvision [--device DEVICE] [--device-steps] script.py [arguments]
       python -m stoker.torchvision [--device DEVICE] [--device-steps] -m module [arguments]

--device DEVICE  where batches are delivered: cpu (the default), cuda (torch's current GPU when a loop begins),
                 cuda:1, or another device of torch, such as xpu or mps
--device-steps   torch computes the last steps of the images on such another device, with the same bits
What comes after the script's name is the script's."""


# Launchers, which start a script in processes of their own, with the command that runs a module in them.
_TORCHRUN, _ACCELERATE = "torchrun options", "accelerate launch options"
_LAUNCHERS = {
    "torchrun": _TORCHRUN,
    "torch.distributed.run": _TORCHRUN,
    "torch.distributed.launch": _TORCHRUN,
    "accelerate": _ACCELERATE,
    "accelerate.commands.launch": _ACCELERATE,
    "accelerate.commands.accelerate_cli": _ACCELERATE,
}


def run() -> None:
    """Run the script or module that the command line names."""
    rank, arguments = _local_rank(sys.argv[1:])
    device, arguments = _device(arguments)
    device_steps = arguments[:1] == ["--device-steps"]
    arguments = arguments[device_steps:]
    if arguments[:1] in (["-h"], ["--help"]):
        print(_USAGE)
        return
    module = arguments[:1] == ["-m"]
    arguments = arguments[module:]
    _check(arguments[0] if arguments else None, module)
    try:
        enable(device, device_steps=device_steps)
    except (ArgumentError, DeviceError) as error:
        _refuse(str(error))
    launched = _LAUNCHERS.get(os.path.basename(arguments[0]))
    if launched is not None:
        print(
            f"stoker.torchvision: the processes of {arguments[0]} run without Stoker. "
            f"To run them with Stoker: {launched} -m stoker.torchvision script.py arguments",
            file=sys.stderr,
        )
    sys.argv = [arguments[0], *rank, *arguments[1:]]
    if module:
        _search(os.getcwd())
        runpy.run_module(arguments[0], run_name="__main__", alter_sys=True)
        return
    path = os.path.abspath(arguments[0])
    _search(os.path.dirname(os.path.realpath(path)))  # search the folder of the file itself, even if a link names it
    if not os.path.isfile(path) or zipfile.is_zipfile(path) or path.endswith(".pyc"):
        runpy.run_path(arguments[0], run_name="__main__")
    else:
        _run_file(path)


def _run_file(path: str) -> None:
    """Run a file like Python. ``__file__`` is absolute, so a script may change the working folder."""
    with open(path, "rb") as file:
        code = compile(file.read(), path, "exec")
    # The script replaces this command's module, so that its definitions can be pickled for spawned workers.
    main = types.ModuleType("__main__")
    main.__file__ = path
    sys.modules["__main__"] = main
    exec(code, vars(main))


def _local_rank(arguments: list[str]) -> tuple[list[str], list[str]]:
    """Return the rank that ``torch.distributed.launch`` adds before a script's arguments, and the other arguments.

    The launcher takes this module for the script.
    """
    count = int(arguments[:1] != [] and re.fullmatch("--local[-_]rank=[0-9]+", arguments[0]) is not None)
    return arguments[:count], arguments[count:]


def _device(arguments: list[str]) -> tuple[str, list[str]]:
    """Return the requested device, and the rest of the arguments."""
    if arguments and arguments[0].startswith("--device="):
        return arguments[0].removeprefix("--device="), arguments[1:]
    if arguments[:1] != ["--device"]:
        return "cpu", arguments
    if len(arguments) < 2:
        _refuse(f"expected a device after --device, got nothing\n\n{_USAGE}")
    return arguments[1], arguments[2:]


def _check(name: str | None, module: bool) -> None:
    what = "a module's name" if module else "a script's path, or -m and a module's name"
    if name is None or name.startswith("-"):
        _refuse(f"expected {what}, got {'nothing' if name is None else repr(name)}\n\n{_USAGE}")
    if not module and not os.path.exists(name):
        _refuse(f"expected {what}, got {name!r}, which is not there (in {os.getcwd()!r})")


def _search(folder: str) -> None:
    """Search ``folder`` first for modules, unless Python runs with ``-P``."""
    if not sys.flags.safe_path:
        sys.path[0] = folder


def _refuse(text: str) -> NoReturn:
    print(f"stoker.torchvision: {text}", file=sys.stderr)
    sys.exit(2)
