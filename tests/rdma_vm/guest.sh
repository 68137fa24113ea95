# shellcheck shell=bash disable=SC1091
# What the RDMA test machine does once it runs: makes an RDMA device, then does /run/out/command with
# the settings in /run/out/settings. Runs in the host's file tree.
set -a
. /run/out/settings
set +a
. "$RDMA_VM_SCRIPTS/devices.sh"

hostname rdma-vm
ulimit -l unlimited

# On a dummy, because a GID of the loopback device does not work. What a device sends to itself never
# becomes packets. 4200 bytes are room for RoCE's largest packet of 4096.
ip link add dum0 type dummy
ip link set dum0 mtu 4200 up
ip addr add 10.8.0.1/24 dev dum0
add_rdma_device rxe0 dum0 10.8.0.1 || exit 123

cd "$RDMA_VM_FOLDER" || exit 123
timeout -k 5 "$RDMA_VM_SECONDS" bash /run/out/command </dev/null
