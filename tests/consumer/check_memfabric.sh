#!/bin/bash
# check_memfabric.sh BUILD EXAMPLES WORK: makes the .run package of BUILD, installs it, builds the C
# programs in EXAMPLES against what is installed, runs them and uninstalls; with two versions, into paths
# that cannot be, and damaged.
set -euo pipefail
build=$1 examples=$2 work=$3
tools=$(dirname "$(readlink -f "$0")")/../../tools/memfabric
: "${CC:=cc}" "${CMAKE:=cmake}"
platform=$(uname -m)-linux
unset MEMFABRIC_HYBRID_HOME_PATH

fail() {
  echo "FAILED: $*" >&2
  exit 1
}

# refused SENTENCE COMMAND...: it fails, says so, and not by crashing.
refused() {
  local sentence=$1 said status=0
  shift
  said=$("$@" 2>&1) || status=$?
  [ "$status" = 1 ] || [ "$status" = 2 ] || fail "$* ended with status $status: $said"
  grep -qF -- "$sentence" <<<"$said" || fail "$* does not say '$sentence': $said"
}

# Everything below a folder, one name on a line.
contents() { (cd "$1" && find . -mindepth 1 | sort); }

rm -rf "$work"
mkdir -p "$work"
echo "== the package"
"$CMAKE" --build "$build" --target memfabric_run >"$work/build.log" 2>&1 ||
  fail "memfabric_run: $(tail -n 20 "$work/build.log")"
package=$(tail -n 30 "$work/build.log" | grep -o "$build/mxc-memfabric_hybrid-.*_linux_$(uname -m)\.run" | tail -n 1)
[ -x "$package" ] || fail "there is no package: $(cat "$work/build.log")"
version=$("$package" --version)
[[ $package == *-"${version}"_linux_* ]] || fail "$package has the version $version"
bash "$package" --help | grep -qF -- --install-path= || fail "--help does not help"
bash "$package" --check | grep -qF "is complete" || fail "--check"

echo "== what it refuses"
refused "is not an absolute path" bash "$package" --install-path=relative
refused "--install-path needs a folder" bash "$package" --install-path
refused "there is no option --frobnicate" bash "$package" --frobnicate
: >"$work/file"
refused "is no folder that can be written to" bash "$package" --install-path="$work/file"
refused "is no folder that can be written to" bash "$package" --install-path "$work/file/below"
mkdir -p "$work/foreign/mxc/memfabric_hybrid/latest"
refused "latest is not a link" bash "$package" --install-path="$work/foreign"
[ "$(contents "$work/foreign")" = $'./mxc\n./mxc/memfabric_hybrid\n./mxc/memfabric_hybrid/latest' ] ||
  fail "a refused install left something behind: $(contents "$work/foreign")"
# A byte of the archive, a word of the script, and the end.
size=$(stat -c %s "$package")
cp "$package" "$work/byte.run"
printf 'DAMAGED' | dd of="$work/byte.run" bs=1 seek=$((size - size / 3)) conv=notrunc status=none
LC_ALL=C sed '1,40s/made by HMC/made by cmh/' "$package" >"$work/word.run"
head -c $((size - 1000)) "$package" >"$work/short.run"
for damaged in byte word short; do
  refused "the package is damaged" bash "$work/$damaged.run" --check
  refused "the package is damaged" bash "$work/$damaged.run" --install-path="$work/never"
done
[ ! -e "$work/never" ] || fail "a damaged package installed something"

echo "== install, and an older version beside it"
root="$work/a folder"
home=$root/mxc/memfabric_hybrid
bash "$package" --install-path="$root" >"$work/install.log"
for file in latest set_env.sh "$version/uninstall.sh" "$version/version.info" "$version/$platform/whl" \
  "$version/$platform/include/smem/host/smem_bm.h" "$version/$platform/lib64/libmf_smem.so"; do
  [ -e "$home/$file" ] || fail "$file is missing: $(contents "$root")"
done
grep -qxF "version: $version" "$home/$version/version.info" || fail "version.info"
[ "$(readlink "$home/latest")" = "$version" ] || fail "latest points to $(readlink "$home/latest")"
before=$(contents "$root")

tree=$work/other/mxc/memfabric_hybrid
mkdir -p "$tree"
cp -r "$home/$version" "$tree/0.0.1"
cp "$home/set_env.sh" "$tree"
sed -i "s/^version=.*/version=0.0.1/" "$tree/0.0.1/uninstall.sh"
sed -i "s/^version:.*/version: 0.0.1/" "$tree/0.0.1/version.info"
wheel=$platform/whl/memfabric_hybrid-0.0.1-py3-none-any.whl
: >"$tree/0.0.1/$wheel"
sed -i "s|^uninstall.sh$|$wheel\n&|" "$tree/0.0.1/uninstall.sh"
other=$("$tools/make_run.sh" "$work/other" "$work")
# A python3 that writes down what it is asked for.
mkdir "$work/bin"
printf '#!/bin/sh\necho "$*" >>"%s"\n' "$work/python.log" >"$work/bin/python3"
chmod +x "$work/bin/python3"
(cd "$work" && PATH=$work/bin:$PATH bash "$(basename "$other")" --install-path "$root" >>"$work/install.log")
[ ! -e "$work/python.log" ] || fail "without --with-wheel Python was asked: $(cat "$work/python.log")"
PATH=$work/bin:$PATH bash "$other" --install-path "$root" --with-wheel >>"$work/install.log"
grep -q -- "-m pip install .*--find-links .*/whl memfabric_hybrid$" "$work/python.log" ||
  fail "--with-wheel asked for $(cat "$work/python.log")"
[ "$(readlink "$home/latest")" = 0.0.1 ] || fail "latest did not follow"
[ -f "$home/$version/$platform/lib64/libmf_smem.so" ] || fail "the first version is gone"
bash "$package" --install-path="$root" >>"$work/install.log"
[ "$(readlink "$home/latest")" = "$version" ] || fail "latest did not come back"
echo "mine" >"$home/0.0.1/note"
"$home/0.0.1/uninstall.sh" >>"$work/install.log"
[ "$(contents "$home/0.0.1")" = ./note ] || fail "uninstall left $(contents "$home/0.0.1")"
rm -r "$home/0.0.1"
[ "$(contents "$root")" = "$before" ] || fail "it is not as before: $(contents "$root")"

echo "== programs"
# Nothing that names the place where it was built is left in the library.
library=$home/$version/$platform/lib64/libmf_smem.so
! readelf -d "$library" | grep -E "RPATH|RUNPATH" || fail "the library has a run path"
cd "$work"
before=${LD_LIBRARY_PATH:-}
source "$home/set_env.sh"
source "$home/set_env.sh" # once more changes nothing
[ "$MEMFABRIC_HYBRID_HOME_PATH" = "$home/latest" ] || fail "set_env.sh sets $MEMFABRIC_HYBRID_HOME_PATH"
[ "$LD_LIBRARY_PATH" = "$home/latest/$platform/lib64${before:+:$before}" ] ||
  fail "set_env.sh sets LD_LIBRARY_PATH to $LD_LIBRARY_PATH"
for example in "$examples"/*.c; do
  name=$(basename "$example" .c)
  "$CC" -std=c99 -Wall -Wextra -Werror -I"$MEMFABRIC_HYBRID_HOME_PATH/$platform/include/smem/host" "$example" \
    -o "$work/$name" -L"$MEMFABRIC_HYBRID_HOME_PATH/$platform/lib64" -lmf_smem
  libraries=$(ldd "$work/$name")
  grep -qF "$home/latest/$platform/lib64/libmf_smem.so" <<<"$libraries" ||
    fail "$name does not use the installed library: $libraries"
  ! grep -vF "$home/" <<<"$libraries" | grep -F "$build/" || fail "$name needs something of the build"
  port=$(python3 -c 'import socket; s = socket.create_server(("127.0.0.1", 0)); print(s.getsockname()[1])')
  timeout 120 "$work/$name" "tcp://127.0.0.1:$port" 2 | tee "$work/$name.log"
  grep -qxF "2 ranks, 0 failed" "$work/$name.log" || fail "$name"
done

echo "== uninstall"
"$home/latest/uninstall.sh" | grep -qF "memfabric_hybrid $version was removed" || fail "uninstall.sh"
[ -z "$(contents "$root")" ] || fail "uninstall left $(contents "$root")"
