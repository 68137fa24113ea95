#include <sys/socket.h>

#include <array>
#include <deque>
#include <memory>
#include <string>

#include "base/crc32c.h"
#include "fuzz/input.h"
#include "transport/tcp/origin.h"

// What a target may answer on a tcp data stream over which we ask. Answers are made of the fuzzer's
// bytes, with the number of an operation that waits where a bit says so; other bytes go out as they
// are. Bytes of a get go nowhere but into its memory, and every operation ends, once.

namespace {

using namespace hmc::tcp;
using hmc::test::check;
using hmc::test::Input;

constexpr size_t kSize = 700;  // of an operation
constexpr size_t kOps = 6;
constexpr size_t kGap = 64;  // around the memory of each

struct Asked {
  hmc::Completion completion{1};
  std::array<char, kGap + kSize + kGap> memory;
};

bool isUntouched(const Asked& asked) {
  const auto isOurs = [](char byte) { return byte == '.'; };
  return std::all_of(asked.memory.begin(), asked.memory.begin() + kGap, isOurs) &&
         std::all_of(asked.memory.end() - kGap, asked.memory.end(), isOurs);
}

void append(std::string& bytes, const Reply& reply, bool checked) {
  char header[Reply::kSize];
  reply.pack(header);
  if (checked) seal(header);
  bytes.append(header, sizeof(header));
}

// What the target sends: a few answers, whole or damaged.
std::string words(Input input, bool checked) {
  constexpr std::array kKinds{ReplyKind::done, ReplyKind::data, ReplyKind::refused,
                              ReplyKind::altered};
  std::string bytes;
  uint64_t next = 0;
  for (int i = 0; i < 32 && !input.rest().empty(); ++i) {
    const auto bits = input.number<uint8_t>();
    if ((bits & 1) != 0) {
      bytes += input.take(input.number<uint8_t>());
      continue;
    }
    const ReplyKind kind = kKinds[(bits >> 1) & 3];
    Reply reply;
    reply.kind = (bits & 8) != 0 ? input.number<uint32_t>() : static_cast<uint32_t>(kind);
    reply.code = input.number<uint8_t>();
    reply.id = (bits & 16) != 0 ? input.number<uint64_t>() : next;
    reply.size = kind == ReplyKind::data ? kSize : kind == ReplyKind::refused ? 20 : 0;
    if ((bits & 32) != 0) reply.size = input.number<uint64_t>();
    if (kind != ReplyKind::data) ++next;
    append(bytes, reply, checked);
    const std::string payload(std::min<uint64_t>(reply.size, 2 * kSize), 'x');
    bytes += payload;
    if (!checked || payload.empty()) continue;
    char trailer[kTrailerSize];
    packTrailer((bits & 64) != 0 ? 0 : hmc::crc32c(0, payload.data(), payload.size()), trailer);
    bytes.append(trailer, sizeof(trailer));
  }
  return bytes;
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  static const std::unique_ptr<Progress> progress = hmc::test::must(Progress::create());
  static hmc::TransportCounters counters;
  static const TcpRemote remote(1, kOps * kSize, hmc::Access::readWrite, "tcp");
  Input input(data, size);
  const auto kinds = input.number<uint8_t>();
  const bool checked = (kinds & 128) != 0;
  int pair[2];
  check(socketpair(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK, 0, pair) == 0);
  hmc::Fd peer(pair[0]);
  std::deque<Asked> all(kOps);
  {
    OriginStream origin(std::chrono::milliseconds(0), counters);
    check(origin
              .attach(Connection(hmc::Fd(pair[1])), "the peer", {"", "farewell", "", checked},
                      *progress, 1, 0)
              .ok());
    for (size_t i = 0; i < kOps; ++i) {
      all[i].memory.fill('.');
      const auto kind = (kinds >> i & 1) != 0 ? hmc::OpKind::put : hmc::OpKind::get;
      check(origin.enqueue({kind, all[i].memory.data() + kGap, nullptr, &remote, i * kSize, kSize,
                            &all[i].completion}));
    }
    origin.flush();
    origin.pump(true);
    const std::string said = words(input, checked);
    check(send(peer.get(), said.data(), said.size(), MSG_NOSIGNAL | MSG_DONTWAIT) ==
          static_cast<ssize_t>(said.size()));
    peer.reset();
    for (int turn = 0; turn < 64 && !origin.ended(); ++turn) origin.pump(true);
    origin.close(hmc::Status(hmc::Code::cancelled, "the end"));
    while (origin.expire()) continue;
    for (const Asked& asked : all) check(asked.completion.done() && isUntouched(asked));
  }
  return 0;
}
