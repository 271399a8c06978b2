#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# `make dry-run`: adds throw-away native operators with GPU kernels, tests them, prints the touched files, and removes them. CONTRIBUTING.md ("Add an operator") lists these files.
set -eu
here=$(cd "$(dirname "$0")" && pwd)
cd "$here/../../.."
if [ -n "$(git status --porcelain -- src docs)" ]; then
  echo "expected no changes in src/ and docs/, which the dry run could not distinguish from its own; commit them first" >&2
  exit 1
fi
names="reverse_bits keep_above"
by_hand() {
  for name in $names; do
    echo "src/stoker/ops/generic/$name.py"
    echo "src/stoker/native/kernels/$name.cpp"
    echo "src/stoker/native/device/own_$(echo "$name" | tr -d _).cuh"
  done
}
remove() {
  for file in $(by_hand); do rm -f "$file"; done
  for name in $names; do rm -f "docs/operators/throwaway_$name.md"; done
  git checkout -q -- src docs
  rm -f .venv/.package  # the installed package has the operators
}
trap remove EXIT
trap 'exit 1' INT TERM
for file in $(by_hand); do cp "$here/$(basename "$file")" "$file"; done
make -s generate
.venv/bin/python -m mypy --no-error-summary
.venv/bin/python -m pytest -q tests/ops/test_operators.py tests/cuda/test_forms.py -k "reverse_bits or keep_above"
.venv/bin/python -m pytest -q -p no:cacheprovider --rootdir . "$here/check_on_gpu.py"
echo "touched, the first three of each by hand:"
by_hand
by_hand > "$here/.by_hand"
git status --porcelain -- src docs | cut -c4- | grep -v -x -F -f "$here/.by_hand" || true
rm -f "$here/.by_hand"
