// The second generation, both roles by argument: put, then tag; the reader looks when the tag came.

#include <hmc.h>

#include <cstdlib>
#include <cstring>

using namespace hmc;

static int read(Communicator& communicator, ConnBuffer& buffer, uint16_t data, uint16_t control) {
  if (communicator.initServer("127.0.0.1", data, control, "", ConnType::UCX) != status_t::SUCCESS)
    return 1;
  uint64_t tag = 0;
  if (communicator.ctrlRecv(1, &tag) != status_t::SUCCESS || tag != 3) return 2;
  char text[6] = "";
  buffer.readToCpu(text, sizeof(text), 10);
  if (std::strcmp(text, "hello") != 0) return 3;
  return communicator.ctrlSend(1, 4) == status_t::SUCCESS ? 0 : 4;
}

static int write(Communicator& communicator, ConnBuffer& buffer, uint16_t data, uint16_t control) {
  Communicator::CtrlLink link;
  link.ip = "127.0.0.1";
  link.port = control;
  if (communicator.connectTo(0, 1, link.ip, data, link, ConnType::UCX) != status_t::SUCCESS)
    return 5;
  buffer.writeFromCpu("hello", 6);
  uint64_t id = 0;
  communicator.putNB(link.ip, data, 0, 10, 6, &id, ConnType::UCX);
  if (communicator.wait(std::vector<uint64_t>{id}) != status_t::SUCCESS) return 6;
  if (communicator.ctrlSend(0, 3) != status_t::SUCCESS) return 7;
  uint64_t tag = 0;
  if (communicator.ctrlRecv(0, &tag) != status_t::SUCCESS || tag != 4) return 8;
  return communicator.disConnect(link.ip, data, ConnType::UCX) == status_t::SUCCESS ? 0 : 9;
}

int main(int, char** argv) {
  auto buffer = std::make_shared<ConnBuffer>(0, 4096, MemoryType::CPU);
  Communicator communicator(buffer, 2);
  const uint16_t data = static_cast<uint16_t>(std::atoi(argv[2]));
  const uint16_t control = static_cast<uint16_t>(std::atoi(argv[3]));
  bool reads = std::strcmp(argv[1], "read") == 0;
  return reads ? read(communicator, *buffer, data, control)
               : write(communicator, *buffer, data, control);
}
