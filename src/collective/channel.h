#pragma once

#include <cstdint>
#include <cstring>
#include <optional>
#include <string>

#include "collective/inbox.h"
#include "hmc/node.h"
#include "hmc/result.h"

namespace hmc::collective {

// Pieces to one rank and from it, each in order. Where its inbox is mapped here they are written
// there; else they are put, and a note says so. For one thread at a time, except heard().
class Channel {
 public:
  // `outbox` is memory for one piece to be put from; all channels of a group share it.
  Channel(Peer peer, RemoteRegion theirs, LocalRegion outbox, Inbox mine, Inbox::Shape shape,
          uint32_t rank, uint32_t self);

  const Peer& peer() const { return peer_; }
  std::string path() const { return theirs_.path(); }
  bool mapped() const { return mapped_; }

  // Null while the other side has not taken enough; else where the bytes of the next piece go.
  char* room() const;
  // Sends the piece whose bytes are there.
  Status place(const PieceHeader& header, Deadline deadline);

  // The next piece that has arrived, which take() frees.
  std::optional<PieceHeader> head() const;
  const char* bytes() const { return mine_.slot(rank_, taken_) + Inbox::kLine; }
  Status take(Deadline deadline);

  // Tells the other side that we have given up because of a rank.
  void blame(uint32_t rank);
  // The rank because of which it has given up.
  std::optional<uint32_t> blamed() const;

  // A note of the other side's. Any thread.
  void heard(const std::string& note) const;

 private:
  Status tell(Inbox::Word Inbox::Lane::*word, uint32_t value, Deadline deadline);

  const Peer peer_;
  const RemoteRegion theirs_;
  const LocalRegion outbox_;
  const Inbox mine_;
  const Inbox inbox_;  // the other rank's, in our address space where it is mapped
  const bool mapped_;
  const uint32_t rank_;
  const uint32_t self_;
  uint32_t placed_ = 0;
  uint32_t taken_ = 0;
  bool unfinished_ = false;  // a put of ours that was not waited for to its end
};

}  // namespace hmc::collective
