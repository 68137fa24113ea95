#!/bin/bash
# build_static.sh SOURCE WORK: the static library the way the manual builds it, then check_install.
set -euo pipefail
source=$1 work=$2
: "${CXX:=c++}" "${CMAKE:=cmake}"
mkdir -p "$work/build"
cd "$work/build"
"$CMAKE" -G "Unix Makefiles" "$source" -DBUILD_STATIC_LIB=ON -DCMAKE_CXX_COMPILER="$CXX" \
  -DCMAKE_CXX_COMPILER_LAUNCHER="${LAUNCHER:-}"
make -j"$(nproc)"
exec "$(dirname "$(readlink -f "$0")")/check_install.sh" static "$work/build" "$work"
