#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# Builds the fuzzer and runs it: fuzz/run.sh [SECONDS [FOLDER]]. With clang it is libFuzzer's, else one with mutations
# of its own; both with AddressSanitizer and UndefinedBehaviorSanitizer. STANDALONE=1 takes the latter in any case: it
# learns nothing, but runs ten times as often; it starts from what the former has found. Set PYTHON to one with NumPy.
set -eu
here=$(cd "$(dirname "$0")" && pwd)
native=$here/../src/stoker/native
seconds=${1:-60}
work=${2:-$here/../build/fuzz}
python=${PYTHON:-python3}
mkdir -p "$work/found" "$work/grown"
work=$(cd "$work" && pwd)
"$python" "$here/make_corpus.py" "$work/corpus"

flags="-std=c++20 -O2 -g -ffp-contract=off -fno-sanitize-recover=all -I$native"
sources=$(find "$native" -maxdepth 1 -name 'jpeg_*.cpp' ! -name 'jpeg_gpu*.cpp')
if [ -z "${STANDALONE:-}" ] && command -v clang++ >/dev/null 2>&1; then
  # shellcheck disable=SC2086
  clang++ $flags -fsanitize=fuzzer,address,undefined -fno-sanitize-coverage=trace-cmp,stack-depth \
    $sources "$here/jpeg_fuzz.cpp" -o "$work/jpeg_fuzz"
  cd "$work/found"
  exec "$work/jpeg_fuzz" -max_total_time="$seconds" -max_len="${MAX_LEN:-8192}" -entropic=0 -timeout=20 -rss_limit_mb=2048 \
    -dict="$here/jpeg.dict" -print_final_stats=1 "$work/grown" "$work/corpus"
fi
# shellcheck disable=SC2086
g++ $flags -DSTOKER_FUZZ_STANDALONE -fsanitize=address,undefined $sources "$here/jpeg_fuzz.cpp" \
  -o "$work/jpeg_fuzz_standalone"
find "$work/corpus" "$work/grown" -type f -exec "$work/jpeg_fuzz_standalone" "$seconds" "${SEED:-1}" {} +
