#pragma once

#include <gtest/gtest.h>

#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "transport/transport.h"

// The suite that every transport joins: see transport/transport.h for the contract. A transport
// joins with one file that defines candidates() and one line in CMakeLists.txt
// (hmc_transport_contract). The same program, started with --target, is the peer process of the
// tests that kill or stop one.
namespace hmc::contract {

// Memory for a test, given back at the end.
class Memory {
 public:
  Memory(const Region& what, std::function<void()> release)
      : region(what), release_(std::move(release)) {}
  ~Memory() { release_(); }
  Memory(const Memory&) = delete;
  Memory& operator=(const Memory&) = delete;

  const Region region;

 private:
  std::function<void()> release_;
};

struct MemoryKind {
  std::string name;
  std::function<Result<std::unique_ptr<Memory>>(size_t size)> allocate;
};

MemoryKind heapMemory();                 // memory that the library did not allocate
MemoryKind hostMemory();                 // from the host backend, which peers can map
MemoryKind deviceMemory(Device device);  // from that device's backend

// What a transport brings.
struct Candidate {
  std::string name;
  // A transport as one process would have it; called once per side.
  std::function<Result<std::unique_ptr<Transport>>()> make;
  // What its target side can register.
  std::vector<MemoryKind> memories;

  // Whether two processes can use it; the fakes cannot.
  bool acrossProcesses = true;
  // Whether operations fail once the target's Registration is destroyed. Where no software can
  // stop them, they must at least be harmless.
  bool unregisterStops = true;
  // Whether put and get finish while the target process is stopped.
  bool reachesStoppedTarget = false;
  // Of links whose peer is killed. Over tcp, ucx takes a lost connection for a dead process only
  // where the lease is short.
  std::chrono::milliseconds lease{8000};
};

// Defined by the program that joins.
std::vector<Candidate> candidates();

// One candidate with one kind of memory at the target.
struct Subject {
  Candidate candidate;
  MemoryKind memory;
  std::string name() const { return candidate.name + "_" + memory.name; }
};
inline void PrintTo(const Subject& subject, std::ostream* out) {
  *out << subject.name();
}
std::vector<Subject> subjects();
std::string subjectName(const testing::TestParamInfo<Subject>& info);

inline constexpr std::chrono::seconds kPatience{30};

// Bytes that depend on their position and a seed, so that a misplaced byte shows.
void fill(const Region& region, uint64_t seed);
// Where the region differs from what fill() wrote there, "" when nowhere. `from` is the position
// of the region's first byte in the fill.
std::string differs(const Region& region, uint64_t seed, uint64_t from = 0);

// Loops progress() until the completion is done.
bool drive(Transport& transport, const Completion& completion, Deadline deadline = kPatience);

// Posts all of the operations, with progress() in between where the link takes fewer.
bool postAll(Transport& transport, Link& link, std::span<const Op> ops,
             Deadline deadline = kPatience);

// Memory with its registration.
struct Buffer {
  std::unique_ptr<Memory> memory;
  std::unique_ptr<Registration> registration;

  const Region& region() const { return memory->region; }
  const std::string& key() const { return registration->key(); }
};

Op makeOp(OpKind kind, const Buffer& local, size_t localOffset, const RemoteMemory& remote,
          uint64_t remoteOffset, size_t size, Completion& completion);

// One put or get of any size, split as the engine would, driven to its end.
Status transfer(Transport& transport, Link& link, OpKind kind, const Buffer& local,
                size_t localOffset, const RemoteMemory& remote, uint64_t remoteOffset, size_t size);

// Two links that know each other; a's side works in most tests.
struct Ends {
  std::unique_ptr<Link> a;
  std::unique_ptr<Link> b;
};

// What most tests begin with: memory at both sides, a link, and the target as that sees it.
struct Start {
  Buffer local;
  Buffer target;
  Ends ends;
  std::unique_ptr<RemoteMemory> remote;
};

class TransportContract : public testing::TestWithParam<Subject> {
 protected:
  void SetUp() override;

  const Candidate& candidate() const { return GetParam().candidate; }
  std::unique_ptr<Transport> makeTransport() const;
  Ends connect();

  // Memory that our side works with: of the subject's kind if post() can use it, else of the heap.
  Buffer localBuffer(Transport& transport, size_t size) const;
  // Memory of the subject's kind for peers to reach.
  Buffer targetBuffer(Transport& transport, size_t size, Access access = Access::readWrite) const;
  std::unique_ptr<RemoteMemory> import(Link& link, const Buffer& target) const;
  Start start(size_t size);

  // "As two processes would have them": whatever a test does on a_, nobody calls b_.
  std::unique_ptr<Transport> a_;
  std::unique_ptr<Transport> b_;
};

}  // namespace hmc::contract
