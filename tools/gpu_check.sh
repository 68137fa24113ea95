#!/bin/bash
# Builds, tests and benchmarks on a machine with CUDA that has no network and was not set up by
# tools/setup.sh, in under ten minutes.
# Usage: tools/gpu_check.sh --pack      where the packages are installed: copies the headers that
#                                       such a machine lacks to build/deps, which travels with the
#                                       tree. PYBIND11_DIR, $(python3 -m pybind11 --cmakedir), adds
#                                       pybind11.
#        tools/gpu_check.sh [FOLDER]    there: the report is FOLDER/report.md, build/check by default
set -uo pipefail
cd "$(dirname "$(readlink -f "$0")")/.." || exit 1
deps=$PWD/build/deps

if [ "${1:-}" = --pack ]; then
  set -e
  rm -rf "$deps"
  mkdir -p "$deps/include" "$deps/share/cmake"
  cp -r /usr/include/CLI /usr/include/nlohmann "$deps/include"
  cp -r /usr/share/cmake/CLI11 /usr/share/cmake/nlohmann_json "$deps/share/cmake"
  if [ -n "${PYBIND11_DIR:-}" ]; then
    mkdir "$deps/pybind11"
    cp -r "$PYBIND11_DIR"/../../../{include,share} "$deps/pybind11"
  fi
  du -sh "$deps"
  exit
fi

out=$(mkdir -p "${1:-build/check}" && cd "${1:-build/check}" && pwd) || exit 1
rm -f "$out"/*.txt "$out/report.md"
build=build/gpu
hmc=$build/tools/hmc
limit=580  # seconds, for everything
failed=0
table="| step | result | seconds |
|---|---|---|"

row() { table+=$'\n'"| $1 | $2 | $3 |"; }

# step NAME SECONDS COMMAND...: its output goes to NAME.txt. A step that fails does not stop the rest.
step() {
  local name=$1 most=$2 began=$SECONDS left=$((limit - SECONDS)) result
  shift 2
  if [ "$left" -lt 5 ]; then
    row "$name" "not run: no time left" 0
    failed=1
    return 1
  fi
  echo "\$ $*" > "$out/$name.txt"
  timeout -k 5 $((most < left ? most : left)) "$@" >> "$out/$name.txt" 2>&1
  local status=$?
  case $status in
    0) result=pass ;;
    124 | 137) result="FAIL: took too long" ;;
    *) result="FAIL: exit status $status" ;;
  esac
  local met
  met=$(grep -oE '[0-9]+ of [0-9]+ met$|[0-9]+ passed, [0-9]+ skipped' "$out/$name.txt" | tail -1)
  # A program that ends well although it missed targets has not passed.
  if [ $status = 0 ] && [[ $met =~ ^([0-9]+)\ of\ ([0-9]+) ]] &&
    [ "${BASH_REMATCH[1]}" != "${BASH_REMATCH[2]}" ]; then
    result=MISSED
    failed=1
  fi
  result+=${met:+ ($met)}
  row "$name" "$result" $((SECONDS - began))
  echo "$name: $result"
  [ $status = 0 ] || failed=1
  return $status
}

# The name of a ctest test, which must exist.
ctestStep() { step "$1" "$2" ctest --test-dir $build --no-tests=error --output-on-failure -R "^$1\$"; }

# Where the tree and the folder lie says nothing to a reader.
code() { printf '\n## %s\n\n```\n' "$1"; sed "s|$out|FOLDER|g; s|$PWD|.|g" "$2"; printf '```\n'; }

report() {
  echo "# GPU check"
  echo
  echo "- date: $(date -u '+%Y-%m-%d %H:%M UTC')"
  nvidia-smi -L 2>&1 | sed 's/ (UUID.*//; s/^/- GPU: /'
  echo "- driver: $(nvidia-smi --query-gpu=driver_version --format=csv,noheader 2>&1 | head -1)"
  echo "- CUDA: $(nvidia-smi 2> /dev/null | grep -o 'CUDA Version: *[0-9.]*' | sed 's/.* //')"
  echo "- CPU: $(grep -m 1 'model name' /proc/cpuinfo | sed 's/.*: //'), $(nproc) cores"
  echo "- command: \`tools/gpu_check.sh${1:+ FOLDER}\`"
  printf '\n%s\n' "$table"
  for name in info targets_1 targets_2 targets_3 pool_targets python_targets ipc_table; do
    [ -f "$out/$name.txt" ] && code "$name" "$out/$name.txt"
  done
  for log in "$out"/*.txt; do
    name=$(basename "$log" .txt)
    case $table in *"| $name | FAIL"*) ;; *) continue ;; esac
    case $name in info | targets_* | pool_targets | python_targets | ipc_table) continue ;; esac
    tail -40 "$log" > "$out/.end" && code "the end of $name, which failed" "$out/.end"
  done
  rm -f "$out/.end"
}

configure=(cmake -S . -B "$build" -G Ninja -DCMAKE_BUILD_TYPE=Release -DHMC_BUILD_TESTS=ON
  "-DCMAKE_PREFIX_PATH=$deps;$deps/pybind11")
step configure 60 "${configure[@]}" -DBUILD_PYTHON_MOD=ON ||
  step configure_without_python 60 "${configure[@]}" -DBUILD_PYTHON_MOD=OFF
step build 330 cmake --build $build -j "$(nproc)" -- -k 0
if grep -q '^HMC_CUDA_INCLUDE:.*NOTFOUND' $build/CMakeCache.txt; then
  row cuda_api_test "skipped: cuda.h is not installed" 0
else
  ctestStep cuda_api_test 30
fi
ctestStep cuda_contract_test 60
ctestStep cuda_fake_contract_test 60
ctestStep ipc_contract_test 90
ctestStep tcp_contract_test 90
step pool_device 90 $build/tests/pool/pool_device_test
step device_memory 90 $build/tests/process/device_memory_test --gtest_filter=-Rdma/*
nvcc=$(command -v nvcc || ls /usr/local/cuda/bin/nvcc 2> /dev/null)
if [ -n "$nvcc" ]; then
  step shm_kernels_build 90 "$nvcc" -std=c++17 -O2 -arch=native -Iinclude/smem/host -Iinclude/smem/device \
    tests/gpu/shm_kernels.cu -o $build/shm_kernels -L$build/lib -lmf_smem -Xlinker "-rpath=$PWD/$build/lib" &&
    for ranks in 2 4; do step shm_kernels_$ranks 60 $build/shm_kernels $ranks; done
else
  row shm_kernels "skipped: nvcc is not installed" 0
fi
if [ -d tests/gpu ]; then
  step python_gpu 240 env PYTHONPATH=$build/python:$build/memfabric PYTHONDONTWRITEBYTECODE=1 HMC_BUILD="$PWD/$build" \
    python3 -m pytest -q -rs -p no:cacheprovider tests/gpu
fi
if command -v compute-sanitizer > /dev/null; then
  step memcheck 90 compute-sanitizer --tool memcheck --report-api-errors no --error-exitcode 1 \
    $build/tests/contract/cuda_contract_test
else
  row memcheck "skipped: compute-sanitizer is not installed" 0
fi
step info 20 $hmc info
for i in 1 2 3; do step targets_$i 60 $hmc bench --targets --memory cuda:0; done
step pool_targets 60 $hmc bench pool --memory cuda:0
step python_targets 60 env PYTHONPATH=$build/python python3 -m hmc bench --python --memory cuda:0
uhm=$build/apps/uhm_app
for mode in uhm rdma_cpu g2h2g serial ucx pipeline; do
  if [ $mode = ucx ] && ! ldconfig -p | grep -q libucp; then
    row uhm_ucx "skipped: UCX is not installed" 0
    continue
  fi
  step uhm_$mode 60 bash -c "$uhm/uhm_server --mode $mode & $uhm/uhm_client --mode $mode --csv $out/uhm.csv && wait \$!"
done
step ipc_table 90 $hmc bench --memory cuda:0 --peer-memory cuda:0 --transport ipc --verify
report "$@" > "$out/report.md"
echo "the report is $out/report.md"
exit $failed
