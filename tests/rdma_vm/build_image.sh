#!/bin/bash
# build_image.sh: makes the kernel and the first file system of the RDMA test machine, and prints the
# paths of the two. The kernel is the distribution's own package, fetched into a cache and
# unpacked there; nothing is installed. What is in the cache and up to date is not made again.
#
# HMC_RDMA_VM_KERNEL names another kernel package. It needs soft-RoCE and 9p, which the -cloud-
# flavour leaves out; 6.1 is quicker here than 6.12.
set -euo pipefail
export PATH=$PATH:/usr/sbin:/sbin # depmod and modprobe, which ordinary users do not look for

here=$(dirname "$(readlink -f "$0")")
cache=${XDG_CACHE_HOME:-$HOME/.cache}/hmc/rdma-vm
wanted=${HMC_RDMA_VM_KERNEL:-linux-image-amd64}

# What the guest loads. crc32-pclmul is not among them: emulating its instruction takes longer than
# looking the checksum up in the tables of crc32_generic.
modules=(
  virtio_pci virtio_net 9p 9pnet_virtio overlay
  dummy veth sch_netem
  crc32_generic crc32c_generic libcrc32c
  ib_uverbs rdma_ucm rdma_rxe
)
# What init uses of busybox.
tools=(sh mount mkdir insmod ip cat chroot dmesg grep ln poweroff sync)

fail() {
  echo "build_image: $1" >&2
  exit 1
}

# The package with the version in its name that the one without depends on.
kernel_package() {
  local name
  name=$(apt-cache depends "$wanted" 2>/dev/null |
    awk '/Depends: linux-image-[0-9]/ { print $2; exit }')
  echo "${name:-$wanted}"
}

# add_module TREE VERSION NAME FOLDER: copies a module and all that it needs, and writes them down in
# the order in which they can be loaded. A module that is built into the kernel needs nothing.
add_module() {
  local file name
  while read -r file; do
    name=$(basename "${file%.xz}")
    grep -qxs "$name" "$4/order" && continue
    case $file in
      *.xz) xz -dc "$file" >"$4/$name" ;;
      *) cp "$file" "$4/$name" ;;
    esac
    strip --strip-debug "$4/$name"
    echo "$name" >>"$4/order"
  done < <(modprobe -d "$1" -S "$2" --show-depends "$3" 2>/dev/null | awk '$1 == "insmod" { print $2 }')
}

# unpack_kernel PACKAGE VERSION FOLDER: FOLDER/vmlinux and FOLDER/modules.
unpack_kernel() {
  local tree=$work/tree module
  (cd "$work" && apt-get download "$1" >apt.log 2>&1) ||
    fail "apt-get download $1 failed: $(tail -1 "$work/apt.log") (apt-get update may help)"
  dpkg -x "$work"/*.deb "$tree"
  "$here/vmlinux.py" "$tree/boot/vmlinuz-$2" "$3/vmlinux"
  depmod -b "$tree" "$2"
  mkdir "$3/modules"
  for module in "${modules[@]}"; do add_module "$tree" "$2" "$module" "$3/modules"; done
  grep -qx rdma_rxe.ko "$3/modules/order" || fail "$1 has no soft-RoCE (rdma_rxe)"
}

# pack_first_files MODULES FILE: the first file system, of the modules, busybox and init.
pack_first_files() {
  local root=$work/root tool
  mkdir -p "$root"/{bin,lib/modules,proc,sys,dev,host,writable,new}
  cp "$(command -v busybox)" "$root/bin/busybox"
  for tool in "${tools[@]}"; do ln -s busybox "$root/bin/$tool"; done
  cp "$1"/* "$root/lib/modules/"
  install -m 755 "$here/init" "$root/init"
  (cd "$root" && find . | cpio -o -H newc --quiet) >"$2"
}

# What the files were made from, in a few letters.
stamp() { cat "$@" | sha256sum | cut -c1-12; }

package=$(kernel_package)
version=${package#linux-image-}
image=$cache/$version-$(stamp "$here/build_image.sh" "$here/vmlinux.py")
first_files=$image/initrd-$(stamp "$here/init").img
mkdir -p "$cache"
work=$(mktemp -d "$cache/making.XXXXXX")
trap 'rm -rf "$work"' EXIT
# Both are made aside and moved into place whole: another run may make them at the same time.
if [ ! -d "$image" ]; then
  mkdir "$work/image"
  unpack_kernel "$package" "$version" "$work/image"
  rm -rf "$cache/$version"-*
  mv -T "$work/image" "$image" || [ -d "$image" ] || fail "cannot write $image"
fi
if [ ! -e "$first_files" ]; then
  pack_first_files "$image/modules" "$work/initrd.img"
  mv "$work/initrd.img" "$first_files"
fi
echo "$image/vmlinux"
echo "$first_files"
