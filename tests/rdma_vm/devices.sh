# shellcheck shell=bash disable=SC1091
# Sourced in the guest: RDMA devices on the network devices that are there.

# mapped_gid 10.8.0.1: the GID of RoCE v2 for that IPv4 address, as the kernel writes it.
mapped_gid() {
  # shellcheck disable=SC2086 # four words are wanted
  printf '0000:0000:0000:0000:0000:ffff:%02x%02x:%02x%02x' ${1//./ }
}

# await_gid DEVICE ADDRESS: the GID of the address appears some moments after the device or the link
# came up. Without it nothing reaches the device.
await_gid() {
  local want gid file end=$((SECONDS + 20))
  want=$(mapped_gid "$2")
  until [ $SECONDS -gt $end ]; do
    for file in /sys/class/infiniband/"$1"/ports/1/gids/*; do
      # Places that are not in use cannot be read.
      { read -r gid <"$file"; } 2>/dev/null && [ "$gid" = "$want" ] && return 0
    done
  done
  echo "rdma_vm: $1 has no GID for $2" >&2
  return 1
}

# add_rdma_device NAME NETDEV ADDRESS: soft-RoCE on a network device that has that IPv4 address.
add_rdma_device() {
  rdma link add "$1" type rxe netdev "$2" && await_gid "$1" "$3"
}
