#pragma once

#include <array>
#include <atomic>
#include <cstdint>
#include <memory>
#include <mutex>
#include <utility>
#include <vector>

#include "base/futex.h"

namespace hmc::capi {

// Objects by handles that are never given out twice, so that one whose object is gone is
// recognised. Finding one takes no lock. Safe from any thread.
template <class T>
class HandleTable {
  struct Entry;

 public:
  static constexpr size_t kMost = 1024;

  // Keeps the object while it lives.
  class Use {
   public:
    explicit Use(Entry* entry) : entry_(entry) {}
    ~Use() {
      if (entry_) entry_->leave();
    }
    Use(const Use&) = delete;
    Use& operator=(const Use&) = delete;
    explicit operator bool() const { return entry_ != nullptr; }
    T* operator->() const { return entry_->object.get(); }
    T& operator*() const { return *entry_->object; }

   private:
    Entry* const entry_;
  };

  // Null when there are kMost.
  void* add(std::unique_ptr<T> object) {
    std::lock_guard lock(mutex_);
    for (size_t i = 0; i < kMost; ++i) {
      Entry& entry = entries_[i];
      if (entry.used) continue;
      entry.used = true;
      entry.object = std::move(object);
      entry.handle = ++generation_ * kMost + i;
      entry.state.fetch_or(kOpen);
      return reinterpret_cast<void*>(entry.handle);  // NOLINT(performance-no-int-to-ptr)
    }
    return nullptr;
  }
  // Nothing for a handle that has no object.
  Use find(const void* handle) {
    const auto number = reinterpret_cast<uintptr_t>(handle);
    Entry& entry = entries_[number % kMost];
    if (number != 0 && entry.enter()) {
      if (entry.handle == number) return Use(&entry);
      entry.leave();
    }
    return Use(nullptr);
  }
  // Takes it out, when nobody uses it any more; `closed(object)` may hurry those who do. Null for a
  // handle that has no object.
  template <class Closed>
  std::unique_ptr<T> take(const void* handle, Closed closed) {
    const auto number = reinterpret_cast<uintptr_t>(handle);
    Entry& entry = entries_[number % kMost];
    {
      std::lock_guard lock(mutex_);
      if (number == 0 || entry.handle != number || (entry.state.load() & kOpen) == 0)
        return nullptr;
      entry.state.fetch_and(~kOpen);
    }
    closed(*entry.object);
    entry.awaitEmpty();
    std::lock_guard lock(mutex_);
    entry.used = false;
    entry.handle = 0;
    return std::move(entry.object);
  }
  std::vector<void*> handles() {
    std::lock_guard lock(mutex_);
    std::vector<void*> all;
    for (const Entry& entry : entries_) {
      if (entry.used) all.push_back(reinterpret_cast<void*>(entry.handle));  // NOLINT
    }
    return all;
  }

 private:
  static constexpr uint32_t kOpen = uint32_t{1} << 31;

  struct Entry {
    bool enter() {
      if ((state.fetch_add(1, std::memory_order_acquire) & kOpen) != 0) return true;
      leave();
      return false;
    }
    void leave() {
      if (state.fetch_sub(1, std::memory_order_release) == 1) futexWakeAll(state);
    }
    void awaitEmpty() {
      for (uint32_t inside = state.load(); inside != 0; inside = state.load())
        futexWait(state, inside, Deadline::never());
    }

    std::atomic<uint32_t> state{0};  // how many use it, and kOpen
    std::unique_ptr<T> object;       // written while it is closed and empty, and so is the next
    uintptr_t handle = 0;
    bool used = false;  // guarded by mutex_
  };

  std::mutex mutex_;
  uintptr_t generation_ = 0;  // guarded by mutex_
  std::array<Entry, kMost> entries_;
};

}  // namespace hmc::capi
