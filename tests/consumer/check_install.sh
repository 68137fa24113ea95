#!/bin/bash
# check_install.sh shared|static BUILD WORK: installs BUILD, then compiles and runs program/ against
# the installed files alone, once through find_package and once through pkg-config.
set -euo pipefail
kind=$1 build=$2 work=$3
program=$(dirname "$(readlink -f "$0")")/program
: "${CXX:=c++}" "${CMAKE:=cmake}"

fail() {
  echo "FAILED: $*" >&2
  exit 1
}

rm -rf "$work/installed" "$work/prefix" "$work/cmake"
mkdir -p "$work"
"$CMAKE" --install "$build" --prefix "$work/installed" >"$work/install.log" ||
  fail "cmake --install, see $work/install.log"
# An installed tree may be moved: nothing in it may name the place it was installed to.
mv "$work/installed" "$work/prefix"

# run BINARY: it works, and uses the kind of library that this test is about.
run() {
  local libraries
  libraries=$(ldd "$1")
  case $kind in
    shared) grep -F libhmc.so.0.1 <<<"$libraries" | grep -qF "$work/prefix/" ||
      fail "$1 does not use the installed libhmc.so.0.1: $libraries" ;;
    static) ! grep -q libhmc <<<"$libraries" || fail "$1 uses a libhmc.so: $libraries" ;;
  esac
  "$1" | grep "consumer works" || fail "$1 did not run"
}

# A build without tools (HMC_BUILD_TOOLS=OFF) installs no command.
if [ -e "$work/prefix/bin/hmc" ]; then
  echo "== the installed command"
  "$work/prefix/bin/hmc" --help >/dev/null || fail "the installed hmc command does not start"
  for file in man/man1/hmc.1 bash-completion/completions/hmc zsh/site-functions/_hmc \
    fish/vendor_completions.d/hmc.fish; do
    [ -s "$work/prefix/share/$file" ] || fail "share/$file is not installed"
  done
fi

# protected FILE: nothing on its stack runs, and its tables of addresses are read-only once it has started.
protected() {
  local layout imports
  layout=$(readelf -ldW "$1")
  imports=$(nm -D "$1")
  grep -q GNU_RELRO <<<"$layout" || fail "$1 was linked without -z relro"
  grep -qE 'BIND_NOW|Flags:.* NOW' <<<"$layout" || fail "$1 was linked without -z now"
  grep -qE 'GNU_STACK.* RW ' <<<"$layout" || fail "$1 has a stack that can be executed"
  grep -q __stack_chk_fail <<<"$imports" || fail "$1 was compiled without -fstack-protector-strong"
  # A build that is not optimised has no such functions, as what the static one did not borrow.
  if [ "$kind" = static ]; then return; fi
  if grep -qE '^CMAKE_BUILD_TYPE:.*=Debug$' "$build/CMakeCache.txt" &&
    ! grep -q '^CMAKE_CXX_FLAGS_DEBUG:.*-O[1-9gs]' "$build/CMakeCache.txt"; then return; fi
  grep -qE ' U __[a-z]+_chk@' <<<"$imports" ||
    fail "$1 was compiled without _FORTIFY_SOURCE"
}
if grep -q '^HMC_HARDENING:BOOL=ON$' "$build/CMakeCache.txt"; then
  echo "== protections of the compiler and the linker"
  for file in "$work"/prefix/bin/hmc "$work"/prefix/lib*/lib*.so; do
    if [ -e "$file" ]; then protected "$file"; fi
  done
fi

if [ "$kind" = shared ]; then
  echo "== what the library exports"
  foreign=$(nm -DC --defined-only "$work"/prefix/lib*/libhmc.so | cut -d' ' -f3- | grep -v 'hmc::' || true)
  [ -z "$foreign" ] || fail "it exports what is not in namespace hmc: $foreign"
fi

echo "== a sentence for a compiler that is told an older language"
echo '#include <hmc/node.h>' >"$work/old.cc"
! "$CXX" -std=c++14 -fsyntax-only -isystem "$work/prefix/include" "$work/old.cc" 2>"$work/old.log" ||
  fail "hmc/node.h compiles as C++14: say so in the documents"
grep -q 'need C++17: compile with -std=c++17' "$work/old.log" || fail "see $work/old.log"

echo "== a warning for a handle that is dropped"
cat >"$work/dropped.cc" <<'END'
#include <hmc/node.h>
void drop(hmc::Node& node) { node.allocate("kv", 4096); }
END
! "$CXX" -std=c++17 -Werror -fsyntax-only -isystem "$work/prefix/include" "$work/dropped.cc" 2>"$work/dropped.log" ||
  fail "a region that is dropped at once compiles without a warning"
grep -q 'unused-result' "$work/dropped.log" || fail "see $work/dropped.log"

echo "== $kind library through find_package"
"$CMAKE" -S "$program" -B "$work/cmake" -DCMAKE_PREFIX_PATH="$work/prefix" \
  -DCMAKE_CXX_COMPILER="$CXX" >"$work/configure.log" || fail "configure, see $work/configure.log"
grep -qF "hmc_DIR:PATH=$work/prefix/" "$work/cmake/CMakeCache.txt" ||
  fail "find_package found another hmc: $(grep hmc_DIR "$work/cmake/CMakeCache.txt")"
"$CMAKE" --build "$work/cmake"
run "$work/cmake/consumer"
run "$work/cmake/modern_consumer"

echo "== $kind library through pkg-config"
PKG_CONFIG_PATH=$(dirname "$(find "$work/prefix" -name hmc.pc)")
export PKG_CONFIG_PATH
static=()
[ "$kind" = shared ] || static=(--static)
read -ra compile <<<"$(pkg-config --cflags hmc)"
read -ra link <<<"$(pkg-config "${static[@]}" --libs hmc)"
"$CXX" -std=c++14 -Wall -Wextra -Wpedantic -Werror "${compile[@]}" "$program/consumer.cc" \
  -o "$work/consumer" "${link[@]}" -Wl,-rpath,"$(pkg-config --variable=libdir hmc)"
if [ "$kind" = shared ]; then
  # ldd prints the run path as it is in the file, with the ".." of the .pc file in it.
  LD_LIBRARY_PATH=$(dirname "$(find "$work/prefix" -name 'libhmc.so')")
  export LD_LIBRARY_PATH
fi
run "$work/consumer"
