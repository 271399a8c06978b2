#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# Builds the extension with ThreadSanitizer and runs tests/run/thread_stress.py on it: tests/run/stress_bindings.sh
# [SECONDS]. A race, a deadlock or a wrong result fails. PYTHON builds the extension, and TSAN_PYTHON (default: PYTHON)
# runs it. The GIL is a lock of the system, which ThreadSanitizer knows. Without a GIL, TSAN_PYTHON must be an
# interpreter of the same version that was configured with `--disable-gil --with-thread-sanitizer`.
set -eu
cd "$(dirname "$0")/../.."
python=${PYTHON:-python3}
runner=${TSAN_PYTHON:-$python}
asked() { "$1" -c "import sysconfig; print(sysconfig.get_config_var('$2') or '')"; }
work=$PWD/build/tsan-$(asked "$python" SOABI)
case "$(asked "$runner" CONFIG_ARGS)" in
    *--with-thread-sanitizer*) preload= ;;
    *)  preload=$(${CXX:-g++} -print-file-name=libtsan.so)
        if [ "$(asked "$runner" Py_GIL_DISABLED)" = 1 ]; then
            echo "expected TSAN_PYTHON=python3.14t, configured with --with-thread-sanitizer; $runner was not" >&2
            exit 2
        fi ;;
esac
rm -rf "$work/site"
STOKER_LTO=OFF "$python" -m pip install -qq --disable-pip-version-check --no-warn-conflicts --no-build-isolation --no-deps \
    --target "$work/site" -C build-dir="$work/cmake" -C cmake.define.STOKER_SANITIZE=thread .
packages=$("$python" -c "import os, numpy, PIL; print(os.pathsep.join(os.path.dirname(p.__path__[0]) for p in (numpy, PIL)))")
# ThreadSanitizer needs an address space without randomization.
fixed=$(command -v setarch >/dev/null 2>&1 && echo setarch --addr-no-randomize || true)
run() {
    PYTHONPATH=$work/site:$PWD:$packages LD_PRELOAD=$preload TSAN_OPTIONS="exitcode=66 second_deadlock_stack=1
        history_size=7 suppressions=$PWD/tests/run/tsan_suppressions.txt ${TSAN_OPTIONS:-}" $fixed "$runner" "$@"
}
grep -q __tsan_init "$work"/site/stoker/native/_native.*.so
run -c "from stoker.native import _native; assert _native.__file__.startswith('$work/'), _native.__file__"
# A planted race in a library that two threads of Python call: without a report of it, no report means nothing. The
# threads wait for each other, or locks of Python's may order their calls.
echo 'int n, here; extern "C" void count() {
    __atomic_add_fetch(&here, 1, __ATOMIC_RELAXED);
    while (__atomic_load_n(&here, __ATOMIC_RELAXED) < 2) {}
    ++n;
}' | ${CXX:-g++} -fsanitize=thread -g1 -shared -fPIC -x c++ - -o "$work/planted.so"
status=0
run -c "
import ctypes, threading
count = ctypes.CDLL('$work/planted.so').count
threads = [threading.Thread(target=count) for _ in range(2)]
for thread in threads: thread.start()
for thread in threads: thread.join()" 2>"$work/planted.txt" || status=$?
if [ $status != 66 ] || ! grep -q "data race" "$work/planted.txt"; then
    echo "expected a report of the planted race, got status $status: $(cat "$work/planted.txt")" >&2
    exit 1
fi
run -m tests.run.thread_stress --seconds "${1:-60}" --threads "${THREADS:-6}" --seed "${SEED:-0}"
