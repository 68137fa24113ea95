// The shortest useful program: stage bytes, put them into the peer's buffer, return from main.

#include <hmc.h>

#include <cstdlib>

int main(int, char** argv) {
  const std::string ip = "127.0.0.1";
  const uint16_t data = static_cast<uint16_t>(std::atoi(argv[1]));

  auto buffer = std::make_shared<hmc::ConnBuffer>(0, 32ull << 20, hmc::MemoryType::CPU);
  hmc::Communicator communicator(buffer);

  hmc::Communicator::CtrlLink link;
  link.transport = hmc::Communicator::CtrlTransport::TCP;
  link.ip = ip;
  link.port = static_cast<uint16_t>(std::atoi(argv[2]));
  communicator.connectTo(/*peer_id=*/0, /*self_id=*/1, ip, data, link, hmc::ConnType::UCX);

  std::vector<char> letters(1000, 'q');
  buffer->writeFromCpu(letters.data(), letters.size(), 0);
  communicator.put(ip, data, /*local_off=*/0, /*remote_off=*/0, letters.size(), hmc::ConnType::UCX);
  return 0;
}
