// A peer that is called by its address alone: connect, write, read, leave.

#include <hmc.h>

#include <cstdlib>

using namespace hmc;

int main(int, char** argv) {
  auto buffer = std::make_shared<ConnBuffer>(0, 1 << 20);
  Communicator communicator(buffer);
  std::string server = "127.0.0.1";

  if (communicator.connectTo(server, static_cast<uint16_t>(std::atoi(argv[1])), ConnType::RDMA) !=
      status_t::SUCCESS)
    return 1;
  std::vector<char> letters(4096, 'w');
  buffer->writeFromCpu(letters.data(), letters.size(), 0);
  if (communicator.writeTo(server, 0, 4096) != status_t::SUCCESS) return 2;
  if (communicator.readFrom(server, 0, 4096) != status_t::SUCCESS) return 3;
  return communicator.disConnect(server, ConnType::RDMA) == status_t::SUCCESS ? 0 : 4;
}
