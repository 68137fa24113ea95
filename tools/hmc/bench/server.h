#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "hmc/result.h"

// The passive side of a benchmark. Its requests come as notes, one at a time:
//
//   hello              answers Hello
//   tags RANK N        sends N tags of that rank back
//   flags RANK N       N round trips of a flag in the shared memory, then the same as tags. One
//                      request, so that both are measured on the same two cores.
//   fill SEED          writes a pattern into the region; answers its checksum
//   sum                answers the region's checksum
//   peers N ADDRESS    N more Nodes connect to that address and stay; "peers 0 none" ends them
//   use N ADDRESS      the same over tcp alone, and each writes to its region; answers the median
//                      time of connecting and opening it, in nanoseconds
//   regions N BYTES    registers N more regions, "region 0", "region 1", ...
//   region NAME BYTES DEVICE
//                      allocates one more region there, unless there is one of that name
//   ucp                serves the region through bare UCX from now on; answers
//                      BareUcpTarget::address()
//   stream BYTES DEVICE
//                      allocates memory that a Communicator of its own can receive; answers its
//                      port
//   receive            receives there, again and again, until 0 bytes come
//
// Every note is answered by one: "ok ..." or "error SENTENCE".
namespace hmc::bench {

struct ServerOptions {
  std::string address = "tcp://127.0.0.1:0";
  size_t bytes = 0;    // of the region
  std::string shared;  // SharedMemory::path() of the other process; empty: none
};

// What a client needs to know of a server, in the answer to "hello".
struct Hello {
  uint16_t rawPort = 0;           // RawSocketServer
  uint16_t communicatorPort = 0;  // a Communicator that listens there, and knows ranks by number
  int pid = 0;
  uint64_t userAddress = 0;  // where the region kUserRegion lies in that process
  size_t bytes = 0;

  std::string encode() const;
  static Result<Hello> decode(const std::string& text);
};

inline constexpr const char* kRegion = "bench";           // host memory, allocated by the Node
inline constexpr const char* kUserRegion = "bench.user";  // the program's own memory

// Serves with the secret and the transports of the environment until it is killed. Prints its
// address for the process that started it, or the command line of the other side for a person.
int serveBench(const ServerOptions& options, bool forAPerson);

}  // namespace hmc::bench
