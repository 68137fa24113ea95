#pragma once

#include <chrono>
#include <memory>

#include "hmc/access.h"
#include "memory/region.h"

namespace hmc {

// Has the kernel provide the pages of host memory now, because the first touch of each would
// otherwise cost a transfer microseconds. Only a hint: nothing fails by it. For writing it takes
// the pages; for reading it maps those that their owner has taken, which works for writing, too.
void populate(const Region& region, Access access);

// Whether there is enough memory for that. Whoever populates in pieces asks for all of them
// together first.
bool worthPopulating(size_t size);

// The same for a region of any size: a small one at once, a large one in huge pages where they can
// be had and by threads of its own. Transfers need not wait for that; they take the pages that they
// touch themselves. No content changes. Safe from any thread.
class Population {
 public:
  // Below that populating is over when the constructor returns.
  static constexpr size_t kLarge = size_t{32} << 20;
  // What calls that make or open a region wait at most, so that most first transfers find all
  // pages. Who opens one also waits for half of its time at the most.
  static constexpr std::chrono::milliseconds kMaking{500};
  static constexpr std::chrono::milliseconds kOpening{5000};
  // The owner of shared memory begins at its start, a peer that maps it at its end, so that they
  // meet and seldom provide the same pages.
  enum class From : uint8_t { start, end };

  Population() = default;
  // Leaves alone what would take much of the memory that is available, and stops when other things
  // have taken the memory meanwhile.
  Population(const Region& region, Access access, From from);

  // Until it is over, or for so long. Was it over?
  bool wait(std::chrono::nanoseconds most) const;
  // Asks the threads to end. Dropping this does, too, and waits for them: the region can go then.
  void stop() const;

 private:
  struct Work;
  std::shared_ptr<Work> work_;  // none of a small region
};

}  // namespace hmc
