#pragma once

#include <functional>
#include <string>
#include <string_view>

#include "control/message.h"
#include "control/ring.h"
#include "hmc/deadline.h"
#include "hmc/result.h"

namespace hmc::control {

// Writes messages into a ring, a long one in several records. One thread at a time, but for wake().
class RingSender {
 public:
  // `who` names the peer in sentences.
  RingSender(std::shared_ptr<RingMemory> memory, int direction, std::string who)
      : who_(std::move(who)), ring_(std::move(memory), direction) {}

  // In one record, if there is room for it now. notNow writes nothing.
  RingOutcome tryWrite(MessageKind kind, uint16_t flags, std::string_view payload);
  // Waits for room until the deadline. `full` is called before each wait: it asks the peer to make
  // room, or says why to give up. A message that is given up is taken back by the next.
  using Full = std::function<Status()>;
  Status write(MessageKind kind, uint16_t flags, std::string_view payload, Deadline deadline,
               const Full& full);
  // From any thread: write() calls `full` again.
  void wake() { ring_.wakeWaiter(); }
  // What to say about RingOutcome::corrupt.
  Status corrupt() const;

 private:
  Status writeRecord(const RingRecord& record, std::string_view payload, Deadline deadline,
                     const Full& full);

  const std::string who_;
  RingWriter ring_;
  bool unfinished_ = false;  // a message was given up between two of its records
};

}  // namespace hmc::control
