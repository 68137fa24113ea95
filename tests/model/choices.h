#pragma once

#include <cstddef>
#include <cstdint>
#include <utility>
#include <vector>

namespace hmc::model {

// Every sequence of choices, one after the other: run what chooses, then next(), until that says
// that there are no more. What chooses must do the same when it is given the same choices.
class Choices {
 public:
  // One of 0 to options - 1.
  size_t choose(size_t options) {
    if (at_ == trail_.size()) trail_.push_back({0, options, {}});
    return trail_[at_++].taken;
  }
  // One of those that options() answers, which is asked once; nothing when there is none.
  template <class Options>
  int chooseOf(Options options) {
    if (at_ == trail_.size()) {
      auto all = options();
      if (all.empty()) return -1;
      trail_.push_back({0, all.size(), std::move(all)});
    }
    const Choice& choice = trail_[at_++];
    return choice.all[choice.taken];
  }
  // What was chosen so far was not chosen before.
  bool isNew() const { return at_ >= repeated_; }

  bool next() {
    while (!trail_.empty() && trail_.back().taken + 1 == trail_.back().options) trail_.pop_back();
    if (trail_.empty()) return false;
    ++trail_.back().taken;
    repeated_ = trail_.size();
    at_ = 0;
    return true;
  }

 private:
  struct Choice {
    size_t taken;
    size_t options;
    std::vector<uint8_t> all;
  };
  std::vector<Choice> trail_;
  size_t at_ = 0;
  size_t repeated_ = 0;
};

}  // namespace hmc::model
