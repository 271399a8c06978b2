#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# Runs the JPEG decoder's NEON code on an emulated 64-bit Arm, against the plain code: every kernel on random and extreme
# values, then whole files and damaged ones by the fuzzer's laws, for SECONDS. Needs Debian's g++-aarch64-linux-gnu and
# qemu-user; without them it says so and is skipped. On an Arm machine it runs natively.
set -eu
here=$(cd "$(dirname "$0")" && pwd)
root=$here/../..
native=$root/src/stoker/native
seconds=${1:-30}
work=${2:-$root/build/neon}
if [ "$(uname -m)" = aarch64 ]; then
  compiler=g++ emulator=
else
  compiler=aarch64-linux-gnu-g++ emulator=qemu-aarch64
fi
for tool in $compiler $emulator; do
  command -v "$tool" >/dev/null 2>&1 || {
    echo "SKIPPED: $tool is missing (Debian: g++-aarch64-linux-gnu, qemu-user); NEON was not tested"
    exit 0
  }
done
mkdir -p "$work"
"${PYTHON:-python3}" "$root/fuzz/make_corpus.py" "$work/corpus"
sources=$(find "$native" -maxdepth 1 -name 'jpeg_*.cpp' ! -name 'jpeg_gpu*.cpp')
objects=
for source in $sources; do
  object=$work/$(basename "$source" .cpp).o
  "$compiler" -std=c++20 -O2 -ffp-contract=off -Wall -Wextra -I"$native" -c "$source" -o "$object"
  objects="$objects $object"
done
# shellcheck disable=SC2086
"$compiler" -std=c++20 -O2 -Wall -Wextra -I"$native" -static "$here/jpeg_kernels_check.cpp" $objects -o "$work/check"
# shellcheck disable=SC2086
"$compiler" -std=c++20 -O2 -DSTOKER_FUZZ_STANDALONE -I"$native" -static "$root/fuzz/jpeg_fuzz.cpp" $objects \
  -o "$work/jpeg_fuzz"
$emulator "$work/check"
find "$work/corpus" -type f -exec $emulator "$work/jpeg_fuzz" "$seconds" "${SEED:-1}" {} +
