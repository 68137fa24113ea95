#pragma once

#include <chrono>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/interface.h"
#include "hmc/deadline.h"
#include "hmc/result.h"
#include "store/store.h"

namespace hmc::store {

struct GroupOptions {
  std::string name;              // of the group in its store
  uint32_t capacity = 0;         // ranks are 0 to capacity - 1
  std::optional<uint32_t> rank;  // none: the lowest that is free
  std::string description;       // what the others shall know of us
  // A member that the store has not heard of for so long has left. All members use the same.
  std::chrono::milliseconds ttl{5000};
  // What a description says of its member, for sentences; none: the description, if it is text.
  std::function<std::string(const std::string& description)> describe;
};

struct Member {
  uint32_t rank = 0;
  std::string incarnation;  // 16 random bytes: whoever takes the rank next has others
  std::string description;
};

struct GroupEvent {
  enum class Kind : uint8_t { joined, left };
  Kind kind;
  Member member;
  bool said = false;  // of `left`: it said so itself; else it died, or was out of reach
};

// Processes that have a rank each. Members come and go at any time, each by a key of its own in
// the store, so that nobody waits for anybody. Destroying it leaves. Safe from any thread.
class Group : public Interface {
 public:
  // alreadyExists when the rank is taken, exhausted when all are: both name the holder. A rank
  // whose holder died is free when its lease is over; this waits for that. A holder that is there
  // for longer than a lease lasts is alive, and a rank that was asked for is not waited for any
  // more; where any rank will do, one is waited for until the deadline.
  static Result<std::unique_ptr<Group>> join(std::shared_ptr<Store> store,
                                             const GroupOptions& options, Deadline deadline);

  virtual const Member& self() const = 0;
  // Ok, or why we are no longer a member: we left, somebody reaped us, or the rank went to somebody
  // else while the store was out of reach.
  virtual Status status() const = 0;
  // Those that we have heard of, ourselves included, by rank.
  virtual std::vector<Member> members() const = 0;
  // Asks the store, for a member that we may not have heard of yet. notFound names the rank.
  virtual Result<Member> find(uint32_t rank, Deadline deadline) = 0;
  // Joins and leaves of others, those that were there before us first.
  virtual Result<GroupEvent> nextEvent(Deadline deadline) = 0;
  // For poll(2) and its kin: readable while nextEvent() has something to return at once, and rarely
  // when that turns out to be nothing. Stays the Group's.
  virtual Result<int> eventFd() = 0;

  // Tells the store that a member is gone, for who knows that its process is. Does nothing when the
  // rank has another incarnation by now.
  virtual Status reap(const Member& dead, Deadline deadline) = 0;
  virtual Status leave(Deadline deadline) = 0;
};

// Barriers and allgathers of a fixed number of ranks, through the store. All ranks call the same
// ones in the same order. One that ended with an error can be called again: it goes on with the
// same round. For one thread at a time.
class Rendezvous {
 public:
  // Keys begin with `prefix`, which no other Rendezvous of the store uses, or has used. Those of
  // the last round stay in the store.
  Rendezvous(std::shared_ptr<Store> store, std::string prefix, uint32_t rank, uint32_t size);

  // deadlineExceeded names the ranks that did not come. `stop` ends it with cancelled.
  Status barrier(Deadline deadline, const std::stop_token& stop = {});
  // Everyone's bytes, by rank.
  Result<std::vector<std::string>> allgather(std::string_view mine, Deadline deadline,
                                             const std::stop_token& stop = {});
  // The ranks that have come to this round, as the store knows them.
  Result<std::vector<uint32_t>> arrived(Deadline deadline) const;

 private:
  std::string roundKey(uint64_t round) const;
  // Returns when all ranks have come to this round.
  Status meet(Deadline deadline, const std::stop_token& stop);
  // How many ranks have come, ourselves included.
  Result<size_t> arrive(Deadline deadline);
  Status missing(const Status& late) const;

  const std::shared_ptr<Store> store_;
  const std::string prefix_;
  const uint32_t rank_;
  const uint32_t size_;
  uint64_t round_ = 0;
  bool sent_ = false;  // that we have come to this round: the store may know
};

}  // namespace hmc::store
