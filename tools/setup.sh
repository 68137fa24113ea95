#!/bin/bash
# setup.sh [checks|rdma]: installs what the build and the tests need from the distribution's packages,
# with `checks` also what `make check` needs, with `rdma` what `make test-rdma` needs. Touches nothing
# when all of it is there.
set -euo pipefail

packages=(
  make g++ cmake ninja-build pkg-config python3
  libasio-dev libssl-dev libfmt-dev libspdlog-dev
  libibverbs-dev libucx-dev
  libcli11-dev nlohmann-json3-dev libgtest-dev libgmock-dev
  python3-dev pybind11-dev
  iproute2
)
case ${1:-} in
  "") ;;
  checks) packages+=(clang-format clang-tidy) ;;
  rdma)
    packages+=(
      qemu-system-x86 busybox-static cpio kmod xz-utils zstd binutils
      rdma-core ibverbs-providers ibverbs-utils perftest ucx-utils
    )
    ;;
  *) echo "usage: tools/setup.sh [checks|rdma]" >&2; exit 2 ;;
esac

give_up() {
  echo "setup: $1 Please install these Debian packages, or your system's equivalents, by hand:" >&2
  echo "  $2" >&2
  echo "With everything in place, \`make SETUP=true ...\` leaves this step out." >&2
  exit 1
}

command -v dpkg-query >/dev/null && command -v apt-get >/dev/null ||
  give_up "this system has no apt." "${packages[*]}"

missing=()
for package in "${packages[@]}"; do
  [[ $(dpkg-query -W -f '${db:Status-Status}' "$package" 2>/dev/null) == installed* ]] ||
    missing+=("$package")
done
[ ${#missing[@]} -gt 0 ] || exit 0

as_root=()
if [ "$(id -u)" != 0 ]; then
  command -v sudo >/dev/null || give_up "not root, and there is no sudo." "${missing[*]}"
  as_root=(sudo)
fi
# Answers every question of a package's scripts with its default.
as_root+=(env DEBIAN_FRONTEND=noninteractive NEEDRESTART_MODE=a NEEDRESTART_SUSPEND=1)
apt() { "${as_root[@]}" apt-get -q -o DPkg::Lock::Timeout=300 "$@"; }

echo "setup: installing ${missing[*]}"
# Lists that are old still serve where the mirror cannot be reached but a cache can.
apt update || echo "setup: apt-get update failed, trying with the package lists that are there" >&2
apt install -y --no-install-recommends "${missing[@]}" ||
  give_up "apt-get could not install them all." "${missing[*]}"
