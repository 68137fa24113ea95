// Client calls before server calls, on one object: nobody listens yet, so the first ones answer
// with an error, and the last ones work.

#include <hmc.h>

#include <cstdlib>

using namespace hmc;

int main(int, char** argv) {
  auto buffer = std::make_shared<ConnBuffer>(0, 1 << 20);
  Communicator communicator(buffer);
  const std::string here = "127.0.0.1";
  const uint16_t port = static_cast<uint16_t>(std::atoi(argv[1]));

  if (communicator.connectTo(here, port, ConnType::RDMA) == status_t::SUCCESS) return 1;
  if (communicator.writeTo(here, 0, 4096) != status_t::NOT_FOUND) return 2;
  if (communicator.disConnect(here, ConnType::RDMA) != status_t::SUCCESS) return 3;
  if (communicator.initServer(here, port, ConnType::RDMA) != status_t::SUCCESS) return 4;

  // Now that it listens it can also dial itself.
  if (communicator.connectTo(here, port, ConnType::RDMA) != status_t::SUCCESS) return 5;
  if (communicator.writeTo(here, 0, 4096) != status_t::SUCCESS) return 6;
  if (communicator.disConnect(here, ConnType::RDMA) != status_t::SUCCESS) return 7;
  return communicator.closeServer() == status_t::SUCCESS ? 0 : 8;
}
