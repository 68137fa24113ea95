#!/bin/bash
# build_static.sh SOURCE WORK COMPILED: the static library the way the manual builds it, then check_install.
# What the build folder COMPILED has compiled already is taken from there.
set -euo pipefail
source=$1 work=$2 compiled=$3
: "${CXX:=c++}" "${CMAKE:=cmake}"

# A copy, because the manual builds in the folder build of the project.
copied=(CMakeLists.txt cmake include src tools apps python)
mkdir -p "$work/HMC/build"
cd "$work/HMC"
rm -rf "${copied[@]}"
cp -rp "${copied[@]/#/$source/}" .

cd build
"$CMAKE" -G "Unix Makefiles" .. -DBUILD_STATIC_LIB=ON -DCMAKE_CXX_COMPILER="$CXX" \
  -DCMAKE_CXX_COMPILER_LAUNCHER="$source/tests/borrow_objects.py;$compiled"
make -j"$(nproc)"
exec "$(dirname "$(readlink -f "$0")")/check_install.sh" static "$work/HMC/build" "$work"
