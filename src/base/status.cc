#include "hmc/status.h"

#include <array>
#include <atomic>

#include "base/error.h"

namespace hmc {

const char* status_to_string(status_t status) {
  // In the order of status_t.
  constexpr std::array kNames = {"Succeeded",      "Error",   "Unsupported",
                                 "Invalid Config", "Timeout", "Not Found"};
  const auto index = static_cast<size_t>(status);
  return index < kNames.size() ? kNames[index] : "Unknown Status";
}

const char* codeName(Code code) {
  // In the order of Code.
  constexpr std::array kNames = {"ok",
                                 "invalid argument",
                                 "out of range",
                                 "not found",
                                 "already exists",
                                 "unsupported",
                                 "permission denied",
                                 "exhausted",
                                 "deadline exceeded",
                                 "cancelled",
                                 "disconnected",
                                 "failed"};
  const auto index = static_cast<size_t>(code);
  return index < kNames.size() ? kNames[index] : "unknown";
}

struct Status::Rep {
  Code code;
  std::string message;
  mutable std::atomic<size_t> owners{1};
};

Status::Status(Code code, std::string message) {
  if (code != Code::ok) rep_ = new Rep{code, std::move(message)};
}

void Status::keep() const noexcept {
  rep_->owners.fetch_add(1, std::memory_order_relaxed);
}

void Status::drop() const noexcept {
  if (rep_->owners.fetch_sub(1, std::memory_order_acq_rel) == 1) delete rep_;
}

Code Status::code() const {
  return rep_ != nullptr ? rep_->code : Code::ok;
}

const std::string& Status::message() const {
  static const std::string kEmpty;
  return rep_ != nullptr ? rep_->message : kEmpty;
}

std::string Status::toString() const {
  return ok() ? "ok" : std::string(codeName(code())) + ": " + message();
}

Status Status::within(const std::string& where) const {
  return ok() ? Status() : Status(code(), where + ": " + message());
}

Status Status::orFailed(const char* message) && {
  return ok() ? Status(Code::failed, message) : std::move(*this);
}

namespace {
thread_local Status lastOfThisThread;
}  // namespace

const Status& lastStatus() {
  return lastOfThisThread;
}

const std::string& lastError() {
  return lastStatus().message();
}

void setLastStatus(Status status) {
  lastOfThisThread = std::move(status);
}

}  // namespace hmc
