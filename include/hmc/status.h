#pragma once

#include "hmc/cpp14.h"

#include <string>

#include "hmc/export.h"

namespace hmc {

/// What the documented classes (Memory, ConnBuffer, Communicator) return. lastError() is the
/// sentence for the last value other than SUCCESS on this thread.
enum class status_t { SUCCESS, ERROR, UNSUPPORT, INVALID_CONFIG, TIMEOUT, NOT_FOUND };

HMC_API const char* status_to_string(status_t status);  ///< "TIMEOUT"
HMC_API const std::string& lastError();  ///< The sentence of this thread; empty after SUCCESS.

/// What the caller can do about an error.
enum class Code {
  ok,
  invalidArgument,   ///< fix the call
  outOfRange,        ///< fix the call: an offset or size passes the end
  notFound,          ///< fix the name, or wait for it to exist
  alreadyExists,     ///< choose another name or port
  unsupported,       ///< this build, host or pair of peers cannot do it
  permissionDenied,  ///< the peer, the kernel or a missing secret refuses
  exhausted,         ///< retry later, or raise the limit that the sentence names
  deadlineExceeded,  ///< retry, or wait longer
  cancelled,         ///< the caller cancelled it
  disconnected,      ///< reconnect
  failed,            ///< give up: the sentence says what broke
};

HMC_API const char* codeName(Code code);  ///< "deadline exceeded"

/// The outcome of an operation: ok, or a code and one sentence that says what happened, with the
/// numbers in it. One pointer, null when ok. Copies are cheap and share the sentence.
class HMC_API Status {
 public:
  Status() noexcept = default;             ///< Ok.
  Status(Code code, std::string message);  ///< An error. The sentence says what failed.
  /// Shares the sentence.
  Status(const Status& other) noexcept : rep_(other.rep_) {
    if (rep_ != nullptr) keep();
  }
  /// Leaves the other one ok.
  Status(Status&& other) noexcept : rep_(other.rep_) { other.rep_ = nullptr; }
  Status& operator=(Status other) noexcept {
    const Rep* mine = rep_;
    rep_ = other.rep_;
    other.rep_ = mine;
    return *this;
  }
  ~Status() {
    if (rep_ != nullptr) drop();
  }

  bool ok() const { return rep_ == nullptr; }      ///< Whether all went well.
  explicit operator bool() const { return ok(); }  ///< The same.
  Code code() const;                               ///< What the caller can do about it.
  const std::string& message() const;              ///< The sentence; empty when ok.
  /// "out of range: put of 4096 bytes ..."
  std::string toString() const;
  /// The same code, with `where` in front of the sentence.
  Status within(const std::string& where) const;
  /// Itself, or Code::failed with this sentence when it is ok.
  Status orFailed(const char* message) &&;

 private:
  struct Rep;
  void keep() const noexcept;
  void drop() const noexcept;

  const Rep* rep_ = nullptr;
};

/// The same as lastError(), with the code.
HMC_API const Status& lastStatus();

}  // namespace hmc
