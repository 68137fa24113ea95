#pragma once

#include <memory>
#include <string>

#include "hmc/export.h"

namespace hmc {

// What the documented classes (Memory, ConnBuffer, Communicator) return. lastError() is the
// sentence for the last value other than SUCCESS on this thread.
enum class status_t { SUCCESS, ERROR, UNSUPPORT, INVALID_CONFIG, TIMEOUT, NOT_FOUND };

HMC_API const char* status_to_string(status_t status);
HMC_API const std::string& lastError();

// What the caller can do about an error.
enum class Code {
  ok,
  invalidArgument,   // fix the call
  outOfRange,        // fix the call: an offset or size passes the end
  notFound,          // fix the name, or wait for it to exist
  alreadyExists,     // choose another name or port
  unsupported,       // this build, host or pair of peers cannot do it
  permissionDenied,  // the peer, the kernel or a missing secret refuses
  exhausted,         // retry later, or raise the limit that the sentence names
  deadlineExceeded,  // retry, or wait longer
  cancelled,         // the caller cancelled it
  disconnected,      // reconnect
  failed,            // give up: the sentence says what broke
};

HMC_API const char* codeName(Code code);

// The outcome of an operation: ok, or a code and one sentence that says what happened, with the
// numbers in it. Copies are cheap and share the sentence.
class HMC_API Status {
 public:
  Status() = default;
  Status(Code code, std::string message);

  bool ok() const { return rep_ == nullptr; }
  explicit operator bool() const { return ok(); }
  Code code() const { return rep_ ? rep_->code : Code::ok; }
  const std::string& message() const;
  // "out of range: put of 4096 bytes ..."
  std::string toString() const;
  // The same code, with `where` in front of the sentence.
  Status within(const std::string& where) const;

 private:
  struct Rep {
    Code code;
    std::string message;
  };
  std::shared_ptr<const Rep> rep_;
};

// The same as lastError(), with the code.
HMC_API const Status& lastStatus();

}  // namespace hmc
