#pragma once

#include <algorithm>
#include <atomic>
#include <cstring>
#include <functional>
#include <string>
#include <vector>

#include "bench/run.h"
#include "bench/session.h"
#include "bench/timing.h"

namespace hmc::bench {

inline constexpr size_t kKiB = 1024;
inline constexpr size_t kMiB = 1024 * kKiB;

struct Plan {
  std::vector<size_t> sizes;
  Clock::duration time = std::chrono::milliseconds(200);  // per measurement, with its ceiling
  size_t window = 16;                                     // transfers in flight
  bool verify = false;
};

// What all measurements share.
struct Bench {
  Session& session;
  const Plan plan;
  std::function<void(const std::string&)> step;  // called before each measurement with its name
  Run& run;                                      // where the results go
};

// How many transfers of that size are in flight, so that they take no more than 64 MiB or one.
inline size_t windowOf(const Plan& plan, size_t bytes) {
  return std::clamp<size_t>(64 * kMiB / bytes, 1, plan.window);
}
// The batches: that many blocks, of each of these sizes as far as the memory reaches.
inline constexpr size_t kBlocksOfBatch = 256;
inline constexpr size_t kBatchBlocks[] = {64, kKiB, 4 * kKiB, 16 * kKiB, 64 * kKiB};
// Tags in memory have no ceiling where there is no shared memory to compare with.
inline bool hasTags(const std::string& transport, bool local) {
  return transport == "tcp" || (transport == "ipc" && local);
}

// Blocking put and get of every size, then with a window of them in flight.
Status measureTransfers(Bench& bench, const std::string& transport);
// 256 blocks in one call.
Status measureBatches(Bench& bench, const std::string& transport);
// Tag round trips.
Status measureControl(Bench& bench, const std::string& transport);
// Blocking puts and gets of every size over each of these transports in turns, and which of them a
// Node chooses that may use them all. A transport that does not open is left out, with a note.
Status measureAllPaths(Bench& bench, const std::vector<std::string>& transports);
// Instead of those: what checksums and TLS cost over tcp, each size beside plain tcp.
Status measureProtections(Bench& bench);

// The building blocks of those above.

// The median of each path in nanoseconds. They run in turns, a slice each, so that other load on
// the machine slows all of them alike.
using Paths = std::vector<std::unique_ptr<Path>>;
Result<Samples> inTurns(const Paths& paths, bool put, size_t bytes, Clock::duration time);

// Our transfer of `bytes`, or the start of one of `blocks`.
struct OneTransfer {
  const Path& path;
  bool put;
  size_t bytes;

  Status operator()() const {
    return put ? path.remote.put(path.local, 0, 0, bytes)
               : path.remote.get(path.local, 0, 0, bytes);
  }
  Result<Ticket> start(const std::vector<Block>& blocks) const {
    return put ? path.remote.startPut(path.local, blocks)
               : path.remote.startGet(path.local, blocks);
  }
};

// A put without a library: the bytes, then the flag that says so.
struct BareCopy {
  char* to;
  const char* from;
  size_t bytes;
  std::atomic<uint64_t>* flag;

  Status operator()() const {
    std::memcpy(to, from, bytes);
    flag->store(1, std::memory_order_release);
    return Status();
  }
};
BareCopy bareCopy(const Session& session, const Path& path, bool put, size_t bytes);

// Blocking puts or gets of that many bytes beside their ceiling.
Result<Compared> compareTransfer(Session& session, Path& path, const std::string& transport,
                                 bool put, size_t bytes, Clock::duration time);
// `count` blocks of that many bytes in one put, beside as many copies.
Result<Compared> compareBatch(Session& session, Path& path, const std::string& transport,
                              size_t count, size_t bytes, Clock::duration time);
// The same on memory of devices: a job of ours beside the driver's own copies, or over another
// transport than ipc beside the same job on host memory. Without a ceiling where the driver is
// missing.
using Job = std::function<Status()>;
using JobOn = std::function<Job(const Path&)>;
using BareJob = std::function<Status(BareCuda&)>;
inline constexpr const char* kBareCopy = "bare copy";
Result<Compared> compareOnDevice(Session& session, const Path& path, const std::string& transport,
                                 const JobOn& jobOn, const BareJob& bare, Clock::duration time);
// Where the bytes of a put or get come from and go to.
BareWay wayOf(const Path& path, bool put);
// A get of everything and a put of what was got, checked through host memory of ours.
Status verifyOnDevice(Path& path);
// Tags beside a flag in shared memory, or beside a socket.
Result<Compared> compareTags(Session& session, const std::string& transport, Clock::duration time);
// The median, its spread and its ceiling.
Measurement measurementOf(const std::string& transport, const std::string& section, bool put,
                          size_t bytes, const Compared& compared);

}  // namespace hmc::bench
