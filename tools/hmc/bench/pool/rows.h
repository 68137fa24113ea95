#pragma once

#include <functional>
#include <string>
#include <vector>

#include "bench/measure.h"
#include "bench/pool_bench.h"
#include "hmc/pool.h"
#include "program.h"

// What the parts of `hmc bench pool` share. Each part adds its rows to the run.
namespace hmc::bench {

// The fragments of one block of a KV cache, in a published measurement of MemFabric.
inline constexpr size_t kFragments = 61;
inline constexpr size_t kLargeFragment = 128 * kKiB;
inline constexpr size_t kSmallFragment = 16 * kKiB;
inline constexpr size_t kFragmentBytes = kFragments * (kLargeFragment + kSmallFragment);
// Side by side in `from`, as far apart as they are large in `to`.
std::vector<PoolCopy> fragmentCopies(char* to, const char* from);
// "61 x 128 KiB + 61 x 16 KiB, tcp"
std::string fragmentsText(const std::string& where);

// A store and members of its pools, all of them processes of this program.
struct Others {
  static Result<Others> start();
  // Joins that pool with the same options as poolOptions() makes.
  Status add(const PoolMemberOptions& options);
  uint32_t rankOfLast() const;
  // Where a Node of its process listens, if it was given a transport. The Node has a region kRegion
  // of the same size.
  std::string nodeOfLast() const;

  tool::OtherProcess store;
  std::vector<tool::OtherProcess> members;
};

PoolOptions poolOptions(const PoolMemberOptions& options);

struct PoolBench {
  Others& others;
  const Clock::duration time;                    // per measurement, with its ceiling
  std::function<void(const std::string&)> step;  // called before each measurement with its name
  Run& run;                                      // where the rows go
};

// Copies within the host and over tcp, and what serving many peers takes.
Status measurePoolCopies(PoolBench& bench);
inline constexpr size_t kPoolCopySteps = 13;
// Joins, leaves and deaths among eight members.
Status measurePoolMembers(PoolBench& bench);
inline constexpr size_t kPoolMemberSteps = 2;
// Barriers and allgathers of eight ranks, by libmf_smem.so. A note says so where that is missing.
Status measurePoolCollectives(PoolBench& bench);
inline constexpr size_t kPoolCollectiveSteps = 3;
// The store beside an etcd, where that is installed.
Status measurePoolStore(PoolBench& bench);
inline constexpr size_t kPoolStoreSteps = 1;
// Device slots of two members on one device, beside the driver's own copy. Verifies the bytes.
Status measurePoolDevice(PoolBench& bench, Device device);
inline constexpr size_t kPoolDeviceSteps = 3;

// What `store_load` measured (tools/store_load): nanoseconds for each request, by one client or in
// total by many.
struct StoreLoad {
  double set = 0;
  double get = 0;
};
struct LoadedStore {
  std::string kind;   // "ours" or "etcd"
  std::string where;  // our address, or etcd's port
  std::string secret;
};
Result<StoreLoad> loadStore(const LoadedStore& store, size_t clients, Clock::duration time);

}  // namespace hmc::bench
