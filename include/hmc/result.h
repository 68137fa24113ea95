#pragma once

#include "hmc/cpp17.h"

#include <optional>
#include <stdexcept>
#include <utility>

#include "hmc/status.h"

namespace hmc {

/// A value, or the Status that says why there is none. Compilers warn when one is dropped: what it
/// holds is often a handle, and the call is undone with the last of these.
template <class T>
class [[nodiscard]] Result {
 public:
  /// Has that value.
  Result(T made) : value_(std::move(made)) {}  // NOLINT(google-explicit-constructor)
  /// Has none, because of that.
  Result(Status status)  // NOLINT(google-explicit-constructor)
      : status_(std::move(status).orFailed("a Result was made from an ok Status")) {}

  bool ok() const { return value_.has_value(); }    ///< Whether there is a value.
  explicit operator bool() const { return ok(); }   ///< The same.
  const Status& status() const { return status_; }  ///< Why there is none; ok if there is one.

  /// The value; if there is none, throws a std::runtime_error with the sentence.
  T value() && {
    if (!ok()) throw std::runtime_error(status_.toString());
    return *std::move(value_);
  }

  /// Only after ok().
  T& operator*() & { return *value_; }
  const T& operator*() const& { return *value_; }    ///< Only after ok().
  T&& operator*() && { return *std::move(value_); }  ///< Only after ok().
  T* operator->() { return &*value_; }               ///< Only after ok().
  const T* operator->() const { return &*value_; }   ///< Only after ok().

 private:
  Status status_;
  std::optional<T> value_;
};

}  // namespace hmc
