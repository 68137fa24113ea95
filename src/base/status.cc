#include "hmc/status.h"

#include <array>

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

Status::Status(Code code, std::string message) {
  if (code != Code::ok) rep_ = std::make_shared<const Rep>(Rep{code, std::move(message)});
}

const std::string& Status::message() const {
  static const std::string kEmpty;
  return rep_ ? rep_->message : kEmpty;
}

std::string Status::toString() const {
  return ok() ? "ok" : std::string(codeName(code())) + ": " + message();
}

Status Status::within(const std::string& where) const {
  return ok() ? Status() : Status(code(), where + ": " + message());
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
