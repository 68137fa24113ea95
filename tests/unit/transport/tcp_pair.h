#pragma once

#include <functional>

#include "unit/transport/tcp_fixture.h"

namespace hmc::tcp {

// A link between two transports of this process, with memory at both ends.
struct TcpPair {
  // The dialling end connects to what `detour` makes of the other's address.
  using Detour = std::function<Address(Address)>;
  TcpPair(const TcpOptions& atOrigin, const TcpOptions& atTarget, const Detour& detour = {})
      : origin(*create(atOrigin)), target(*create(atTarget)) {
    dialled = *target->openLink(test::linkOptions(false));
    dialling = *origin->openLink(test::linkOptions(true));
    EXPECT_TRUE(dialled->connect(dialling->address()).ok());
    Address at = *Address::decode(dialled->address());
    EXPECT_TRUE(dialling->connect((detour ? detour(at) : at).encode()).ok());
  }
  ~TcpPair() {
    // Whichever end is asking must not wait for one that nobody serves.
    dialling.reset();
    dialled.reset();
  }

  std::unique_ptr<Registration> share(const Region& memory, Access access = Access::readWrite) {
    auto made = target->registerRegion(memory, access);
    remote = *dialling->importKey((*made)->key(), kPatience, nullptr);
    return *std::move(made);
  }

  struct Wanted {
    OpKind kind;
    void* local;
    uint64_t offset;
    size_t size;
  };
  // Starts them all, and answers how each of them ended.
  std::vector<Status> run(const std::vector<Wanted>& wanted) {
    std::vector<std::unique_ptr<Registration>> registrations;
    std::vector<std::unique_ptr<Completion>> completions;
    std::vector<Op> ops;
    for (const Wanted& one : wanted) {
      registrations.push_back(
          *origin->registerRegion({one.local, one.size, Device{}}, Access::readWrite));
      completions.push_back(std::make_unique<Completion>(1));
      ops.push_back({one.kind, one.local, registrations.back().get(), remote.get(), one.offset,
                     one.size, completions.back().get()});
    }
    std::span<const Op> left(ops);
    const auto pending = [&] {
      return !left.empty() || std::any_of(completions.begin(), completions.end(),
                                          [](const auto& one) { return !one->done(); });
    };
    for (Deadline deadline = kPatience; pending() && !deadline.passed();) {
      if (!left.empty()) left = left.subspan(dialling->post(left));
      origin->progress(std::chrono::milliseconds(20));
    }
    std::vector<Status> outcomes;
    for (const auto& one : completions)
      outcomes.push_back(one->done() ? one->status() : Status(Code::deadlineExceeded, "it hangs"));
    // Nothing may touch what goes now.
    if (pending()) dialling->close(Status(Code::cancelled, "it hangs"));
    return outcomes;
  }
  Status run(OpKind kind, void* local, uint64_t offset, size_t size) {
    return run({{kind, local, offset, size}}).front();
  }

  std::unique_ptr<Transport> origin;
  std::unique_ptr<Transport> target;
  std::unique_ptr<Link> dialled;
  std::unique_ptr<Link> dialling;
  std::unique_ptr<RemoteMemory> remote;
};

}  // namespace hmc::tcp
