#pragma once

#include <arpa/inet.h>
#include <linux/tcp.h>
#include <netinet/in.h>
#include <sys/socket.h>

#include <cstring>
#include <string>

#include "base/fd.h"

namespace hmc::test {

// Ends a connection over IPv4 as a firewall does: the other end of `fd` gets a reset that this end
// has not sent and knows nothing of. False where the process may not do that: it takes root.
inline bool forgeReset(int fd) {
  sockaddr_in mine{};
  sockaddr_in theirs{};
  socklen_t size = sizeof(mine);
  getsockname(fd, reinterpret_cast<sockaddr*>(&mine), &size);
  getpeername(fd, reinterpret_cast<sockaddr*>(&theirs), &size);
  const auto option = [&](int name, int value) {
    return setsockopt(fd, IPPROTO_TCP, name, &value, sizeof(value)) == 0;
  };
  uint32_t next = 0;  // the number of the byte that this end would send next
  socklen_t length = sizeof(next);
  if (!option(TCP_REPAIR, 1)) return false;
  const bool known = option(TCP_REPAIR_QUEUE, TCP_SEND_QUEUE) &&
                     getsockopt(fd, IPPROTO_TCP, TCP_QUEUE_SEQ, &next, &length) == 0;
  option(TCP_REPAIR_QUEUE, TCP_NO_QUEUE);
  option(TCP_REPAIR, -1);  // off, without telling the other end
  Fd raw(socket(AF_INET, SOCK_RAW | SOCK_CLOEXEC, IPPROTO_TCP));
  if (!known || !raw) return false;

  struct {
    in_addr_t from, to;
    uint8_t zero, protocol;
    uint16_t size;
    tcphdr header;
  } packet{mine.sin_addr.s_addr, theirs.sin_addr.s_addr, 0, IPPROTO_TCP, htons(sizeof(tcphdr)), {}};
  packet.header.source = mine.sin_port;
  packet.header.dest = theirs.sin_port;
  packet.header.seq = htonl(next);
  packet.header.doff = sizeof(tcphdr) / 4;
  packet.header.rst = 1;
  uint16_t words[sizeof(packet) / 2];
  std::memcpy(words, &packet, sizeof(packet));
  uint32_t sum = 0;
  for (uint16_t word : words) sum += word;
  while (sum > 0xffff) sum = (sum & 0xffff) + (sum >> 16);
  packet.header.check = static_cast<uint16_t>(~sum);
  theirs.sin_port = 0;
  return sendto(raw.get(), &packet.header, sizeof(tcphdr), 0, reinterpret_cast<sockaddr*>(&theirs),
                sizeof(theirs)) == sizeof(tcphdr);
}

}  // namespace hmc::test
