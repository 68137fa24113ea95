#include "transport/ipc/copiers.h"

#include <sched.h>

#include <algorithm>
#include <fstream>
#include <sstream>

#include "base/thread.h"
#include "memory/host_copy.h"

namespace hmc::ipc {

namespace {

constexpr size_t kMostHelpers = 3;  // a few cores fill a memory controller
constexpr size_t kHelpersPiece = kStreamingThreshold;

// A part of a copy, with stores that suit the whole; false when it was stopped.
bool copyPieces(const MappedCopy& copy, size_t from, size_t end, const Copiers::Allowed& allowed) {
  StreamedCopies streamed;
  for (size_t at = from; at < end; at += Copiers::kPiece) {
    if (!allowed()) return false;
    const size_t size = std::min(end - at, Copiers::kPiece);
    copy.size < kStreamingThreshold ? copyHost(copy.dst + at, copy.src + at, size)
                                    : streamed.copy(copy.dst + at, copy.src + at, size);
  }
  streamed.finish();
  return true;
}

}  // namespace

size_t idleCoresNow() {
  cpu_set_t allowed;
  CPU_ZERO(&allowed);
  if (sched_getaffinity(0, sizeof(allowed), &allowed) != 0 || CPU_COUNT(&allowed) < 2) return 0;
  std::ifstream file("/proc/loadavg");
  std::string line;
  std::getline(file, line);
  return idleCores(static_cast<size_t>(CPU_COUNT(&allowed)), line);
}

size_t idleCores(size_t ours, const std::string& loadavg) {
  std::istringstream words(loadavg);
  std::string average;
  size_t running = 0;
  if (!(words >> average >> average >> average >> running)) return 0;
  // The calling thread is one of those that run.
  running = std::max<size_t>(running, 1);
  return ours > running ? ours - running : 0;
}

Copiers::~Copiers() {
  for (auto& thread : threads_) thread.request_stop();
}

bool Copiers::copyAlone(const MappedCopy& copy, const Allowed& allowed) {
  if (copy.size > kPiece) return copyPieces(copy, 0, copy.size, allowed);
  if (!allowed()) return false;
  copy.run();
  return true;
}

bool Copiers::copyLarge(const MappedCopy& copy, const Allowed& allowed) {
  std::unique_lock turn(turn_, std::try_to_lock);
  const size_t helpers = turn ? std::min(idle_(), kMostHelpers) : 0;
  if (helpers == 0) return copyAlone(copy, allowed);
  copy_ = &copy;
  allowed_ = &allowed;
  refused_.store(false, std::memory_order_relaxed);
  next_.store(0, std::memory_order_relaxed);
  {
    std::lock_guard lock(mutex_);
    while (threads_.size() < helpers && startHelper()) {
    }
    places_ = helpers;
  }
  wanted_.notify_all();
  takePieces();
  // Don't wait for helpers that never started.
  std::unique_lock lock(mutex_);
  places_ = 0;
  over_.wait(lock, [&] { return helping_ == 0; });
  return !refused_.load(std::memory_order_relaxed);
}

// False when the system has no thread for us. The copy then has fewer helpers.
bool Copiers::startHelper() {
  auto thread = startThread("hmc-copy", [this](const std::stop_token& stop) { help(stop); });
  if (!thread.ok()) return false;
  threads_.push_back(*std::move(thread));
  return true;
}

void Copiers::help(const std::stop_token& stop) {
  std::unique_lock lock(mutex_);
  while (wanted_.wait(lock, stop, [&] { return places_ > 0; })) {
    --places_;
    ++helping_;
    lock.unlock();
    takePieces();
    lock.lock();
    if (--helping_ == 0) over_.notify_one();
  }
}

void Copiers::takePieces() {
  for (;;) {
    const size_t at = next_.fetch_add(kHelpersPiece, std::memory_order_relaxed);
    if (at >= copy_->size) return;
    const size_t end = std::min(copy_->size, at + kHelpersPiece);
    if (copyPieces(*copy_, at, end, *allowed_)) continue;
    refused_.store(true, std::memory_order_relaxed);
    return;
  }
}

}  // namespace hmc::ipc
