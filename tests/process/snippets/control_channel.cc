// One process that listens, dials itself, and sends itself a number.

#include <hmc.h>

#include <cstdlib>

using namespace hmc;

int main(int, char** argv) {
  CtrlSocketManager& control = CtrlSocketManager::instance();
  const uint16_t port = static_cast<uint16_t>(std::atoi(argv[1]));

  control.startServer("0.0.0.0", port);
  if (control.getCtrlSockFd("127.0.0.1", port) <= 0) return 1;
  if (!control.sendCtrlInt("127.0.0.1", 1234)) return 2;

  int first = 0;
  if (!control.recvCtrlInt("127.0.0.1", first)) return 3;
  control.sendCtrlInt("127.0.0.1", 5678);
  int second = 0;
  if (control.recvCtrlInt("127.0.0.1", &second) != status_t::SUCCESS) return 4;
  std::printf("ok %d %d\n", first, second);
  std::fflush(stdout);
  control.closeConnection("127.0.0.1");
  return 0;
}
