#!/bin/sh
# memfabric_hybrid @version@ for @arch@, of HMC: installs itself. What follows the last line of this
# script is a tar archive.
checksum=@checksum@
set -eu

package=${0##*/}
root=/usr/local
root_given=no
wheel=no
action=install

help() {
  cat <<END
memfabric_hybrid @version@ for Linux on @arch@, made by HMC

usage: bash $package [options]

  --install-path=DIR  install into DIR/mxc/memfabric_hybrid; an absolute path, by default $root
  --with-wheel        also install the Python package, for the python3 that is found first
  --check             only check that the package is complete
  --version           print the version
  --help              print this

Afterwards: source DIR/mxc/memfabric_hybrid/set_env.sh
To remove it: DIR/mxc/memfabric_hybrid/@version@/uninstall.sh
END
}

fail() {
  echo "$package: $1" >&2
  exit "${2:-1}"
}

while [ $# -gt 0 ]; do
  case $1 in
    --install-path=*) root=${1#*=} root_given=yes ;;
    --install-path)
      [ $# -gt 1 ] || fail "--install-path needs a folder: --install-path=/opt" 2
      shift
      root=$1 root_given=yes
      ;;
    --with-wheel) wheel=yes ;;
    --check) action=check ;;
    --version) action=version ;;
    --help | -h) action=help ;;
    *) fail "there is no option $1; --help lists them" 2 ;;
  esac
  shift
done

# Everything but the line that has the checksum: that is the fourth.
check() {
  command -v sha256sum >/dev/null || fail "sha256sum is missing: install coreutils"
  found=$({ head -n 3 -- "$0"; tail -n +5 -- "$0"; } | sha256sum)
  [ "${found%% *}" = "$checksum" ] ||
    fail "the package is damaged: its checksum is ${found%% *}, not $checksum; fetch it again"
}

case $action in
  help) help; exit 0 ;;
  version) echo "@version@"; exit 0 ;;
  check) check; echo "$package is complete"; exit 0 ;;
esac

case $root in
  /*) ;;
  *) fail "--install-path=$root is not an absolute path: try --install-path=$(pwd)/$root" 2 ;;
esac
[ "$(uname -s)-$(uname -m)" = Linux-@arch@ ] ||
  fail "this package is for Linux on @arch@, and this is $(uname -s) on $(uname -m)"
check
umask 022
mkdir -p -- "$root" 2>/dev/null || true
[ -d "$root" ] && [ -w "$root" ] || {
  [ "$root_given" = yes ] || fail "$root cannot be written to: run this as root, or name a folder of yours with --install-path"
  fail "$root is no folder that can be written to: name another with --install-path, or run this as root"
}
root=$(CDPATH='' cd -- "$root" && pwd -P)
home=${root%/}/mxc/memfabric_hybrid
mkdir -p -- "$home" 2>/dev/null && [ -w "$home" ] || fail "$home cannot be written to: run this as root"
[ ! -e "$home/latest" ] || [ -h "$home/latest" ] ||
  fail "$home/latest is not a link, so that it was not made by a package like this: nothing was installed"
[ ! -e "$home/@version@" ] || [ -f "$home/@version@/uninstall.sh" ] ||
  fail "$home/@version@ was not made by a package like this: nothing was installed"

# Unpacked beside its place, so that only renaming is left to do.
stage=$(mktemp -d "$home/.install.XXXXXX")
trap 'rm -rf -- "$stage"' EXIT
trap 'exit 1' HUP INT TERM
tail -n +@payload@ -- "$0" | tar -xzf - -C "$stage" --no-same-owner ||
  fail "it could not be unpacked into $home: is there room?"
if [ -e "$home/@version@" ]; then sh "$home/@version@/uninstall.sh" --keep-shared; fi
if [ -e "$home/@version@" ]; then
  cp -a -- "$stage/@version@/." "$home/@version@/"
else
  mv -- "$stage/@version@" "$home/@version@"
fi
mv -f -- "$stage/set_env.sh" "$home/set_env.sh"
ln -s "@version@" "$stage/latest"
mv -fT -- "$stage/latest" "$home/latest"
echo "memfabric_hybrid @version@ is in $home/@version@"

missing=$(ldd "$home/@version@/@arch@-linux/lib64/libmf_smem.so" 2>/dev/null |
  sed -n 's/^[[:space:]]*\([^ ]*\) => not found.*/\1/p' | tr '\n' ' ')
[ -z "$missing" ] ||
  echo "$package: libmf_smem.so needs ${missing% }, which this host lacks: install the packages that have them" >&2

if [ "$wheel" = yes ]; then
  whl=$home/@version@/@arch@-linux/whl
  python3 -c 'import sys; sys.exit(sys.version_info < (3, 8))' 2>/dev/null ||
    fail "--with-wheel needs python3, 3.8 or newer; all the rest is installed"
  python3 -m pip --version >/dev/null 2>&1 ||
    fail "--with-wheel needs pip for python3: install python3-pip; all the rest is installed"
  names=$(find "$whl" -name '*.whl' | sed 's,.*/,,; s,-.*,,' | sort -u)
  [ -n "$names" ] || fail "this package has no wheel; all the rest is installed"
  for name in $names; do
    python3 -m pip install --no-index --no-deps --force-reinstall --find-links "$whl" "$name" ||
      fail "pip did not install $name (see above); all the rest is installed"
  done
fi
echo "source $home/set_env.sh to use it"
exit 0
