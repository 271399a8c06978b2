#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# Usage: tools/doctor.sh PYTHON
#
# Looks for all that the set-up needs of the system and prints one apt line if something is missing, so that nothing
# fails later with a message that has to be understood first. Prints nothing and returns 0 if all is there.
set -u

python=${1:-python3}
cxx=${CXX:-g++}
missing=""

lacks() {
    missing="$missing  $1
"
}

if ! version=$("$python" -c 'import platform; print(platform.python_version())' 2>/dev/null); then
    lacks "$python"
elif ! "$python" -c 'import sys; sys.exit(sys.version_info < (3, 11))'; then
    echo "Stoker needs Python 3.11 or newer, and $python is $version." >&2
    echo "Name another one: make PYTHON=python3.12" >&2
    exit 1
else
    # Debian ships `venv` without `ensurepip`, and `python3 -m venv` fails half-way.
    "$python" -c 'import ensurepip, venv' 2>/dev/null || lacks "the venv module of $python"
    "$python" - <<'PYTHON' || lacks "the C headers of $python (Python.h)"
import os, sys, sysconfig
folders = sysconfig.get_config_var("INCLUDEPY"), sysconfig.get_path("include"), sysconfig.get_path("platinclude")
sys.exit(not any(folder and os.path.exists(os.path.join(folder, "Python.h")) for folder in folders))
PYTHON
fi

if ! command -v "${cxx%% *}" >/dev/null 2>&1; then
    lacks "$cxx"
elif ! printf '#include <bit>\n#include <vector>\n' | $cxx -std=c++20 -x c++ -fsyntax-only - 2>/dev/null; then
    lacks "a $cxx that compiles C++20 (GCC 11 or newer) with its standard library"
fi

[ -z "$missing" ] && exit 0

# A versioned interpreter has packages of its own: python3.12-venv, python3.12-dev.
name=$(basename "$python")
case $name in
    python3.[0-9]*) ;;
    *) name=python3 ;;
esac
{
    echo "Missing:"
    printf '%s' "$missing"
    echo "Install it, then run make again:"
    echo "  sudo apt install $name-venv $name-dev g++ make"
} >&2
exit 1
