#include "collective/algorithms.h"

#include <algorithm>

#include "base/error.h"
#include "memory/host_copy.h"

namespace hmc::collective {

namespace {

// The next piece of a rank if it is this one; another one fails the operation. The rank could
// change its header, so nobody reads that again after this check.
std::optional<PieceHeader> nextPiece(Operation& operation, uint32_t rank, uint32_t phase,
                                     size_t offset, size_t most) {
  const auto header = operation.head(rank);
  if (!header) return std::nullopt;
  if (header->phase == phase && header->offset == offset && header->size <= most) return header;
  operation.refuse(rank);
  return std::nullopt;
}

// Sends the next piece of data[0..end) if there is room and something left.
bool sendNext(Operation& operation, uint32_t rank, uint32_t phase, const char* data, size_t& sent,
              size_t end) {
  if (sent >= end) return false;
  const size_t size = std::min(operation.piece(), end - sent);
  if (!operation.send(rank, phase, sent, data + sent, size)) return false;
  sent += size;
  return true;
}

// Takes the next piece of data[0..end), if it is there.
bool takeNext(Operation& operation, uint32_t rank, uint32_t phase, char* data, size_t& taken,
              size_t end) {
  if (taken >= end) return false;
  const auto header = nextPiece(operation, rank, phase, taken, end - taken);
  if (!header) return false;
  // What does not stay in the cache anyway is not read into it first.
  const auto copy = end < kStreamingThreshold ? copyHost : streamHost;
  copy(data + taken, operation.bytes(rank), header->size);
  operation.take(rank);
  taken += header->size;
  return true;
}

// In order of rank, so that all ranks get the same bits. `to` may be one of the sources.
void combineAll(Combine combine, char* to, const std::vector<const char*>& sources, size_t size) {
  constexpr size_t kBlock = size_t{8} << 10;  // fits into the first-level cache, all sources too
  alignas(64) char between[kBlock];
  for (size_t at = 0; at < size; at += kBlock) {
    const size_t length = std::min(kBlock, size - at);
    const char* left = sources[0] + at;
    for (size_t i = 1; i < sources.size(); ++i) {
      char* result = i + 1 == sources.size() ? to + at : between;
      combine(result, left, sources[i] + at, length);
      left = result;
    }
  }
}

// Everybody's bytes of the same piece, ours from `own`.
class Sources {
 public:
  explicit Sources(Operation& operation) : operation_(operation), all_(operation.ranks()) {}

  // Whether all others' are here. `most` is what is left of it.
  bool arrived(uint32_t phase, size_t offset, size_t most) {
    for (uint32_t step = 1; step < operation_.ranks(); ++step) {
      const uint32_t rank = operation_.right(step);
      const auto next = operation_.head(rank);
      if (!next || next->phase != phase) return false;
      const auto header = nextPiece(operation_, rank, phase, offset, most);
      if (!header) return false;
      if (header->size != std::min(operation_.piece(), most)) {
        operation_.refuse(rank);
        return false;
      }
    }
    return true;
  }
  void reduce(Combine combine, char* to, const char* own, size_t size) {
    for (uint32_t rank = 0; rank < operation_.ranks(); ++rank) {
      all_[rank] = rank == operation_.rank() ? own : operation_.bytes(rank);
    }
    combineAll(combine, to, all_, size);
    for (uint32_t step = 1; step < operation_.ranks(); ++step) {
      operation_.take(operation_.right(step));
    }
  }

 private:
  Operation& operation_;
  std::vector<const char*> all_;
};

}  // namespace

Status meet(Operation& operation) {
  uint32_t round = 0;
  for (uint32_t distance = 1; distance < operation.ranks(); distance *= 2, ++round) {
    const uint32_t to = operation.right(distance);
    const uint32_t from = operation.right(operation.ranks() - distance);
    bool sent = false;
    bool heard = false;
    while (!sent || !heard) {
      bool moved = false;
      if (!sent) moved = sent = operation.send(to, round, 0, nullptr, 0);
      if (!heard && nextPiece(operation, from, round, 0, 0)) {
        operation.take(from);
        moved = heard = true;
      }
      if (sent && heard) moved = true;
      HMC_TRY(operation.next(
          moved, [&](uint32_t rank) { return (rank == to && !sent) || (rank == from && !heard); }));
    }
  }
  return Status();
}

// Flat for a few ranks, else a binomial tree, through which pieces follow each other.
Status spread(Operation& operation, char* data, size_t size, uint32_t root) {
  constexpr uint32_t kFlat = 8;
  const uint32_t ranks = operation.ranks();
  const uint32_t place = (operation.rank() + ranks - root) % ranks;
  uint32_t parent = root;
  std::vector<uint32_t> children;
  if (ranks <= kFlat) {
    for (uint32_t step = 1; place == 0 && step < ranks; ++step) {
      children.push_back(operation.right(step));
    }
  } else {
    uint32_t distance = 1;
    while (distance < ranks && (place & distance) == 0) distance *= 2;
    if (place != 0) parent = (place - distance + root) % ranks;
    for (distance /= 2; distance != 0; distance /= 2) {
      if (place + distance < ranks) children.push_back((place + distance + root) % ranks);
    }
  }
  size_t here = place == 0 ? size : 0;
  std::vector<size_t> sent(children.size());
  const auto done = [&] {
    return here == size &&
           std::all_of(sent.begin(), sent.end(), [&](size_t bytes) { return bytes == size; });
  };
  while (!done()) {
    bool moved = place != 0 && takeNext(operation, parent, 0, data, here, size);
    for (size_t i = 0; i < children.size(); ++i) {
      moved |= sendNext(operation, children[i], 0, data, sent[i], here);
    }
    HMC_TRY(operation.next(moved || done(), [&](uint32_t rank) {
      if (rank == parent && here != size) return true;
      for (size_t i = 0; i < children.size(); ++i) {
        if (children[i] == rank && sent[i] != here) return true;
      }
      return false;
    }));
  }
  return Status();
}

Status exchange(Operation& operation, const std::vector<ExchangePart>& parts) {
  const uint32_t ranks = operation.ranks();
  const ExchangePart& own = parts[operation.rank()];
  std::vector<size_t> sent(ranks);
  std::vector<size_t> taken(ranks);
  sent[operation.rank()] = own.outSize;
  taken[operation.rank()] = own.inSize;
  const auto lacks = [&](uint32_t rank) {
    return sent[rank] != parts[rank].outSize || taken[rank] != parts[rank].inSize;
  };
  bool left = true;
  for (bool first = true; left; first = false) {
    bool moved = false;
    left = false;
    for (uint32_t step = 1; step < ranks; ++step) {
      // In opposite directions, so that not all ranks begin with the same.
      const uint32_t to = operation.right(step);
      const uint32_t from = operation.right(ranks - step);
      moved |= sendNext(operation, to, 0, static_cast<const char*>(parts[to].out), sent[to],
                        parts[to].outSize);
      moved |= takeNext(operation, from, 0, static_cast<char*>(parts[from].in), taken[from],
                        parts[from].inSize);
    }
    // Our own part, while the others begin.
    if (first && own.inSize != 0 && own.in != own.out) copyHost(own.in, own.out, own.inSize);
    for (uint32_t rank = 0; rank < ranks; ++rank) left |= lacks(rank);
    HMC_TRY(operation.next(moved || first || !left, lacks));
  }
  return Status();
}

Status reduceEverywhere(Operation& operation, char* data, size_t size, Combine combine) {
  const uint32_t ranks = operation.ranks();
  Sources sources(operation);
  std::vector<size_t> sent(ranks);
  sent[operation.rank()] = size;
  size_t reduced = 0;
  while (reduced < size) {
    bool moved = false;
    for (uint32_t step = 1; step < ranks; ++step) {
      const uint32_t rank = operation.right(step);
      moved |= sendNext(operation, rank, 0, data, sent[rank], size);
    }
    const size_t length = std::min(operation.piece(), size - reduced);
    // Not before everybody has what was there.
    if (*std::min_element(sent.begin(), sent.end()) >= reduced + length &&
        sources.arrived(0, reduced, size - reduced)) {
      sources.reduce(combine, data + reduced, data + reduced, length);
      reduced += length;
      moved = true;
    }
    HMC_TRY(operation.next(moved, [&](uint32_t rank) {
      return sent[rank] < reduced + length || !operation.head(rank);
    }));
  }
  return Status();
}

Status reduceParts(Operation& operation, const std::vector<const char*>& parts, char* reduced,
                   const std::vector<size_t>& bounds, Combine combine, char* gathered) {
  enum Phase : uint32_t { kScatter, kGather };
  const uint32_t ranks = operation.ranks();
  const uint32_t self = operation.rank();
  const auto sizeOfPart = [&](uint32_t rank) { return bounds[rank + 1] - bounds[rank]; };
  const size_t mine = sizeOfPart(self);
  Sources sources(operation);
  std::vector<size_t> scattered(ranks);  // bytes of a rank's part that it has from us
  std::vector<size_t> answered(ranks);   // bytes of our result that it has from us
  std::vector<size_t> known(ranks);      // bytes of its result that we have
  size_t done = 0;                       // bytes of our result
  const auto lacks = [&](uint32_t rank) {
    if (scattered[rank] != sizeOfPart(rank)) return true;
    return (gathered && (answered[rank] != mine || known[rank] != sizeOfPart(rank))) ||
           (done != mine && !operation.head(rank));
  };
  const auto send = [&](uint32_t rank) {
    // Results first: they are still in the cache.
    if (gathered && sendNext(operation, rank, kGather, reduced, answered[rank], done)) return true;
    return sendNext(operation, rank, kScatter, parts[rank], scattered[rank], sizeOfPart(rank));
  };
  bool left = true;
  while (left) {
    bool moved = false;
    for (uint32_t step = 1; step < ranks; ++step) moved |= send(operation.right(step));
    for (uint32_t step = 1; step < ranks; ++step) {
      const uint32_t rank = operation.right(step);
      const auto header = operation.head(rank);
      if (!gathered || !header || header->phase != kGather) continue;
      moved |= takeNext(operation, rank, kGather, gathered + bounds[rank], known[rank],
                        sizeOfPart(rank));
    }
    if (done < mine && sources.arrived(kScatter, done, mine - done)) {
      const size_t length = std::min(operation.piece(), mine - done);
      sources.reduce(combine, reduced + done, parts[self] + done, length);
      done += length;
      moved = true;
    }
    left = done != mine;
    for (uint32_t step = 1; step < ranks; ++step) {
      const uint32_t rank = operation.right(step);
      left |= scattered[rank] != sizeOfPart(rank) ||
              (gathered && (answered[rank] != mine || known[rank] != sizeOfPart(rank)));
    }
    HMC_TRY(operation.next(moved || !left, lacks));
  }
  return Status();
}

}  // namespace hmc::collective
