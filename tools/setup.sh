#!/bin/bash
# setup.sh [tests|checks|docs|rdma|wheel]: installs what the build needs from the distribution's
# packages, with `tests` also what all the tests need, and with the others what `make check`,
# `make docs`, `make test-rdma` and `make wheel` need. Touches nothing when all of it is there.
set -euo pipefail

packages=(
  make g++ cmake ninja-build pkg-config python3
  libssl-dev libfmt-dev libspdlog-dev
  libibverbs-dev libucx-dev libcurl4-openssl-dev
  libcli11-dev nlohmann-json3-dev libgtest-dev libgmock-dev
  python3-dev pybind11-dev
  iproute2
)
# Installed where the distribution has them; without them some tests skip themselves or take longer.
wanted=()
case ${1:-} in
  "") ;;
  tests)
    packages+=(
      git
      python3-pytest python3-numpy python3-build python3-venv python3-pip
    )
    wanted+=(
      ccache clang libclang-rt-dev lld mypy python3-matplotlib python3-torch etcd-server openssl openmpi-bin zsh fish
    )
    ;;
  checks) packages+=(clang-format clang-tidy) ;;
  docs) packages+=(doxygen furo python3-breathe python3-myst-parser python3-sphinx) ;;
  wheel) packages+=(python3-venv python3-pip patchelf) ;;
  rdma)
    packages+=(
      qemu-system-x86 busybox-static cpio kmod xz-utils zstd binutils
      rdma-core ibverbs-providers ibverbs-utils perftest ucx-utils
    )
    ;;
  *) echo "usage: tools/setup.sh [tests|checks|docs|rdma|wheel]" >&2; exit 2 ;;
esac

give_up() {
  echo "setup: $1 Please install these Debian packages, or your system's equivalents, by hand:" >&2
  echo "  $2" >&2
  echo "With everything in place, \`make SETUP=true ...\` leaves this step out." >&2
  exit 1
}

command -v dpkg-query >/dev/null && command -v apt-get >/dev/null ||
  give_up "this system has no apt." "${packages[*]}"

# Asks once: starting dpkg-query for each package takes seconds on a busy machine.
there=$(dpkg-query -W -f ' ${Package}=${db:Status-Status} ' "${packages[@]}" "${wanted[@]}" 2>/dev/null) || true
installed() { [[ $there == *" $1=installed "* ]]; }
missing=() extra=()
for package in "${packages[@]}"; do installed "$package" || missing+=("$package"); done
for package in "${wanted[@]}"; do installed "$package" || extra+=("$package"); done
[ $((${#missing[@]} + ${#extra[@]})) -gt 0 ] || exit 0

as_root=()
if [ "$(id -u)" != 0 ]; then
  command -v sudo >/dev/null || give_up "not root, and there is no sudo." "${missing[*]}"
  as_root=(sudo)
fi
# Answers every question of a package's scripts with its default.
as_root+=(env DEBIAN_FRONTEND=noninteractive NEEDRESTART_MODE=a NEEDRESTART_SUSPEND=1)
apt() { "${as_root[@]}" apt-get -q -o DPkg::Lock::Timeout=300 "$@"; }

# Lists that are old still serve where the mirror cannot be reached but a cache can.
[ ${#missing[@]} -eq 0 ] || apt update ||
  echo "setup: apt-get update failed, trying with the package lists that are there" >&2
for package in "${extra[@]}"; do
  if apt-cache show "$package" >/dev/null 2>&1; then
    missing+=("$package")
  else
    echo "setup: apt has no $package here; the tests that need it skip themselves"
  fi
done
[ ${#missing[@]} -gt 0 ] || exit 0
echo "setup: installing ${missing[*]}"
apt install -y --no-install-recommends "${missing[@]}" ||
  give_up "apt-get could not install them all." "${missing[*]}"

# Its package starts a server for the whole machine; the tests start their own.
if [[ " ${missing[*]} " == *" etcd-server "* ]]; then
  if [ -d /run/systemd/system ]; then
    "${as_root[@]}" systemctl disable --now etcd
  else
    "${as_root[@]}" service etcd stop
  fi >/dev/null 2>&1 || echo "setup: etcd may be running as a service; the tests do not need it"
fi
