// Listens until its input ends, then says what a client wrote.

#include <hmc.h>

#include <cstdlib>

using namespace hmc;

int main(int, char** argv) {
  auto buffer = std::make_shared<ConnBuffer>(0, 1 << 20);
  Communicator communicator(buffer);

  status_t opened = communicator.initServer("127.0.0.1", static_cast<uint16_t>(std::atoi(argv[1])),
                                            ConnType::RDMA);
  std::printf(opened == status_t::SUCCESS ? "ok\n" : "error %s\n", lastError().c_str());
  std::fflush(stdout);
  while (std::getchar() != '\n') {
  }
  char first = 0;
  buffer->readToCpu(&first, 1, 4095);
  std::printf("ok %c\n", first);
  std::fflush(stdout);
  return communicator.closeServer() == status_t::SUCCESS ? 0 : 1;
}
