// What somebody else's C++14 program sees of an installed libhmc: it puts a sentence into the
// buffer of a second Communicator and gets it back.

#include <hmc.h>

#include <cstdio>
#include <cstring>
#include <memory>

namespace {

using hmc::Communicator;
using hmc::ConnBuffer;
using hmc::ConnType;
using hmc::MemoryType;
using hmc::status_t;

const char kHost[] = "127.0.0.1";
const char kText[] = "one-sided";

bool worked(const char* step, status_t status) {
  if (status == status_t::SUCCESS) return true;
  std::fprintf(stderr, "%s: %s: %s\n", step, hmc::status_to_string(status),
               hmc::lastError().c_str());
  return false;
}

// The first port from 20000 on that is free; 0 when none is.
uint16_t serve(Communicator& server) {
  for (uint16_t port = 20000; port < 21000; ++port) {
    if (server.initServer(kHost, port, ConnType::TCP) == status_t::SUCCESS) return port;
  }
  std::fprintf(stderr, "no port is free: %s\n", hmc::lastError().c_str());
  return 0;
}

bool exchange(Communicator& client, ConnBuffer& near, ConnBuffer& far, uint16_t port) {
  char seen[sizeof(kText)] = {};
  if (!worked("connectTo", client.connectTo(kHost, port, ConnType::TCP))) return false;
  if (!worked("writeFromCpu", near.writeFromCpu(kText, sizeof(kText)))) return false;
  if (!worked("put", client.put(kHost, port, 0, 100, sizeof(kText), ConnType::TCP))) return false;
  if (!worked("readToCpu", far.readToCpu(seen, sizeof(seen), 100))) return false;
  if (std::strcmp(seen, kText) != 0) return false;
  if (!worked("get", client.get(kHost, port, 500, 100, sizeof(kText), ConnType::TCP))) return false;
  if (!worked("readToCpu", near.readToCpu(seen, sizeof(seen), 500))) return false;
  return std::strcmp(seen, kText) == 0;
}

}  // namespace

int main() {
  auto far = std::make_shared<ConnBuffer>(0, 4096, MemoryType::CPU);
  auto near = std::make_shared<ConnBuffer>(0, 4096, MemoryType::CPU);
  Communicator server(far);
  Communicator client(near);
  uint16_t port = serve(server);
  if (port == 0 || !exchange(client, *near, *far, port)) return 1;
  std::puts("consumer works");
  return 0;
}
