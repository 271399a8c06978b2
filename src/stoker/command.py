# SPDX-License-Identifier: Apache-2.0
"""The ``stoker`` command: demo, check, index, pack, unpack, preview, show, new-operator,
triton-export, bench, info."""

from __future__ import annotations

import argparse
import contextlib
import importlib
import importlib.util
import io
import os
import platform
import sys
from collections.abc import Callable
from pathlib import Path

from .contract.text import printable, printable_lines

INTERRUPTED, CLOSED_PIPE = 130, 141  # exit statuses of a shell for SIGINT and SIGPIPE


def main(argv: list[str] | None = None) -> int:
    """Run the command and return its exit status."""
    return end_cleanly(lambda: _run(argv))


def end_cleanly(run: Callable[[], int]) -> int:
    """Run a command and return its exit status. Ctrl-C, a closed pipe and a full disk end it without a traceback."""
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, io.TextIOWrapper):
            stream.reconfigure(errors="backslashreplace")  # names that the terminal's encoding lacks
    try:
        try:
            status = run()
        except SystemExit:
            sys.stdout.flush()
            raise
        sys.stdout.flush()
    except KeyboardInterrupt:
        return _end("interrupted", INTERRUPTED)
    except BrokenPipeError:
        return _end("", CLOSED_PIPE)
    except OSError as error:
        return _end(str(error), 1)
    return status


def _end(reason: str, status: int) -> int:
    """Print a reason, leave nothing that the interpreter would write at its end, and return the status.

    Unwritten output is dropped: it cannot be written, or the writer waits for a reader that does not read, such as a
    pager that ignores Ctrl-C.
    """
    with contextlib.suppress(OSError, ValueError), open(os.devnull, "wb") as nowhere:
        os.dup2(nowhere.fileno(), sys.stdout.fileno())
    if reason:
        with contextlib.suppress(OSError, ValueError):
            print(f"stoker: {printable(reason)}", file=sys.stderr, flush=True)
    return status


class _PrintVersion(argparse.Action):
    """The argument ``--version``. argparse's own action hides that nothing could be written."""

    def __call__(self, parser: argparse.ArgumentParser, *_: object) -> None:
        from . import __version__

        print(f"stoker {__version__}")
        parser.exit()


def _parser() -> tuple[argparse.ArgumentParser, argparse._SubParsersAction[argparse.ArgumentParser]]:
    """Return the command's parser and its sub-commands. Those without help parse their own arguments."""
    parser = argparse.ArgumentParser(
        prog="stoker", description="Feeds accelerators: reads, decodes, augments, batches."
    )
    parser.add_argument("--version", action=_PrintVersion, nargs=0, help="print the version and exit")
    commands = parser.add_subparsers(dest="command", required=True)
    commands.add_parser("demo", add_help=False, help="the ImageNet training chain over a folder of images")
    commands.add_parser("check", add_help=False, help="decode every file of a folder and list the bad ones")
    commands.add_parser("index", add_help=False, help="find the records of container files, and report damaged files")
    commands.add_parser("pack", add_help=False, help="write the files of a folder into shards of containers")
    commands.add_parser("unpack", add_help=False, help="write the samples of containers into a folder")
    commands.add_parser("preview", add_help=False, help="draw a contact sheet of the pipeline in a Python file")
    commands.add_parser(
        "triton-export", add_help=False, help="write the pipeline in a Python file as a model of Triton"
    )
    commands.add_parser("new-operator", add_help=False, help="write a package with an operator in C++ and CUDA")
    commands.add_parser("bench", add_help=False, help="measure against other libraries (in a checkout)")
    text = "print the graph and plan of the pipelines in a Python file"
    shown = commands.add_parser("show", help=text, description=f"{text[0].upper()}{text[1:]}.")
    shown.add_argument("file", type=Path, metavar="PIPELINE.py", help="the file; it is run")
    shown.add_argument("--dot", action="store_true", help="print the graph for Graphviz")
    shown.add_argument("--name", help="only the pipeline (or pipeline function without arguments) of this name")
    text = "print the build, the instruction sets in use and the devices"
    commands.add_parser("info", help=text, description=f"{text[0].upper()}{text[1:]}.")
    return parser, commands


def parsers() -> list[argparse.ArgumentParser]:
    """Return the parsers of the command and of its sub-commands, for documentation; `bench` only in a checkout."""
    parser, commands = _parser()
    modules = {
        "demo": "stoker.demo.run", "check": "stoker.inspection.check", "index": "stoker.inspection.index",
        "pack": "stoker.inspection.pack", "unpack": "stoker.inspection.unpack",
        "preview": "stoker.inspection.preview", "triton-export": "stoker.inspection.triton_export",
        "new-operator": "stoker.inspection.new_operator",
        "bench": "benchmarks.__main__",
    }  # fmt: skip
    found = [parser]
    for name, own in commands.choices.items():
        if name == "bench" and importlib.util.find_spec("benchmarks") is None:
            continue
        found.append(importlib.import_module(modules[name]).parser() if name in modules else own)
    return found


def _run(argv: list[str] | None) -> int:
    parser, _ = _parser()
    known, rest = parser.parse_known_args(argv)
    if known.command == "demo":
        return int(importlib.import_module("stoker.demo.run").main(rest))
    if known.command == "check":
        return int(importlib.import_module("stoker.inspection.check").main(rest))
    if known.command == "index":
        return int(importlib.import_module("stoker.inspection.index").main(rest))
    if known.command in ("pack", "unpack"):
        return int(importlib.import_module(f"stoker.inspection.{known.command}").main(rest))
    if known.command == "preview":
        return int(importlib.import_module("stoker.inspection.preview").main(rest))
    if known.command == "triton-export":
        return int(importlib.import_module("stoker.inspection.triton_export").main(rest))
    if known.command == "new-operator":
        return int(importlib.import_module("stoker.inspection.new_operator").main(rest))
    if known.command == "bench":
        return _bench(rest)
    if rest:
        parser.error(f"unknown arguments: {printable(' '.join(rest))}")
    return _info() if known.command == "info" else _show(known.file, known.name, known.dot)


def _bench(rest: list[str]) -> int:
    if importlib.util.find_spec("benchmarks") is None:
        sys.path.insert(0, str(Path.cwd()))
    if importlib.util.find_spec("benchmarks") is None:
        print("stoker bench: run it in a checkout of the project, where the folder benchmarks/ is", file=sys.stderr)
        return 2
    return int(importlib.import_module("benchmarks.__main__").main(rest) or 0)


def _info() -> int:
    import numpy
    import PIL

    from . import __version__
    from .native import _native
    from .settings import default_threads

    rows = {
        "stoker": __version__,
        "compiler": _native.compiler,
        "instruction set": f"{_native.get_isa()} in use, {_native.best_isa()} available (STOKER_SIMD lowers it)",
        "threads": f"{default_threads()} by default (STOKER_NUM_THREADS sets it)",
        "devices": f"cpu, and {_native.gpu.count_cuda()} for CUDA",
        "python": f"{platform.python_version()} on {platform.platform()}",
        "numpy, pillow": f"{numpy.__version__}, {PIL.__version__}",
    }
    width = max(map(len, rows))
    print("\n".join(f"{k:<{width}}  {v}" for k, v in rows.items()))
    return 0


def _show(path: Path, name: str | None, dot: bool) -> int:
    from .contract.errors import StokerError
    from .inspection.pipeline_file import find_pipelines, missing_arguments

    try:
        found = find_pipelines(path, name)
    except FileNotFoundError as error:
        print(f"stoker show: {error}", file=sys.stderr)
        return 2
    if not found:
        print(f"stoker show: no pipeline or @pipeline_def function found in {str(path)!r}", file=sys.stderr)
        return 1
    failed = False
    for key, value in found.items():
        missing = missing_arguments(value)
        if missing:
            print(f"# {printable(key)}: it needs {missing}")
            failed |= name is not None
            continue
        try:
            pipe = value() if callable(value) else value
            text = pipe.show("dot" if dot else "text")
        except StokerError as error:
            print(f"stoker show: {printable(key)}: {error}", file=sys.stderr)
            failed = True
            continue
        print(f"# {printable(key)}\n{printable_lines(text)}")
    return int(failed)


if __name__ == "__main__":
    sys.exit(main())
