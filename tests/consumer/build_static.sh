#!/bin/bash
# build_static.sh SOURCE WORK: the static library the way the manual builds it, then check_install.
set -euo pipefail
source=$1 work=$2
: "${CXX:=c++}" "${CMAKE:=cmake}"

# A copy, so that the compiler cache sees the relative paths of python_wheel_test, which compiled the
# same files.
copied=(CMakeLists.txt cmake include src tools apps python)
mkdir -p "$work/HMC/build"
cd "$work/HMC"
rm -rf "${copied[@]}"
cp -rp "${copied[@]/#/$source/}" .
export CCACHE_BASEDIR=$work
unset CCACHE_DISABLE
# Not optimised, as in python_wheel_test: this is about what is built, not about its speed.
printf '#!/bin/sh\nexec %s "$@" -O0\n' "$(command -v ccache || echo env)" >"$work/launcher"
chmod +x "$work/launcher"

cd build
"$CMAKE" -G "Unix Makefiles" .. -DBUILD_STATIC_LIB=ON -DCMAKE_CXX_COMPILER="$CXX" \
  -DCMAKE_CXX_COMPILER_LAUNCHER="$work/launcher"
make -j"$(nproc)"
exec "$(dirname "$(readlink -f "$0")")/check_install.sh" static "$work/HMC/build" "$work"
