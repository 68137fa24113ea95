#pragma once

#include <functional>
#include <string>
#include <vector>

#include "bench/run.h"
#include "bench/session.h"
#include "bench/timing.h"

namespace hmc::bench {

struct Plan {
  std::vector<size_t> sizes;
  Clock::duration time = std::chrono::milliseconds(200);  // per measurement, its ceiling included
  size_t window = 16;                                     // transfers under way at once
  bool verify = false;
};

// Told before each measurement what it is.
using Step = std::function<void(const std::string&)>;

// Blocking put and get of every size, then with a window of them under way.
Status measureTransfers(Session& session, const std::string& transport, const Plan& plan,
                        const Step& step, Run& run);
// 256 blocks in one call.
Status measureBatches(Session& session, const std::string& transport, const Plan& plan,
                      const Step& step, Run& run);
// Tags there and back.
Status measureControl(Session& session, const std::string& transport, const Plan& plan,
                      const Step& step, Run& run);
// Every promise of docs/performance.md about these transports.
Status measureTargets(Session& session, const std::vector<std::string>& transports,
                      const Plan& plan, const Step& step, Run& run);
size_t targetSteps(const std::vector<std::string>& transports);

// The fastest 8-byte put of the others that were measured beside us is a target as well.
void addCompetitorTargets(Run& run);

// Shared by those above.

// Blocking puts or gets of that many bytes beside their ceiling.
Result<Compared> compareTransfer(Session& session, Path& path, const std::string& transport,
                                 bool put, size_t bytes, Clock::duration time);
// `count` blocks of that many bytes in one put, beside as many copies.
Result<Compared> compareBatch(Session& session, Path& path, const std::string& transport,
                              size_t count, size_t bytes, Clock::duration time);
// Tags beside a flag in shared memory, or beside a socket.
Result<Compared> compareTags(Session& session, const std::string& transport, Clock::duration time);
// What was compared as a measurement: the median, its spread and its ceiling.
Measurement measurementOf(const std::string& transport, const std::string& section, bool put,
                          size_t bytes, const Compared& compared);
// The name of what a transport is measured against.
std::string ceilingName(const std::string& transport);

}  // namespace hmc::bench
