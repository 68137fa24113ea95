#include <algorithm>
#include <array>

#include "model/fence_world.h"

// Which states of a FenceWorld are the same.
namespace hmc::model {

std::string FenceWorld::fingerprint() const {
  std::string print;
  const auto add = [&](int64_t number) { print.append(reinterpret_cast<char*>(&number), 2); };
  // Times by their order, and by the ticks between them and now.
  const int64_t now = host_.look();
  const auto fence = origin_->fenceAt();
  const std::array<int64_t, 4> times{
      heardAt_.time_since_epoch().count(), confirmedAt_.time_since_epoch().count(),
      timedProbe_ == 0 ? 0 : timedAt_.time_since_epoch().count(),
      fence == Time::max() ? 0
                           : fence.time_since_epoch().count() - rules_.originLease.count() * kTick};
  for (int64_t time : times) {
    add(time == 0 ? -1 : now / kTick - time / kTick);
    add(std::count_if(times.begin(), times.end(), [&](int64_t other) { return other < time; }));
  }
  for (const Wire* wire : {&toTarget_, &toOrigin_}) {
    add(static_cast<int64_t>(wire->sent.size()));
    add(static_cast<int64_t>(wire->arrived.size()));
    add(static_cast<int64_t>(wire->end) << 3 | wire->finSeen << 2 | wire->resetSeen << 1 |
        static_cast<int>(wire->receiverGone));
  }
  for (const auto* words : {&saidToTarget_, &saidToOrigin_}) {
    add(static_cast<int64_t>(words->size()));
    for (const Word& word : *words)
      add(static_cast<int64_t>(word.kind) << 8 | static_cast<int64_t>(word.number));
  }
  for (const Put& put : puts_) {
    add(put.source.front() << 2 | put.completion->done() << 1 | put.completion->failed());
  }
  add(static_cast<int64_t>(probes_) << 8 | static_cast<int64_t>(timedProbe_));
  add(ticks_ << 8 | strangers_ << 4 | stops_);
  add(static_cast<int64_t>(origin_->load()));
  add(origin_->ended() << 7 | originSocket_.closed << 6 | endSaid_ << 5 | originTalks_ << 4 |
      targetTalks_ << 3 | (target_ != nullptr) << 2 | memoryAtRestart_.has_value() << 1);
  return print + memory_;
}

}  // namespace hmc::model
