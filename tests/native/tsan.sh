#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# Builds the run loop, worker pools and the recipe interpreter with ThreadSanitizer and runs them without Python:
# tests/native/tsan.sh [SECONDS [FOLDER]]. A race, a deadlock of two minutes or a wrong row fails. A fake CUDA driver
# (tests/cuda/fake_driver.cpp) replaces the real one.
set -eu
here=$(cd "$(dirname "$0")" && pwd)
root=$here/../..
native=$root/src/stoker/native
seconds=${1:-20}
work=${2:-$root/build/tsan}
mkdir -p "$work"
work=$(cd "$work" && pwd)
compiler="${CXX:-g++} -std=c++20 -O2 -g1 -ffp-contract=off -w
  -fsanitize=thread -pthread -I$native"
sources=$("${PYTHON:-python3}" "$root/tools/native_layers.py" --sources run recipe)
for source in $sources "$here/run_threads.cpp"; do  # each into an object that is named after its folder too
  printf '%s\0%s\0' "$source" "$work/$(basename "$(dirname "$source")")_$(basename "$source" .cpp).o"
done | xargs -0 -n 2 -P "${PROCESSES:-2}" sh -c "$(echo $compiler) -c \"\$0\" -o \"\$1\""
# shellcheck disable=SC2086
$compiler "$work"/*.o -o "$work/run_threads" -ldl
# shellcheck disable=SC2086
${CXX:-g++} -std=c++20 -O1 -shared -fPIC -I"$native" "$root/tests/cuda/fake_driver.cpp" -o "$work/libcuda.so.1" -pthread -ldl
# ThreadSanitizer needs an address space without randomization.
fixed=$(command -v setarch >/dev/null 2>&1 && echo setarch --addr-no-randomize || true)
LD_LIBRARY_PATH=$work TSAN_OPTIONS="halt_on_error=0 exitcode=66 second_deadlock_stack=1" $fixed \
  "$work/run_threads" "$seconds" "${SEED:-1}"
