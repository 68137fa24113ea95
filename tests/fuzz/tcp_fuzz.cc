#include <sys/socket.h>

#include <array>
#include <memory>
#include <string>

#include "fuzz/input.h"
#include "transport/tcp/target.h"

// What a peer may say on a tcp data stream. Requests are made of the fuzzer's bytes, with the
// number of memory that exists where a bit says so; other bytes go out as they are. The target
// moves what fits its memory, answers everything else, and touches nothing beside it.

namespace {

using namespace hmc::tcp;
using hmc::test::check;
using hmc::test::Input;

constexpr size_t kServed = 8192;
constexpr size_t kGuard = 64;

struct Memory {
  std::array<char, kGuard> before;
  std::array<char, kServed> served;
  std::array<char, kGuard> behind;
};

bool isUntouched(const std::array<char, kGuard>& bytes) {
  return std::all_of(bytes.begin(), bytes.end(), [](char byte) { return byte == '.'; });
}

// What the peer sends: a few requests, whole or damaged.
std::string words(Input input, uint64_t region) {
  std::string bytes;
  for (int i = 0; i < 16 && !input.rest().empty(); ++i) {
    const auto bits = input.number<uint8_t>();
    if ((bits & 1) != 0) {
      bytes += input.take(input.number<uint8_t>());
      continue;
    }
    Request request;
    request.kind = static_cast<uint64_t>((bits & 2) != 0 ? RequestKind::put : RequestKind::get);
    request.id = input.number<uint8_t>();
    request.region = (bits & 4) != 0 ? input.number<uint64_t>() : region;
    request.offset = (bits & 8) != 0 ? input.number<uint64_t>() : input.number<uint16_t>();
    request.size = (bits & 16) != 0 ? input.number<uint64_t>() : input.number<uint16_t>();
    char header[Request::kSize];
    request.pack(header);
    bytes.append(header, sizeof(header));
    if ((bits & 2) != 0) bytes.append(std::min<uint64_t>(request.size, 2 * kServed), 'x');
  }
  return bytes;
}

void discard(int fd) {
  std::array<char, 65536> answers;
  while (recv(fd, answers.data(), answers.size(), MSG_DONTWAIT) > 0) continue;
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  static hmc::Exports exports;
  static std::unique_ptr<TargetStream::Buffer> spare;
  static Memory memory;
  static const uint64_t region = exports.add(
      {memory.served.data(), memory.served.size(), hmc::Device{}}, hmc::Access::readWrite);
  memory.before.fill('.');
  memory.behind.fill('.');
  int pair[2];
  check(socketpair(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK, 0, pair) == 0);
  hmc::Fd peer(pair[0]);
  hmc::Lease lease{std::chrono::hours(24)};
  TargetStream target(Connection(hmc::Fd(pair[1])), exports, lease, "greeting", "farewell", spare);
  const std::string said = words(Input(data, size), region);
  for (size_t sent = 0; sent < said.size();) {
    const ssize_t count =
        send(peer.get(), said.data() + sent, said.size() - sent, MSG_NOSIGNAL | MSG_DONTWAIT);
    if (count > 0) sent += static_cast<size_t>(count);
    if (!target.serve()) break;
    discard(peer.get());
  }
  for (int turn = 0; turn < 64 && target.serve() && target.moved(); ++turn) discard(peer.get());
  check(isUntouched(memory.before) && isUntouched(memory.behind));
  return 0;
}
