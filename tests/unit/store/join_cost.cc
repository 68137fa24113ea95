// What a join costs the store: the real membership code over a store in this process, to any number
// of members, at once on one machine. Counts, no times: docs/pool.md has the table.
//
//   join_cost [MEMBERS]

#include <cstdio>
#include <cstdlib>
#include <memory>
#include <set>
#include <vector>

#include "fakes/must.h"
#include "store/group.h"
#include "store/memory_store.h"

namespace hmc::store {
namespace {

using test::must;

// About what a pool's member tells of itself (pool/record.h).
constexpr size_t kDescription = 160;

const std::set<size_t> kRows{10, 30, 100, 300, 1000, 3000, 10000};

int run(uint32_t most) {
  const auto memory = MemoryStore::create();
  std::vector<std::unique_ptr<Group>> groups;
  GroupOptions options;
  options.name = "pool.pool";
  options.capacity = most;
  options.description.assign(kDescription, 'x');
  std::printf("%8s %18s %18s %18s\n", "members", "requests per join", "changes per join",
              "bytes per join");
  while (groups.size() < most) {
    const uint64_t requests = memory->requests();
    const auto before = memory->delivered();
    groups.push_back(must(Group::join(memory->connect(), options, std::chrono::seconds(60))));
    for (const auto& group : groups) {
      while (group->nextEvent(Deadline::now()).ok()) {
      }
    }
    const auto after = memory->delivered();
    if (!kRows.contains(groups.size()) && groups.size() != most) continue;
    std::printf("%8zu %18llu %18llu %18llu\n", groups.size(),
                static_cast<unsigned long long>(memory->requests() - requests),
                static_cast<unsigned long long>(after.changes - before.changes),
                static_cast<unsigned long long>(after.bytes - before.bytes));
  }
  return 0;
}

}  // namespace
}  // namespace hmc::store

int main(int count, char** words) {
  return hmc::store::run(count > 1 ? static_cast<uint32_t>(std::atoi(words[1])) : 1000);
}
