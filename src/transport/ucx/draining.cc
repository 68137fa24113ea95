#include "transport/ucx/draining.h"

namespace hmc::ucx {

namespace {

// The peer answers our own hello. Whether it sends one to our target we do not know.
constexpr std::chrono::milliseconds kForPath{2000};
constexpr std::chrono::milliseconds kForTarget{100};

}  // namespace

void Draining::add(std::unique_ptr<Path> path) {
  path->disown();
  std::lock_guard lock(mutex_);
  all_.push_back({std::move(path), nullptr, Deadline(kForPath)});
}

void Draining::add(std::unique_ptr<Target> target) {
  std::lock_guard lock(mutex_);
  all_.push_back({nullptr, std::move(target), Deadline(kForTarget)});
}

bool Draining::Entry::done() const {
  return (path ? path->settled() : target->greeted()) || deadline.passed();
}

bool Draining::step() {
  std::lock_guard lock(mutex_);
  for (Entry& one : all_) one.path ? one.path->progress() : one.target->serve();
  std::erase_if(all_, [](const Entry& one) { return one.done(); });
  return !all_.empty();
}

}  // namespace hmc::ucx
