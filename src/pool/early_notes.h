#pragma once

#include <algorithm>
#include <cstddef>
#include <deque>
#include <string>

namespace hmc::pool {

// Nodes that have said something before we knew them as members: the store may tell us of one later
// than it told itself. Those that never become members must not add up, so the oldest is forgotten
// when there are too many. For one thread at a time.
class EarlyNotes {
 public:
  explicit EarlyNotes(size_t most) : most_(most) {}

  void add(const std::string& node) {
    (void)take(node);
    nodes_.push_back(node);
    if (nodes_.size() > most_) nodes_.pop_front();
  }
  // True when it was there; then it is no more.
  bool take(const std::string& node) { return std::erase(nodes_, node) > 0; }
  void clear() { nodes_.clear(); }
  size_t size() const { return nodes_.size(); }

 private:
  const size_t most_;
  std::deque<std::string> nodes_;  // the newest last
};

}  // namespace hmc::pool
