#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# Builds the fuzzers of JPEG files, of image files without loss, of the libraries of WebP and JPEG 2000, of containers, of manifests and cached blocks, of recipes, of audio files and of frames and packets of videos, and runs each: fuzz/run.sh [SECONDS [FOLDER]]. TARGETS="recipe" runs that one
# alone. JOBS=8 runs eight processes, with the seeds SEED=1 to 8. With clang they are libFuzzer's, else ones with mutations of their own; both with AddressSanitizer and
# UndefinedBehaviorSanitizer. STANDALONE=1 takes the latter in any case: it learns nothing, but runs ten times as often;
# that of files starts from what the former has found. Set PYTHON to one with NumPy.
set -eu
here=$(cd "$(dirname "$0")" && pwd)
native=$here/../src/stoker/native
seconds=${1:-60}
work=${2:-$here/../build/fuzz}
python=${PYTHON:-python3}
mkdir -p "$work/grown"
work=$(cd "$work" && pwd)
"$python" "$here/make_corpus.py" "$work/corpus"
"$python" "$here/make_container_corpus.py" "$work/containers"
libraries=$("$python" "$here/make_raster_corpus.py" "$work/raster" "$work/libraries")
# Few, of a few layouts, for the recipes that decode.
STOKER_FUZZ_FILES=$(find "$work/corpus" -name '*-0*' -type f | sort | head -20 | tr '\n' ':')
export STOKER_FUZZ_FILES

with_clang=
if [ -z "${STANDALONE:-}" ] && command -v clang++ >/dev/null 2>&1; then with_clang=1; fi
sanitizers=address,undefined,float-cast-overflow

# build TARGET: a program of the fuzzer and of the library that is called like it, an object file at a time.
build() {
  flags="-std=c++20 -O2 -g -ffp-contract=off -fno-sanitize-recover=all -I$native"
  if [ -n "$with_clang" ]; then
    compiler=clang++
    flags="$flags -fsanitize=fuzzer,$sanitizers -fno-sanitize-coverage=trace-cmp,stack-depth"
  else
    compiler=${CXX:-g++}
    flags="$flags -DSTOKER_FUZZ_STANDALONE -fsanitize=$sanitizers"
  fi
  objects=$work/$1.objects
  rm -rf "$objects" && mkdir -p "$objects"
  { "$python" "$here/../tools/native_layers.py" --sources "$1"; echo "$here/$1_fuzz.cpp"; } >"$objects/sources"
  # shellcheck disable=SC2016,SC2086
  xargs -P "$(nproc)" -I{} sh -c \
    'set -eu; source=$1; to=$2/$(basename "$(dirname "$source")")_$(basename "$source").o; shift 2; "$@" -c "$source" -o "$to"' \
    sh {} "$objects" ${CMAKE_CXX_COMPILER_LAUNCHER:-} $compiler $flags <"$objects/sources"
  # shellcheck disable=SC2086
  $compiler $flags "$objects"/*.o -o "$work/$1_fuzz"
}

# run TARGET: in JOBS processes, each in a folder of its own that findings are written to.
run() {
  all="$python $here/parallel.py ${JOBS:-1} ${SEED:-1} $work/found/$1"
  if [ -n "$with_clang" ]; then
    extra=
    [ "$1" = container ] && extra="$work/containers"
    [ "$1" = raster ] && extra="$work/raster"
    [ "$1" = jpeg ] && extra="-dict=$here/jpeg.dict $work/grown $work/corpus"
    program=$1
    [ "$1" = libraries ] && program=raster && extra="$work/libraries"
    # shellcheck disable=SC2086
    $all "$work/${program}_fuzz" -seed={seed} -max_total_time="$seconds" -max_len="${MAX_LEN:-8192}" -entropic=0 -timeout=20 \
      -rss_limit_mb=2048 -print_final_stats=1 $extra
  elif [ "$1" = jpeg ]; then
    # shellcheck disable=SC2086
    find "$work/corpus" "$work/grown" -type f -exec $all "$work/jpeg_fuzz" "$seconds" {seed} {} +
  elif [ "$1" = container ]; then
    # shellcheck disable=SC2086
    $all "$work/container_fuzz" "$seconds" {seed} "$work"/containers/*
  elif [ "$1" = raster ]; then
    # shellcheck disable=SC2086
    $all "$work/raster_fuzz" "$seconds" {seed} "$work"/raster/*
  elif [ "$1" = libraries ]; then
    # shellcheck disable=SC2086
    $all "$work/raster_fuzz" "$seconds" {seed} "$work"/libraries/*
  else
    # shellcheck disable=SC2086
    $all "$work/$1_fuzz" "$seconds" {seed}
  fi
}

for target in ${TARGETS:-jpeg raster libraries container io recipe audio video}; do
  if [ "$target" = libraries ]; then
    # The program of `raster`, with the libraries of Pillow's wheel; without a wheel there is nothing to run.
    [ -n "$libraries" ] || { echo "no libraries of WebP and JPEG 2000: left out"; continue; }
    build raster
    (eval "$libraries" && run libraries)
  else
    build "$target"
    run "$target"
  fi
done
