#!/bin/bash
# shellcheck disable=SC1091
# cable.sh plug|cut|mend|lose PERCENT: two RDMA devices of the guest, rxe1 and rxe2, at the ends of a virtual cable.
# Both lie in one network namespace, because soft-RoCE of Linux 6.1 receives in the first one only; the
# routing rules make packets between the two really travel.
set -eu
. "$(dirname "$(readlink -f "$0")")/devices.sh"

address() { echo "10.9.$1.1"; }

# route END: packets from this end's address to the other's leave through the cable.
route() {
  local there
  there=$(address $((1 - $1)))
  ip route replace "$there" dev "cable$1" src "$(address "$1")" table "10$1"
}

add_end() {
  local device=cable$1 there
  there=$(address $((1 - $1)))
  ip link set "$device" mtu 4200 up
  ip addr add "$(address "$1")/32" dev "$device"
  # It receives from an address that is this machine's own.
  sysctl -qw "net.ipv4.conf.$device.accept_local=1" "net.ipv4.conf.$device.rp_filter=0" \
    "net.ipv4.conf.$device.arp_ignore=1"
  ip rule add pref "1$1" iif "$device" lookup local
  ip rule add pref "2$1" from "$(address "$1")" to "$there" lookup "10$1"
}

plug() {
  sysctl -qw net.ipv4.conf.all.rp_filter=0
  ip link add cable0 type veth peer name cable1
  add_end 0
  add_end 1
  route 0
  route 1
  # The local table, which would keep these packets inside, comes after the rules above.
  ip rule add pref 30 lookup local
  ip rule del pref 0
  add_rdma_device rxe1 cable0 "$(address 0)"
  add_rdma_device rxe2 cable1 "$(address 1)"
}

# Both ends see that the link is down.
cut() {
  ip link set cable0 down
}

mend() {
  ip link set cable0 up
  route 0 # the kernel forgets it when the device goes down
  await_gid rxe1 "$(address 0)"
  await_gid rxe2 "$(address 1)"
}

# lose PERCENT: so many of the packets vanish, in both directions, and nobody is told.
lose() {
  tc qdisc replace dev cable0 root netem loss "$1%"
  tc qdisc replace dev cable1 root netem loss "$1%"
}

case ${1:-} in
  plug | cut | mend) "$1" ;;
  lose) lose "$2" ;;
  *)
    echo "usage: cable.sh plug|cut|mend|lose PERCENT" >&2
    exit 2
    ;;
esac
