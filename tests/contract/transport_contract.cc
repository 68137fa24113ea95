#include "contract/transport_contract.h"

#include <algorithm>
#include <cstdlib>
#include <cstring>

#include "base/error.h"
#include "fakes/link_options.h"
#include "fakes/pattern.h"
#include "memory/backends.h"
#include "memory/copy.h"

namespace hmc::contract {

namespace {

MemoryKind backendMemory(std::string name, Device device) {
  return {std::move(name), [device](size_t size) -> Result<std::unique_ptr<Memory>> {
            HMC_ASSIGN(Backend * backend, findBackend(device));
            HMC_ASSIGN(Region region, backend->allocate(device.index, size));
            return std::make_unique<Memory>(
                region, [backend, ptr = region.ptr] { (void)backend->release(ptr); });
          }};
}

}  // namespace

MemoryKind heapMemory() {
  return {"heap", [](size_t size) -> Result<std::unique_ptr<Memory>> {
            void* ptr = std::calloc(1, size);
            return std::make_unique<Memory>(Region{ptr, size, Device{}}, [ptr] { std::free(ptr); });
          }};
}

MemoryKind hostMemory() {
  return backendMemory("host", Device{});
}

MemoryKind deviceMemory(Device device) {
  return backendMemory(deviceKindName(device.kind), device);
}

std::vector<Subject> subjects() {
  std::vector<Subject> all;
  for (const Candidate& candidate : candidates()) {
    for (const MemoryKind& memory : candidate.memories) all.push_back({candidate, memory});
  }
  return all;
}

std::string subjectName(const testing::TestParamInfo<Subject>& info) {
  return info.param.name();
}

void fill(const Region& region, uint64_t seed) {
  std::string bytes = test::pattern(region.size, seed);
  if (region.device.isHost()) {
    std::memcpy(region.ptr, bytes.data(), bytes.size());
  } else {
    Status status = copy(region, Region{bytes.data(), bytes.size(), Device{}});
    ASSERT_TRUE(status.ok()) << status.toString();
  }
}

std::string differs(const Region& region, uint64_t seed, uint64_t from) {
  std::string staged;
  const char* bytes = static_cast<const char*>(region.ptr);
  if (!region.device.isHost()) {
    staged.resize(region.size);
    Status status = copy(Region{staged.data(), staged.size(), Device{}}, region);
    if (!status.ok()) return status.toString();
    bytes = staged.data();
  }
  const std::string expected = test::pattern(region.size, seed, from);
  if (std::string_view(bytes, region.size) == expected) return "";
  const auto at = static_cast<size_t>(std::mismatch(expected.begin(), expected.end(), bytes).first -
                                      expected.begin());
  return fmt::format("byte {} of {} is {:#04x} instead of {:#04x}", at, region.size,
                     static_cast<unsigned char>(bytes[at]),
                     static_cast<unsigned char>(expected[at]));
}

bool drive(Transport& transport, const Completion& completion, Deadline deadline) {
  while (!completion.done()) {
    if (deadline.passed()) return false;
    transport.progress(earlier(deadline, std::chrono::milliseconds(100)));
  }
  return true;
}

bool postAll(Transport& transport, Link& link, std::span<const Op> ops, Deadline deadline) {
  while (true) {
    ops = ops.subspan(link.post(ops));
    if (ops.empty()) return true;
    if (deadline.passed()) return false;
    transport.progress(earlier(deadline, std::chrono::milliseconds(100)));
  }
}

Op makeOp(OpKind kind, const Buffer& local, size_t localOffset, const RemoteMemory& remote,
          uint64_t remoteOffset, size_t size, Completion& completion) {
  return {kind,
          local.region().at(localOffset),
          local.registration.get(),
          &remote,
          remoteOffset,
          size,
          &completion};
}

Status transfer(Transport& transport, Link& link, OpKind kind, const Buffer& local,
                size_t localOffset, const RemoteMemory& remote, uint64_t remoteOffset,
                size_t size) {
  const size_t largest = transport.facts().largest;
  Completion completion(0);
  std::vector<Op> ops;
  for (size_t at = 0; at < size; at += largest) {
    ops.push_back(makeOp(kind, local, localOffset + at, remote, remoteOffset + at,
                         std::min(largest, size - at), completion));
  }
  completion.expect(static_cast<uint32_t>(ops.size()));
  if (!postAll(transport, link, ops) || !drive(transport, completion)) {
    // The operations point to this stack frame: there is no way on from here.
    std::fprintf(stderr, "a transfer of %zu bytes did not finish in time\n", size);
    std::abort();
  }
  return completion.status();
}

void TransportContract::SetUp() {
  a_ = makeTransport();
  b_ = makeTransport();
  ASSERT_NE(a_, nullptr);
  ASSERT_NE(b_, nullptr);
}

std::unique_ptr<Transport> TransportContract::makeTransport() const {
  auto transport = candidate().make();
  EXPECT_TRUE(transport.ok()) << transport.status().toString();
  return transport.ok() ? *std::move(transport) : nullptr;
}

Ends TransportContract::connect() {
  auto a = a_->openLink(test::linkOptions(true));
  auto b = b_->openLink(test::linkOptions(false));
  EXPECT_TRUE(a.ok()) << a.status().toString();
  EXPECT_TRUE(b.ok()) << b.status().toString();
  // The side that is dialled connects first, as in a Node.
  Status status = (*b)->connect((*a)->address());
  EXPECT_TRUE(status.ok()) << status.toString();
  status = (*a)->connect((*b)->address());
  EXPECT_TRUE(status.ok()) << status.toString();
  return {*std::move(a), *std::move(b)};
}

Buffer TransportContract::localBuffer(Transport& transport, size_t size) const {
  Buffer buffer;
  auto memory = GetParam().memory.allocate(size);
  EXPECT_TRUE(memory.ok()) << memory.status().toString();
  buffer.memory = *std::move(memory);
  const auto& kinds = transport.facts().local;
  if (std::find(kinds.begin(), kinds.end(), buffer.region().device.kind) == kinds.end()) {
    buffer.memory = *heapMemory().allocate(size);
  }
  auto registration = transport.registerRegion(buffer.region(), Access::readWrite);
  EXPECT_TRUE(registration.ok()) << registration.status().toString();
  buffer.registration = *std::move(registration);
  return buffer;
}

Buffer TransportContract::targetBuffer(Transport& transport, size_t size, Access access) const {
  Buffer buffer;
  auto memory = GetParam().memory.allocate(size);
  EXPECT_TRUE(memory.ok()) << memory.status().toString();
  buffer.memory = *std::move(memory);
  auto registration = transport.registerRegion(buffer.region(), access);
  EXPECT_TRUE(registration.ok()) << registration.status().toString();
  buffer.registration = *std::move(registration);
  return buffer;
}

std::unique_ptr<RemoteMemory> TransportContract::import(Link& link, const Buffer& target) const {
  auto remote = link.importKey(target.key(), kPatience, nullptr);
  EXPECT_TRUE(remote.ok()) << remote.status().toString();
  return *std::move(remote);
}

Start TransportContract::start(size_t size) {
  Start made{localBuffer(*a_, size), targetBuffer(*b_, size), connect(), nullptr};
  made.remote = import(*made.ends.a, made.target);
  return made;
}

// A transport that cannot run here brings no candidates.
GTEST_ALLOW_UNINSTANTIATED_PARAMETERIZED_TEST(TransportContract);
INSTANTIATE_TEST_SUITE_P(All, TransportContract, testing::ValuesIn(subjects()), subjectName);

}  // namespace hmc::contract
