#pragma once

#if __cplusplus < 201703L
#error "hmc/node.h and its kin need C++17: compile with -std=c++17; <hmc.h> alone needs C++14"
#endif

#include <optional>
#include <stdexcept>
#include <utility>

#include "hmc/status.h"

namespace hmc {

// A value, or the Status that says why there is none. Needs C++17. Compilers warn when one is
// dropped: what it holds is often a handle, and the call is undone with the last of these.
template <class T>
class [[nodiscard]] Result {
 public:
  Result(T made) : value_(std::move(made)) {}  // NOLINT(google-explicit-constructor)
  Result(Status status)                        // NOLINT(google-explicit-constructor)
      : status_(std::move(status).orFailed("a Result was made from an ok Status")) {}

  bool ok() const { return value_.has_value(); }
  explicit operator bool() const { return ok(); }
  const Status& status() const { return status_; }

  // The value; if there is none, throws a std::runtime_error with the sentence.
  T value() && {
    if (!ok()) throw std::runtime_error(status_.toString());
    return *std::move(value_);
  }

  // Only after ok().
  T& operator*() & { return *value_; }
  const T& operator*() const& { return *value_; }
  T&& operator*() && { return *std::move(value_); }
  T* operator->() { return &*value_; }
  const T* operator->() const { return &*value_; }

 private:
  Status status_;
  std::optional<T> value_;
};

}  // namespace hmc
