#include "transport/ucx/partings.h"

namespace hmc::ucx {

namespace {

// For our own hello, which the peer answers; and for one of which we do not know whether it comes.
constexpr std::chrono::milliseconds kForPath{2000};
constexpr std::chrono::milliseconds kForTarget{100};

}  // namespace

void Partings::add(std::unique_ptr<Path> path) {
  path->disown();
  std::lock_guard lock(mutex_);
  all_.push_back({std::move(path), nullptr, Deadline(kForPath)});
}

void Partings::add(std::unique_ptr<Target> target) {
  std::lock_guard lock(mutex_);
  all_.push_back({nullptr, std::move(target), Deadline(kForTarget)});
}

bool Partings::Parting::over() const {
  return (path ? path->settled() : target->greeted()) || deadline.passed();
}

bool Partings::step() {
  std::lock_guard lock(mutex_);
  for (Parting& one : all_) one.path ? one.path->progress() : one.target->serve();
  std::erase_if(all_, [](const Parting& one) { return one.over(); });
  return !all_.empty();
}

}  // namespace hmc::ucx
