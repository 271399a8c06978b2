#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# Runs the library's NEON code on an emulated 64-bit Arm, against the plain code: kernels of pixel programs, of images
# (resampling, warps, filters), of audio and of the JPEG decoder on random and extreme values, then whole files and damaged ones by
# the fuzzer's laws, for SECONDS. With an emulator, the host compiler builds the same programs too, and the digests of all
# results must be equal. Needs Debian's g++-aarch64-linux-gnu and qemu-user; without them the script prints SKIPPED.
# On an Arm machine it runs natively. Usage: neon.sh [SECONDS [FOLDER]]; 0 seconds: only the kernels.
# FOLDER keeps the objects.
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

flags="-std=c++20 -O3 -ffp-contract=off -I$native"  # those of the build

# build COMPILER FOLDER LIBRARIES PROGRAMS: builds objects that are older than the sources, and the programs.
build() {
  mkdir -p "$2"
  # shellcheck disable=SC2086
  sources=$("${PYTHON:-python3}" "$root/tools/native_layers.py" --sources $3)
  for source in $sources; do
    object=$2/$(basename "$(dirname "$source")")_$(basename "$source" .cpp).o
    if [ ! -e "$object" ] || [ -n "$(find "$native" -type f -newer "$object" -name '*.[chi]*' | head -n 1)" ]; then
      echo "$object $source"
    fi
    # shellcheck disable=SC2086
  done | xargs -r -P "$(nproc)" -n 2 "$1" $flags -c -o
  rm -f "$2/kernels.a"
  ar rcs "$2/kernels.a" "$2"/*.o
  for program in $4; do
    "$1" -std=c++20 -O1 -ffp-contract=off -I"$native" -static "$here/$program.cpp" "$2/kernels.a" -o "$2/$program"
  done
}

with_digest="pixel_kernels_check image_kernels_check signal_kernels_check"
build "$compiler" "$work/arm" "torch resample warp reduce signal jpeg" "$with_digest jpeg_kernels_check"
for program in $with_digest; do
  $emulator "$work/arm/$program" >"$work/arm/$program.txt" || failed=1
  cat "$work/arm/$program.txt"
  [ -z "${failed:-}" ]
done
$emulator "$work/arm/jpeg_kernels_check"
[ "$seconds" -gt 0 ] || exit 0

if [ -n "$emulator" ]; then
  build "${CXX:-g++}" "$work/host" "torch resample warp reduce signal" "$with_digest"
  for program in $with_digest; do
    "$work/host/$program" >"$work/host/$program.txt"
    [ "$(grep digest "$work/host/$program.txt")" = "$(grep digest "$work/arm/$program.txt")" ] || {
      echo "$program: the results differ from those of this machine:"
      cat "$work/host/$program.txt"
      exit 1
    }
  done
  echo "the digests are those of this machine ($(uname -m)) too"
fi

"${PYTHON:-python3}" "$root/fuzz/make_corpus.py" "$work/corpus"
"$compiler" -std=c++20 -O2 -DSTOKER_FUZZ_STANDALONE -I"$native" -static "$root/fuzz/jpeg_fuzz.cpp" "$work/arm/kernels.a" \
  -o "$work/jpeg_fuzz"
find "$work/corpus" -type f -exec $emulator "$work/jpeg_fuzz" "$seconds" "${SEED:-1}" {} +
