#include <cstring>

#include <fmt/core.h>

#include "bench/bare_cuda.h"
#include "bench/pool/rows.h"
#include "bench/report/units.h"
#include "bench/targets.h"
#include "demo/demo.h"

namespace hmc::bench {

namespace {

constexpr size_t kDeviceSlot = 64 * kMiB;

// Two members whose slots lie on one device: this process and another.
struct DevicePair {
  static Result<DevicePair> join(PoolBench& bench, Device device) {
    const PoolMemberOptions options{"", "device", kDeviceSlot, "", device};
    TOOL_TRY(bench.others.add(options));
    TOOL_ASSIGN(auto pool, Pool::join(bench.others.store.address, poolOptions(options)));
    TOOL_ASSIGN(const PoolSlot ours, pool.slot(pool.rank(), PoolSpace::device));
    TOOL_ASSIGN(const PoolSlot theirs, pool.slot(pool.rank() == 0 ? 1 : 0, PoolSpace::device));
    for (const PoolSlot& slot : {ours, theirs}) {
      if (slot.device == device) continue;
      return Status(Code::notFound,
                    fmt::format("{} is not there: the slot of rank {} lies on {}",
                                device.toString(), slot.rank, slot.device.toString()));
    }
    return DevicePair{std::move(pool), static_cast<char*>(ours.address),
                      static_cast<char*>(theirs.address)};
  }
  Status put() const { return pool.copy(theirs, ours, kDeviceSlot); }
  Status putAll(const std::vector<PoolCopy>& copies) const {
    TOOL_ASSIGN(auto ticket, pool.startCopy(copies));
    return ticket.wait();
  }

  Pool pool;
  char* ours;
  char* theirs;
};

Status different(const std::string& what) {
  return Status(Code::failed, what + ": other bytes arrived than were sent");
}

// Both ways of copying move what lies in our slot, and to where it shall.
Status verifyDevicePair(const DevicePair& pair, const std::vector<PoolCopy>& fragments) {
  std::vector<char> sent(kDeviceSlot);
  std::vector<char> arrived(kDeviceSlot);
  auto fill = [&](char* slot, uint64_t seed) {
    tool::fillPattern(sent.data(), sent.size(), seed);
    return pair.pool.copy(slot, sent.data(), sent.size());
  };
  TOOL_TRY(fill(pair.theirs, 1));
  TOOL_TRY(fill(pair.ours, 2));
  TOOL_TRY(pair.put());
  TOOL_TRY(pair.pool.copy(arrived.data(), pair.theirs, kDeviceSlot));
  if (arrived != sent) return different(sizeText(kDeviceSlot));
  TOOL_TRY(fill(pair.theirs, 3));
  TOOL_TRY(fill(pair.ours, 4));
  TOOL_TRY(pair.putAll(fragments));
  TOOL_TRY(pair.pool.copy(arrived.data(), pair.theirs, kDeviceSlot));
  for (const PoolCopy& one : fragments) {
    const char* to = arrived.data() + (static_cast<char*>(one.to) - pair.theirs);
    const char* from = sent.data() + (static_cast<const char*>(one.from) - pair.ours);
    if (std::memcmp(to, from, one.size) != 0) return different("fragments");
  }
  return Status();
}

}  // namespace

Status measurePoolDevice(PoolBench& bench, Device device) {
  TOOL_ASSIGN(const DevicePair pair, DevicePair::join(bench, device));
  const std::vector<PoolCopy> fragments = fragmentCopies(pair.theirs, pair.ours);
  bench.step("verify");
  TOOL_TRY(verifyDevicePair(pair, fragments));
  auto cuda = device.kind == DeviceKind::cuda
                  ? BareCuda::open(device.index, kDeviceSlot)
                  : Result<std::unique_ptr<BareCuda>>(
                        Status(Code::unsupported, "it is known for cuda alone"));
  if (!cuda.ok())
    bench.run.notes.push_back(
        fmt::format("{}: not measured: {}", kBareCopy, cuda.status().message()));
  auto row = [&](const std::string& what, size_t bytes, const Job& ours, double limit) -> Status {
    bench.step(what);
    auto bare = [&] { return (*cuda)->copy(BareWay::deviceToDevice, bytes); };
    TOOL_ASSIGN(const Compared compared,
                cuda.ok() ? compare(ours, bare, 2 * bench.time) : alone(ours, 2 * bench.time));
    bench.run.targets.push_back(rateAtLeast(what, compared, kBareCopy, limit, bandwidthOf(bytes)));
    return Status();
  };
  const std::string where = device.toString() + " to " + device.toString();
  TOOL_TRY(row(
      fmt::format("{}, {}", sizeText(kDeviceSlot), where), kDeviceSlot, [&] { return pair.put(); },
      0.95));
  return row(
      fragmentsText(where), kFragmentBytes, [&] { return pair.putAll(fragments); }, 0.8);
}

}  // namespace hmc::bench
