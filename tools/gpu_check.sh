#!/bin/bash
# Builds, tests and benchmarks on a machine that is not set up by tools/setup.sh: one with a GPU, say,
# and no network.
# Usage: tools/gpu_check.sh [FOLDER]    the results go to FOLDER, build/check by default
set -euo pipefail
cd "$(dirname "$(readlink -f "$0")")/.."
out=$(mkdir -p "${1:-build/check}" && cd "${1:-build/check}" && pwd)

cmake -S . -B build/gpu -G Ninja -DCMAKE_BUILD_TYPE=Release -DHMC_BUILD_TESTS=ON > "$out/configure.txt"
cmake --build build/gpu -j "$(nproc)" > "$out/build.txt" || { tail -40 "$out/build.txt"; exit 1; }
tools/run_tests.py --without slow build/gpu > "$out/tests.txt" 2>&1 || echo "some tests failed: see tests.txt"
tail -3 "$out/tests.txt"
for i in 1 2 3; do
  echo "\$ hmc bench --targets --seconds 0.4"
  build/gpu/tools/hmc bench --targets --seconds 0.4 || true
done > "$out/targets.txt"
build/gpu/tools/hmc bench --verify --csv > "$out/sweep.csv"
grep -A 30 '^targets' "$out/targets.txt"
